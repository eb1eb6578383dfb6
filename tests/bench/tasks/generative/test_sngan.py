"""SN-GAN, held to its published protocol."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from interrupted import KilledError, Killer, artifacts, essence
from PIL import Image
from torch import nn
from torch.nn.utils import parametrize

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.tasks.generative.sngan import Discriminator, Generator, SpectralProblem


def problem(protocol: str = "standard", **settings: Any) -> SpectralProblem:
    task = tasks.get("sngan")
    built = task.build({**task.scales["smoke"], **settings}, 0, protocol)
    assert isinstance(built, SpectralProblem)
    return built


def train(one: SpectralProblem, steps: int, lr: float) -> None:
    moved = {n: torch.optim.Adam(m.parameters(), lr, (0.5, 0.999)) for n, m in one.networks.items()}
    for network in one.networks.values():
        network.train()
    for step in range(steps):
        for loss, which in one.updates(one.batch(step)):
            moved[which].zero_grad()
            loss.backward()
            moved[which].step()


def norms(weights: list[torch.Tensor]) -> list[float]:
    """The largest singular value of each, as a matrix."""
    return [torch.linalg.svdvals(weight.flatten(1))[0].item() for weight in weights]


def test_paper_scale_is_the_published_networks() -> None:
    paper = tasks.get("sngan").scales["paper"]
    networks = [
        Generator(paper["latent"], paper["width"], paper["size"], 3, 10),
        Discriminator(paper["width"], 3, 10),
    ]
    counts = [sum(p.numel() for p in network.parameters()) for network in networks]
    assert counts == [4_304_387, 1_055_105]  # as the authors of AdaBelief logged them


def test_every_weight_of_the_discriminator_has_norm_one() -> None:
    one = problem()
    train(one, 20, lr=3e-3)
    one.discriminator.eval()
    layers: list[Any] = [
        m for m in one.discriminator.modules() if parametrize.is_parametrized(m, "weight")
    ]
    assert len(layers) == 3 + 3 + 2 + 2 + 2  # blocks, head and embedding: all there are
    assert norms([m.weight for m in layers]) == pytest.approx([1] * 12, abs=0.05)
    # Left to themselves, the weights would have grown.
    assert max(norms([m.parametrizations.weight.original for m in layers])) > 1.1
    one.discriminator.train()
    for _ in range(300):  # no weight moves: the estimates become exact
        normalised = [m.weight for m in layers]
    assert norms(normalised) == pytest.approx([1] * 12, abs=1e-3)


def test_evaluation_leaves_no_trace() -> None:
    one = problem()
    train(one, 10, lr=1e-3)
    before = copy.deepcopy({n: m.state_dict() for n, m in one.networks.items()})
    drawn = torch.get_rng_state()
    one.evaluate("valid")
    one.evaluate("test")
    one.artifacts()
    assert torch.equal(torch.get_rng_state(), drawn)
    for name, network in one.networks.items():
        for key, value in network.state_dict().items():
            assert torch.equal(value, before[name][key]), key


def test_a_copy_trains_as_the_original_does() -> None:
    one = problem()
    train(one, 5, lr=1e-3)
    other = copy.deepcopy(one)
    for each in (one, other):
        train(each, 10, lr=1e-3)
    for name, network in one.networks.items():
        for key, value in network.state_dict().items():
            assert torch.equal(value, other.networks[name].state_dict()[key]), key


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_smoke_runs_and_keeps_pictures(protocol: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = RunConfig("sngan", "hvadam", "smoke", options={"lr": 1e-3}, protocol=protocol)
    record = run(config, store)
    assert record.status == "done", record.reason
    assert {"frechet", "frechet_sd", "diversity", "loss"} == set(record.test)
    assert len(record.curve) == 1 + tasks.get("sngan").scales["smoke"]["evaluations"]
    assert len(record.artifacts) == len(record.curve)
    last = artifacts(store, config)[record.artifacts[-1]]
    assert Image.open(io.BytesIO(last)).size == (128, 128)
    best = min((point.valid for point in record.curve), key=lambda valid: valid["frechet"])
    assert (record.test == best) == (protocol == "inherited")


@pytest.mark.parametrize(("contender", "protocol"), [("adam", "standard"), ("hvadam", "inherited")])
def test_killed_and_resumed_is_never_killed(contender: str, protocol: str, tmp_path: Path) -> None:
    asked = RunConfig("sngan", contender, "smoke", options={"lr": 1e-3}, protocol=protocol)
    whole, killed = (Store(tmp_path / name) for name in ("whole", "killed"))
    expected = run(asked, whole)
    assert expected.status == "done"
    killer = Killer(7, 14)  # between the generator's steps, and just before one
    for _ in range(2):
        with pytest.raises(KilledError):
            run(asked, killed, watcher=killer, checkpoint_seconds=0)
    assert essence(run(asked, killed, checkpoint_seconds=0)) == essence(expected)
    assert artifacts(killed, asked) == artifacts(whole, asked)


@pytest.mark.slow
def test_training_brings_samples_nearer() -> None:
    one = problem(iterations=60, width=8)
    before = one.evaluate("valid")["frechet"]
    train(one, one.steps, lr=1e-3)
    assert one.evaluate("valid")["frechet"] < 0.5 * before


def test_the_generator_moves_after_every_fifth_batch() -> None:
    one = problem()
    names = [[u.network for u in one.updates(one.batch(step))] for step in range(15)]
    both = [step for step, moved in enumerate(names) if moved == ["discriminator", "generator"]]
    assert both == [4, 9, 14]
    assert names[0] == ["discriminator"]


def test_batches_are_full_flipped_and_the_same_whenever_asked_for() -> None:
    one = problem(batch_size=50)  # 360 images: the last 10 of each epoch are left out
    assert one.batches == 7
    epoch = torch.cat([one.chosen(step) for step in range(7)])
    assert len(epoch.unique()) == 350
    batch, again = one.batch(4), one.batch(4)
    for part, same in zip(batch[:2], again[:2], strict=True):
        assert torch.equal(part, same)
    assert batch.moving is not None
    assert again.moving is not None
    for one_draw, other in ((batch.against, again.against), (batch.moving, again.moving)):
        assert all(torch.equal(a, b) for a, b in zip(one_draw, other, strict=True))
    assert not torch.equal(batch.against[0], batch.moving[0])
    pictures = one.parts["train"][0]
    plain = pictures(one.chosen(4))
    flipped = (batch.real != plain).flatten(1).any(1)
    assert 10 < flipped.sum() < 40
    assert torch.equal(torch.where(flipped[:, None, None, None], plain.flip(3), plain), batch.real)
    assert torch.equal(batch.labels, pictures.labels[one.chosen(4)])
    with pytest.raises(ValueError, match=r"batch_size must be at most 360.*got 361"):
        problem(batch_size=361)


class Judge(nn.Module):
    """Gives the scores it was told to, call by call."""

    def __init__(self, *scores: list[float]) -> None:
        super().__init__()
        self.scores = iter(scores)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.tensor(next(self.scores))


def test_losses_are_hinges() -> None:
    one = problem()
    one.discriminator = Judge([0.25, 3.0], [0.5, -2.0], [0.5, 1.0])  # real, samples, samples
    losses = [loss.item() for loss, _ in one.updates(one.batch(4))]
    assert losses == [0.75 / 2 + 1.5 / 2, -0.75]


def test_classes_tell_in_both_networks() -> None:
    one = problem()
    for network in one.networks.values():
        network.eval()
    latents = torch.randn(1, one.latent).expand(2, -1)
    images = one.generator(latents, torch.tensor([3, 4]))
    assert not torch.allclose(images[0], images[1])
    same = images[:1].expand(2, -1, -1, -1)
    judge: Any = one.discriminator
    scores = judge(same, torch.tensor([3, 4]))
    features = torch.relu(judge.blocks(same))[0].sum((1, 2))
    rows = judge.embedding(torch.tensor([3, 4]))
    expected = (rows[1] - rows[0]) @ features
    assert (scores[1] - scores[0]).item() == pytest.approx(expected.item(), abs=1e-5)


def test_inherited_quirks_are_not_standard() -> None:
    standard, inherited = problem(), problem("inherited")
    assert len(inherited.parts["train"][1]) == 400
    assert inherited.parts["valid"] is inherited.parts["test"]
    train_part, valid = (set(standard.parts[s][1].tolist()) for s in ("train", "valid"))
    assert len(train_part) == 360
    assert not train_part & valid
    assert not inherited.stretch
    # Where a shortcut passes on what a ReLU let through, negative inputs leave no trace.
    negative = -torch.rand(2, 4, 8, 8)
    for one, alike in ((standard, False), (inherited, True)):
        judge: Any = one.discriminator.eval()
        last = judge.blocks[-1]
        assert torch.allclose(last(negative), last(2 * negative)) == alike


def test_the_published_result_is_the_best_point() -> None:
    one = problem("inherited")
    first = one.evaluate("valid")
    end: Any = one.generator.get_submodule("end")
    nn.init.constant_(end.bias, 5.0)  # all white
    assert one.evaluate("valid")["frechet"] > first["frechet"]
    resumed = problem("inherited")
    resumed.load_state_dict(one.state_dict())
    assert one.evaluate("test") == resumed.evaluate("test") == first
