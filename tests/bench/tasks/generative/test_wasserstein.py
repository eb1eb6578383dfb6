"""Generators of images, held to the published protocols."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from hvadam import HVAdam
from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import MEASURED, Store
from hvadam_bench.running.runner import run
from hvadam_bench.tasks.generative.wasserstein import Critic, Generator, WassersteinProblem

GANS = ("wgan", "wgan_gp")


def problem(name: str, protocol: str = "standard", **settings: Any) -> WassersteinProblem:
    task = tasks.get(name)
    built = task.build({**task.scales["smoke"], **settings}, 0, protocol)
    assert isinstance(built, WassersteinProblem)
    return built


def test_paper_scale_is_the_published_networks() -> None:
    paper = tasks.get("wgan").scales["paper"]
    shape = paper["width"], paper["size"], 3
    networks = [
        Generator(paper["latent"], *shape),
        Critic(*shape, head="sigmoid"),
        Critic(*shape, head="linear"),
    ]
    counts = [sum(p.numel() for p in network.parameters()) for network in networks]
    assert counts == [3_576_704, 2_765_568, 2_765_568 - 8192 + 8193]


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
@pytest.mark.parametrize("name", GANS)
def test_smoke_runs_and_keeps_pictures(name: str, protocol: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = RunConfig(name, "hvadam", "smoke", options={"lr": 1e-3}, protocol=protocol)
    record = run(config, store)
    # A handful of steps does not get all of them beyond the sameness of untrained samples.
    assert record.status in MEASURED, record.reason
    assert {"frechet", "frechet_sd", "diversity", "loss"} == set(record.test)
    assert "fid" not in record.test  # the features are not Inception's
    assert len(record.artifacts) == len(record.curve)
    last = store.artifacts_path(config) / record.artifacts[-1]
    assert Image.open(io.BytesIO(last.read_bytes())).size == (128, 128)


@pytest.mark.slow
@pytest.mark.parametrize("name", GANS)
def test_training_brings_samples_nearer(name: str) -> None:
    one = problem(name, epochs=25, width=16)
    before = one.evaluate("valid")["frechet"]
    moved = {n: torch.optim.Adam(m.parameters(), 2e-3, (0.5, 0.9)) for n, m in one.networks.items()}
    for network in one.networks.values():
        network.train()
    for step in range(one.steps):
        for loss, which in one.updates(one.batch(step)):
            moved[which].zero_grad()
            loss.backward()
            moved[which].step()
    assert one.evaluate("valid")["frechet"] < 0.7 * before


def test_the_generator_moves_every_fifth_batch_with_the_same_latents() -> None:
    one = problem("wgan", critic_steps=5)
    names = [[u.network for u in one.updates(one.batch(step))] for step in range(one.batches + 1)]
    both = [step for step, moved in enumerate(names) if moved == ["critic", "generator"]]
    assert both == [*range(0, one.batches, 5), one.batches]  # counted anew in each epoch
    assert torch.equal(one.batch(3).latents, one.batch(3).latents)
    assert not torch.equal(one.batch(3).latents, one.batch(4).latents)


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_clamping_is_what_bounds_do(protocol: str) -> None:
    clamped = problem("wgan", protocol)
    bounded = copy.deepcopy(clamped)
    trained = []
    for one, bounds in ((clamped, None), (bounded, (-0.01, 0.01))):
        free = {id(p) for p in one.boxed}
        groups = [
            {"params": one.boxed, "bounds": bounds},
            {"params": [p for p in one.critic.parameters() if id(p) not in free]},
        ]
        groups = [group for group in groups if group["params"]]
        optimizers = {
            "critic": HVAdam(groups, lr=1e-2),
            "generator": HVAdam(one.generator.parameters(), lr=1e-3),
        }
        one.boxed = one.boxed if bounds is None else []
        for step in range(6):
            for loss, which in one.updates(one.batch(step)):
                optimizers[which].zero_grad()
                loss.backward()
                optimizers[which].step()
        trained.append([p for n in one.networks.values() for p in n.parameters()])
    assert all(torch.equal(p, q) for p, q in zip(*trained, strict=True))
    assert max(p.abs().max().item() for p in clamped.boxed) == pytest.approx(0.01)


def test_inherited_quirks_are_not_standard() -> None:
    standard, inherited = problem("wgan"), problem("wgan", "inherited")
    images = 50 * torch.randn(400, 1, 16, 16)  # enough for some to be below 0
    assert 0 < inherited.critic(images).min() <= inherited.critic(images).max() < 1
    assert standard.critic(images).min() < 0
    assert len(inherited.boxed) == len(list(inherited.critic.parameters()))
    assert {p.dim() for p in standard.boxed} == {4}  # convolutions alone
    assert len(inherited.parts["train"][1]) == 400
    train, valid = (set(standard.parts[s][1].tolist()) for s in ("train", "valid"))
    assert len(train) == 360
    assert not train & valid


def test_the_penalty_sees_each_image_alone() -> None:
    images = torch.randn(2, 4, 1, 16, 16)
    images[1, 0] = images[0, 0]
    one, other = (problem("wgan_gp").critic(batch)[0] for batch in images)
    assert one.item() == pytest.approx(other.item(), abs=1e-6)
    one, other = (problem("wgan_gp", "inherited").critic(batch)[0] for batch in images)
    assert one.item() != pytest.approx(other.item(), abs=1e-6)


def test_the_penalty_is_zero_for_slope_one() -> None:
    one = problem("wgan_gp")
    linear = torch.nn.Linear(256, 1)
    one.critic = torch.nn.Sequential(torch.nn.Flatten(), linear)
    weight = linear.weight
    for slope in (1.0, 3.0):
        weight.data = slope * weight.data / weight.data.norm()
        found = one._penalty(torch.randn(4, 1, 16, 16)).item()
        assert found == pytest.approx((slope - 1) ** 2, abs=1e-5)
