"""The bound of the variational autoencoder, held to torch's distributions."""

from __future__ import annotations

import torch
from made_problems import smoke
from torch.distributions import Bernoulli, Normal, kl_divergence

from hvadam_bench.problems.vae import VAEProblem, negative_bound


def test_the_bound_is_likelihood_minus_divergence() -> None:
    problem = smoke("digits_vae")
    assert isinstance(problem, VAEProblem)
    batch = problem.batch(3)
    assert set(batch.pixels.unique().tolist()) == {0.0, 1.0}
    logits, mean, log_scale = problem.network(*batch)
    code = Normal(mean, log_scale.exp())
    likelihood = Bernoulli(logits=logits).log_prob(batch.pixels).sum(1)
    divergence = kl_divergence(code, Normal(0.0, 1.0)).sum(1)
    expected = (divergence - likelihood).mean()
    torch.testing.assert_close(negative_bound(problem.network, batch), expected)


def test_noise_belongs_to_the_step() -> None:
    problem = smoke("digits_vae")
    first, again, next_one = (problem.batch(step).noise for step in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, next_one)
