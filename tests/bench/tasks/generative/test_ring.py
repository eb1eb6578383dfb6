"""The small GAN: who moves on which loss, and how far its points are from real ones."""

from __future__ import annotations

import math

import pytest
import torch
from made_problems import smoke

from hvadam_bench.tasks.generative.ring import RingGANProblem, energy_distance


def problem() -> RingGANProblem:
    found = smoke("ring_gan")
    assert isinstance(found, RingGANProblem)
    return found


def test_real_points_lie_on_the_ring() -> None:
    real, latents = problem().batch(3)
    assert real.shape == (32, 2)
    assert latents.shape == (32, 4)
    assert real.norm(dim=1).mean().item() == pytest.approx(2, abs=0.1)


def test_the_critic_moves_first_and_each_loss_is_of_its_own_network() -> None:
    gan = problem()
    for critic in gan.networks["critic"].parameters():
        critic.data.zero_()
    one, other = gan.updates(gan.batch(0))
    assert (one.network, other.network) == ("critic", "generator")
    assert one.loss.item() == pytest.approx(2 * math.log(2))
    assert other.loss.item() == pytest.approx(math.log(2))
    one.loss.backward()
    assert all(p.grad is None for p in gan.networks["generator"].parameters())


def test_distances_tell_a_collapse_from_the_ring() -> None:
    gan = problem()
    real, again = gan.batch(0).real, gan.batch(1).real
    near, collapsed = energy_distance(real, again), energy_distance(real, real[:1])
    assert energy_distance(real, real) == pytest.approx(0, abs=1e-6)
    assert 0 < near < 0.4 < collapsed
    before = gan.evaluate("valid")["loss"]
    assert gan.evaluate("test")["loss"] != before


def test_some_training_brings_the_points_nearer() -> None:
    torch.manual_seed(0)
    gan = problem()
    before = gan.evaluate("valid")["loss"]
    optimizers = {
        name: torch.optim.Adam(network.parameters(), 1e-2, betas=(0.5, 0.999))
        for name, network in gan.networks.items()
    }
    for step in range(150):
        for loss, network in gan.updates(gan.batch(step)):
            optimizers[network].zero_grad()
            loss.backward()
            optimizers[network].step()
    assert gan.evaluate("valid")["loss"] < 0.5 * before
