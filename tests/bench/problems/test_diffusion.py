"""Diffusion as a problem: its average, its batches, and whether it learns."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

from hvadam_bench import tasks
from hvadam_bench.models.unet import UNet
from hvadam_bench.problems.diffusion import DiffusionProblem
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.running.training import Training

SMOKE = RunConfig("diffusion", "hvadam", "smoke", options={"lr": 1e-3})


def problem(**settings: Any) -> DiffusionProblem:
    task = tasks.get("diffusion")
    built = task.build({**task.scales["smoke"], **settings}, 0, "standard")
    assert isinstance(built, DiffusionProblem)
    return built


def test_paper_scale_is_the_published_network() -> None:
    paper = tasks.get("diffusion").scales["paper"]
    names = ("size", "width", "multipliers", "blocks", "attention", "heads", "dropout")
    with torch.device("meta"):
        network = UNet(3, **{name: paper[name] for name in names})
    assert sum(p.numel() for p in network.parameters()) == 52_546_438
    assert {m.num_groups for m in network.modules() if isinstance(m, nn.GroupNorm)} == {32}
    attention = [w.shape[1] for n, w in network.named_parameters() if n.endswith("asked.weight")]
    assert attention == [256] * 15  # 3 down and 4 up at each of two sizes, and the middle


def test_the_average_follows_its_closed_form() -> None:
    one = problem(ema=0.8)
    optimizer = torch.optim.Adam(one.model.parameters(), 1e-2)
    seen = [nn.utils.parameters_to_vector(one.model.parameters()).detach().double()]
    for step in range(5):
        for loss, _ in one.updates(one.batch(step)):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seen.append(nn.utils.parameters_to_vector(one.model.parameters()).detach().double())
    weights = [0.8**5, *(0.2 * 0.8 ** (5 - i) for i in range(1, 6))]
    expected = sum(w * values for w, values in zip(weights, seen, strict=True))
    found = nn.utils.parameters_to_vector(one.average.parameters()).double()
    assert torch.allclose(found, torch.as_tensor(expected), atol=1e-6)
    assert not torch.allclose(found, seen[-1], atol=1e-3)
    generator = torch.Generator().manual_seed(0)
    shown = one.sample(2, generator)
    one.model.load_state_dict(problem(width=8).model.state_dict())
    assert torch.equal(one.sample(2, generator.manual_seed(0)), shown)  # of the average alone


def test_an_interrupted_run_has_the_same_average_to_the_last_bit(tmp_path: Path) -> None:
    whole = Training(SMOKE)
    checkpoints.set_seed(0)
    for step in range(8):
        if step == 4:
            checkpoints.save(tmp_path / "half", whole.state_dict())
        whole.advance()
    resumed = Training(SMOKE)
    saved = checkpoints.load(tmp_path / "half")
    assert saved is not None
    resumed.load_state_dict(saved)
    for _ in range(4):
        resumed.advance()
    averages = [training.problem.state_dict()["average"] for training in (whole, resumed)]
    assert all(torch.equal(value, averages[1][name]) for name, value in averages[0].items())
    assert whole.evaluate().valid == resumed.evaluate().valid


def test_batches_are_full_and_the_same_whenever_asked_for() -> None:
    one = problem(batch_size=50)
    assert one.batches == 7  # of 360 images that are not held out
    assert {len(one.batch(step).real) for step in range(15)} == {50}
    assert all(torch.equal(a, b) for a, b in zip(one.batch(9), one.batch(9), strict=True))
    assert not torch.equal(one.batch(9).noise, one.batch(10).noise)
    times = torch.cat([one.batch(step).t for step in range(100)])
    assert times.min() < 20
    assert times.max() > 980
    assert times.max() < 1000
    with pytest.raises(ValueError, match="batch_size must be at most 360"):
        problem(batch_size=500)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling_steps": 1001}, "sampling steps must be from 2 to 1000"),
        ({"sampling_steps": 1}, "sampling steps must be from 2"),
        ({"width": 10}, "width must be a multiple of 4, got 10"),
        ({"heads": 3}, "heads must divide 16 channels, got 3"),
        ({"multipliers": (1, 1, 1, 1, 1)}, "size must be divisible by 16"),
        ({"sampler": "dim"}, "sampler must be 'ancestral' or 'ddim', got 'dim'"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        problem(**settings)


def test_smoke_runs_and_keeps_pictures(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = run(SMOKE, store)
    assert record.status == "done", record.reason
    assert {"frechet", "frechet_sd", "diversity", "loss"} == set(record.test)
    assert len(record.artifacts) == len(record.curve)
    last = store.artifacts_path(SMOKE) / record.artifacts[-1]
    assert Image.open(io.BytesIO(last.read_bytes())).size == (64, 64)


@pytest.mark.slow
def test_training_brings_samples_nearer() -> None:
    one = problem(iterations=400, width=16, ema=0.98, sampler="ancestral", sampling_steps=20)
    before = one.evaluate("valid")
    optimizer = torch.optim.Adam(one.model.parameters(), 2e-3)
    for step in range(one.steps):
        for loss, _ in one.updates(one.batch(step)):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    after = one.evaluate("valid")
    assert after["frechet"] < 0.3 * before["frechet"]
    assert after["loss"] < 0.5 * before["loss"]
