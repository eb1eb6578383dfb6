"""The digits as problems: networks, batches, measures, and the bound of the autoencoder."""

from __future__ import annotations

import math

import pytest
import torch
from made_problems import smoke
from torch.distributions import Bernoulli, Normal, kl_divergence

from hvadam_bench.tasks.digits.problems import DigitsProblem, VAEProblem, negative_bound


def problem(name: str, seed: int = 0) -> DigitsProblem:
    built = smoke(name, seed)
    assert isinstance(built, DigitsProblem)
    return built


@pytest.mark.parametrize("name", ["digits_cnn", "digits_mlp"])
def test_network_depends_on_the_seed_alone(name: str) -> None:
    torch.rand(1)  # away from any state that a seed sets
    before = torch.get_rng_state()
    networks = [problem(name, seed).model for seed in (0, 0, 1)]
    weights = [torch.cat([p.flatten() for p in network.parameters()]) for network in networks]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_hold_each_image_at_most_once() -> None:
    one = problem("digits_mlp")
    train = one.parts["train"]
    count = len(train.labels)
    one.parts = one.parts.copy()
    one.parts["train"] = train._replace(pixels=torch.arange(count))
    first, second = (
        torch.cat([one.batch(epoch * one.batches + i).pixels for i in range(one.batches)])
        for epoch in (0, 1)
    )
    assert len(first.unique()) == len(first) == count - count % one.batch_size
    assert not torch.equal(first, second)


def test_metrics_are_over_all_images_in_eval_mode() -> None:
    class AlwaysThree(torch.nn.Module):
        """Sure of a three in eval mode, undecided in training."""

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(len(pixels), 10)
            logits[:, 3] = 0.0 if self.training else math.log(11)
            return logits

    one = problem("digits_mlp")
    one.model = AlwaysThree()
    found = one.evaluate("test")
    share = (one.parts["test"].labels == 3).double().mean().item()
    expected = share * -math.log(11 / 20) + (1 - share) * math.log(20)
    assert found["accuracy"] == pytest.approx(100 * share)
    assert found["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_bound_is_likelihood_minus_divergence() -> None:
    one = problem("digits_vae")
    assert isinstance(one, VAEProblem)
    pixels, noise = one.batch(3)
    assert set(pixels.unique().tolist()) == {0.0, 1.0}
    logits, mean, log_scale = one.model(pixels, noise)
    code = Normal(mean, log_scale.exp())
    likelihood = Bernoulli(logits=logits).log_prob(pixels).sum(1)
    divergence = kl_divergence(code, Normal(0.0, 1.0)).sum(1)
    expected = (divergence - likelihood).mean()
    torch.testing.assert_close(negative_bound(one.model, pixels, noise), expected)


def test_noise_belongs_to_the_step() -> None:
    one = problem("digits_vae")
    first, again, next_one = (one.batch(step)[1] for step in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, next_one)
