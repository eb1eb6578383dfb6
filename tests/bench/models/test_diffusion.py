"""Diffusion's maths against closed forms, and its network."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam_bench.models.diffusion import VLB_WEIGHT, Diffusion, cosine_schedule
from hvadam_bench.models.unet import UNet

CHAINS = {"whole": Diffusion.cosine(1000), "respaced": Diffusion.cosine(1000).respaced(15)}
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
