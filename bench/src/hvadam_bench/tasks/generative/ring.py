"""A small GAN: points on a ring of eight heaps, drawn anew for every batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._problem import ModelProblem, seeded, seeded_generator
from hvadam_bench.tasks._spec import Settings, Split, Update

HEAPS, RADIUS, SPREAD = 8, 2.0, 0.2  # around the ring; the standard deviation of each
EVALUATED = 500  # points


class RingBatch(NamedTuple):
    """Real points, and what the generator makes others from."""

    real: Tensor
    latents: Tensor


class RingGANProblem(ModelProblem):
    """A perceptron that makes points, against one that tells them from real ones.

    Each step moves the critic, then the generator, by the losses of Goodfellow et al. (2014) with
    the generator's not saturating. "loss" is the energy distance of made points to real ones.

    Args:
        settings: "width", "latent", "batch_size", "steps" and "warmup" (a share) are read.
        seed: The run's.
        protocol: Not read.
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        width, self.latent = settings["width"], settings["latent"]
        super().__init__(lambda: tanh_mlp([2, width, width, 1]), settings, seed)
        self.batch_size, self.steps = settings["batch_size"], settings["steps"]
        self.critic: nn.Module = self.model
        self.generator = seeded(seed + 1, lambda: tanh_mlp([self.latent, width, width, 2]))
        self.networks = {"critic": self.critic, "generator": self.generator}
        self._held = {split: self._draw(EVALUATED, split) for split in ("train", "valid", "test")}

    def batch(self, step: int, variant: int = 0) -> RingBatch:
        return self._draw(self.batch_size, self.seed, step)

    def updates(self, batch: RingBatch) -> Iterator[Update]:
        with torch.no_grad():
            made = self.generator(batch.latents)
        loss = softplus(-self.critic(batch.real)).mean() + softplus(self.critic(made)).mean()
        yield Update(loss, "critic")
        made = self.generator(batch.latents)
        yield Update(softplus(-self.critic(made)).mean(), "generator")

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        real, latents = self._held[split]
        return {"loss": energy_distance(self.generator(latents), real)}

    def _draw(self, count: int, *key: object) -> RingBatch:
        generator = seeded_generator("ring", *key)
        angles = torch.randint(HEAPS, (count,), generator=generator) * (2 * math.pi / HEAPS)
        centres = RADIUS * torch.stack([angles.cos(), angles.sin()], 1)
        real = centres + SPREAD * torch.randn(count, 2, generator=generator)
        return RingBatch(real, torch.randn(count, self.latent, generator=generator))


def energy_distance(one: Tensor, other: Tensor) -> float:
    """Return 2E|X - Y| - E|X - X'| - E|Y - Y'| of two sets of points, 0 of equal ones.

    Example:
        >>> energy_distance(torch.zeros(3, 2), torch.tensor([[3.0, 4.0]]))
        10.0
    """
    pairs = ((one, other), (one, one), (other, other))
    apart, within, beyond = (torch.cdist(a, b).mean().item() for a, b in pairs)
    return 2 * apart - within - beyond
