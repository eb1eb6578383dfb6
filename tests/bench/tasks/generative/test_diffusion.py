"""Diffusion's maths against closed forms, its network, its average, and whether it learns."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from hvadam_bench import tasks
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.running.training import Training
from hvadam_bench.tasks.generative.diffusion import (
    VLB_WEIGHT,
    Diffusion,
    DiffusionProblem,
    cosine_schedule,
)
from hvadam_bench.tasks.generative.unet import UNet

CHAINS = {"whole": Diffusion.cosine(1000), "respaced": Diffusion.cosine(1000).respaced(15)}
SMOKE = RunConfig("diffusion", "hvadam", "smoke", options={"lr": 1e-3})
whole_and_respaced = pytest.mark.parametrize("chain", CHAINS.values(), ids=list(CHAINS))


def draws(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_network_starts_at_zero_and_sees_images_alone_and_their_times() -> None:
    network = UNet(1, 8, 8, (1, 2), 1, (4,), heads=2)
    images, times = torch.randn(3, 1, 8, 8), torch.tensor([0.0, 300.0, 300.0])
    images[2] = images[0]
    assert torch.equal(network(images, times), torch.zeros(3, 2, 8, 8))
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.3)
    found = network(images, times)
    assert torch.allclose(found[1:], network(images[1:], times[1:]), atol=1e-5)
    assert not torch.allclose(found[0], found[2], atol=1e-2)


def test_the_cosine_schedule_is_its_formula() -> None:
    steps = 4000
    found = cosine_schedule(steps)

    def f(t: int) -> float:
        return math.cos((t / steps + 0.008) / 1.008 * math.pi / 2) ** 2

    expected = [f(t + 1) / f(0) for t in range(steps)]
    assert found[:-1].tolist() == pytest.approx(expected[:-1], rel=1e-9)
    assert found[-1] / found[-2] == pytest.approx(1 - 0.999)  # where the formula says 0


@whole_and_respaced
def test_a_step_back_given_the_image_is_bayes(chain: Diffusion) -> None:
    t = torch.arange(1, len(chain))
    start, noisy = draws(2, len(t), 1, 1, 1)
    found = chain.posterior(start, noisy, t)
    # x_{t-1} is N(√before x_0, 1 - before), and x_t given it N(√keep x_{t-1}, 1 - keep).
    before = chain.signal[t - 1].view(-1, 1, 1, 1)
    keep = chain.signal[t].view(-1, 1, 1, 1) / before
    precision = 1 / (1 - before) + keep / (1 - keep)
    mean = (before.sqrt() * start / (1 - before) + keep.sqrt() * noisy / (1 - keep)) / precision
    assert torch.allclose(found.mean, mean)
    assert torch.allclose(found.log_variance, -precision.log())


@whole_and_respaced
def test_variances_lie_between_their_bounds_in_logarithms(chain: Diffusion) -> None:
    t = torch.arange(1, len(chain))
    start, noisy = draws(2, len(t), 1, 1, 1)
    nothing = torch.zeros_like(start)
    low, middle, high = (
        chain.back(torch.cat([nothing, nothing + v], 1), start, noisy, t).log_variance
        for v in (-1, 0, 1)
    )
    assert torch.allclose(low, chain.posterior(start, noisy, t).log_variance)
    beta = 1 - chain.signal[1:] / chain.signal[:-1]
    assert torch.allclose(high.flatten(), beta.log())
    assert torch.allclose(middle, (low + high) / 2)


def test_terms_of_the_bound_are_divergences() -> None:
    chain = CHAINS["whole"]
    t = torch.tensor([1, 10, 500, 999])
    start, noise, guess, place = draws(4, len(t), 1, 1, 1)
    noisy = chain.noisy(start, t, noise)
    output = torch.cat([guess, place], 1)
    one = chain.posterior(start, noisy, t)
    other = chain.back(output, chain.start(output, noisy, t), noisy, t)
    # Integrated: mean and both deviations of the true step back are inside 12 deviations of it.
    sizes = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    x = one.mean + (one.log_variance / 2).exp() * sizes

    def log_density(which: Any) -> Tensor:
        scale = (which.log_variance / 2).exp()
        return torch.distributions.Normal(which.mean, scale).log_prob(x)

    inside = log_density(one).exp() * (log_density(one) - log_density(other))
    expected = torch.trapezoid(inside, x).flatten() / math.log(2)
    assert torch.allclose(chain.bits(output, start, noisy, t), expected, rtol=1e-6)


def test_the_first_term_of_the_bound_is_the_likelihood_of_bytes() -> None:
    chain = CHAINS["whole"]
    levels = torch.tensor([0, 1, 128, 254, 255], dtype=torch.float64)
    start = (levels / 127.5 - 1).view(-1, 1, 1, 1)
    t = torch.zeros(len(start), dtype=torch.long)
    noisy = chain.noisy(start, t, draws(*start.shape))
    output = torch.cat([draws(*start.shape, seed=1), torch.zeros_like(start)], 1)
    found = chain.back(output, chain.start(output, noisy, t), noisy, t)
    normal = torch.distributions.Normal(found.mean, (found.log_variance / 2).exp())
    edges = normal.cdf(start + torch.tensor([-1, 1]) / 255)
    edges[levels == 0, ..., 0], edges[levels == 255, ..., 1] = 0, 1
    expected = -edges.diff(dim=-1).clamp(min=1e-12).log2().flatten()
    assert torch.allclose(chain.bits(output, start, noisy, t), expected)


def test_the_loss_has_the_whole_bound_in_it_and_its_mean_follows_the_error_alone() -> None:
    chain = Diffusion.cosine(20)
    t = torch.arange(20)  # each step once, so that the estimate is the sum
    start, noise = draws(2, 20, 1, 4, 4).clamp(-1, 1)
    output = draws(20, 2, 4, 4).requires_grad_()
    loss = chain.hybrid(lambda images, times: output, start, t, noise).mean()
    guess = output[:, :1]
    simple = (guess - noise).square().mean()
    bound = chain.bits(output, start, chain.noisy(start, t, noise), t).sum()
    assert loss.item() == pytest.approx((simple + VLB_WEIGHT * bound).item())

    slopes = [torch.autograd.grad(of, output, retain_graph=True)[0] for of in (loss, simple, bound)]
    (guessed, placed), (alone, _), (pulled, pushed) = (slope.unbind(1) for slope in slopes)
    assert torch.allclose(guessed, alone, rtol=1e-12)
    assert pulled.abs().max() > 0  # what the bound would have done to it
    assert torch.allclose(placed, VLB_WEIGHT * pushed)


def test_ddim_keeps_the_noise_and_finds_the_image() -> None:
    chain = CHAINS["respaced"]
    start, noise = draws(4, 1, 8, 8).clamp(-1, 1), draws(4, 1, 8, 8, seed=1)
    seen: list[Tensor] = []

    def oracle(images: Tensor, times: Tensor) -> Tensor:
        t = (chain.clock[:, None] == times).int().argmax(0)
        signal = chain.signal[t].view(-1, 1, 1, 1)
        assert torch.allclose(images, chain.noisy(start, t, noise), atol=1e-9)
        seen.append(times)
        return torch.cat([(images - signal.sqrt() * start) / (1 - signal).sqrt()] * 2, 1)

    first = chain.noisy(start, torch.full((4,), len(chain) - 1), noise)
    generator = torch.Generator()
    before = generator.get_state()
    found = chain.sample(oracle, first, "ddim", generator)
    assert torch.allclose(found, start, atol=1e-12)
    assert torch.equal(found, chain.sample(oracle, first, "ddim", generator))
    assert torch.equal(generator.get_state(), before)  # nothing is drawn
    middles = [(2 * i + 1) * 1000 // 30 for i in reversed(range(15))]
    assert [times[0].item() for times in seen[:15]] == middles
    assert torch.equal(CHAINS["whole"].respaced(1000).signal, CHAINS["whole"].signal)


@pytest.mark.parametrize(("sampler", "steps"), [("ddim", 100), ("ancestral", 1000)])
def test_noise_becomes_data_if_the_network_is_perfect(sampler: Any, steps: int) -> None:
    deviation = 0.2
    chain = CHAINS["whole"].respaced(steps)

    def perfect(images: Tensor, times: Tensor) -> Tensor:
        """E[ε | x_t] of images whose pixels are N(0, 0.2²)."""
        signal = CHAINS["whole"].signal[times.round().long()].view(-1, 1, 1, 1)
        noise = (1 - signal).sqrt() / (signal * deviation**2 + 1 - signal) * images
        return torch.cat([noise, torch.full_like(noise, -1.0)], 1)

    found = chain.sample(perfect, draws(50, 1, 20, 20), sampler, torch.Generator().manual_seed(1))
    assert found.mean().item() == pytest.approx(0, abs=5 * deviation / len(found.flatten()) ** 0.5)
    assert found.std().item() == pytest.approx(deviation, rel=0.03)


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
    assert {len(one.batch(step)[0]) for step in range(15)} == {50}
    assert all(torch.equal(a, b) for a, b in zip(one.batch(9), one.batch(9), strict=True))
    assert not torch.equal(one.batch(9)[2], one.batch(10)[2])
    times = torch.cat([one.batch(step)[1] for step in range(100)])
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
