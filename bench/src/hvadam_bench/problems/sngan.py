"""The problem of SN-GAN: hinge losses, told the classes.

The discriminator D descends E[max(0, 1 - D(x, c))] + E[max(0, 1 + D(G(z, c), c))] on every batch.
After every fifth, the generator G descends -E[D(G(z, c), c)] with z and c of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import relu

from hvadam_bench.models import sngan
from hvadam_bench.problems.generative import GenerativeProblem
from hvadam_bench.tasks._images import random_flip
from hvadam_bench.tasks._seeds import seeded, seeded_generator
from hvadam_bench.tasks._spec import Split, Update

_CLASSES = 10  # of every data set that has features to measure by
_SHOWN = 500  # images, at most, that the loss is evaluated on


class Drawn(NamedTuple):
    """Latent vectors and classes to make images of."""

    latents: Tensor
    labels: Tensor


class Batch(NamedTuple):
    """Real images and their classes, what D sees samples of, and what G moves on, if it does."""

    real: Tensor
    labels: Tensor
    against: Drawn
    moving: Drawn | None


class SpectralProblem(GenerativeProblem):
    """A discriminator and a generator that are told the classes.

    Args:
        settings: Besides those of all generators, "iterations" of G, "critic_steps" of D for each
            of them, "latent" and "width".
        seed: The run's.
        protocol: "standard" or "inherited".
    """

    def __init__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> None:
        super().__init__(settings, seed, protocol)
        # As published: a batch that is not full is dropped.
        self.batches = len(self.parts["train"][1]) // self.batch_size
        self.critic_steps: int = settings["critic_steps"]
        self.steps = settings["iterations"] * self.critic_steps
        self.latent: int = settings["latent"]
        width, size = settings["width"], settings["size"]
        shortcut: sngan.Shortcut = "rectified" if self.inherited else "plain"
        self.discriminator = seeded(
            seed, lambda: sngan.Discriminator(width, self.channels, _CLASSES, shortcut)
        )
        self.generator = seeded(
            seed + 1, lambda: sngan.Generator(self.latent, width, size, self.channels, _CLASSES)
        )
        self.networks = {"discriminator": self.discriminator, "generator": self.generator}
        self.best: dict[str, float] = {}  # of the measures under "inherited"

    def batch(self, step: int, variant: int = 0) -> Batch:
        chosen = self.chosen(step)
        pictures = self.parts["train"][0]
        generator = seeded_generator("batch", self.seed, step)
        real = random_flip(pictures(chosen), generator)
        against = self._drawn(len(chosen), generator)
        moves = step % self.critic_steps == self.critic_steps - 1
        moving = self._drawn(len(chosen), generator) if moves else None
        return Batch(real, pictures.labels[chosen], against, moving)

    def updates(self, batch: Batch) -> Iterator[Update]:
        yield Update(self._hinge(batch.real, batch.labels, batch.against), "discriminator")
        if batch.moving is not None:
            fake, labels = self._made(batch.moving)
            yield Update(-self.discriminator(fake, labels).mean(), "generator")

    @torch.no_grad()
    def sample(self, count: int, generator: Generator) -> Tensor:
        self.generator.eval()
        return self._made(self._drawn(count, generator))[0].cpu()

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        if self.inherited and split == "test" and self.best:
            return self.best
        self.discriminator.eval()
        self.generator.eval()
        pictures, indices = self.parts[split]
        shown = indices[:_SHOWN]
        drawn = self._drawn(len(shown), seeded_generator("loss", self.seed))
        loss = self._hinge(pictures(shown), pictures.labels[shown], drawn)
        measures = {**self.measured(split), "loss": loss.item()}
        if self.inherited:
            self.best = min(self.best or measures, measures, key=lambda one: one["frechet"])
        return measures

    def state_dict(self) -> dict[str, Any]:
        return {"best": dict(self.best)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best = dict(state["best"])

    def _hinge(self, real: Tensor, labels: Tensor, drawn: Drawn) -> Tensor:
        with torch.no_grad():
            fake, of_fake = self._made(drawn)
        of_real = self.discriminator(real.to(self._device), labels.to(self._device))
        return relu(1 - of_real).mean() + relu(1 + self.discriminator(fake, of_fake)).mean()

    def _made(self, drawn: Drawn) -> tuple[Tensor, Tensor]:
        latents, labels = (t.to(self._device) for t in drawn)
        return self.generator(latents, labels), labels

    def _drawn(self, count: int, generator: Generator) -> Drawn:
        latents = torch.randn(count, self.latent, generator=generator)
        return Drawn(latents, torch.randint(_CLASSES, (count,), generator=generator))

    @property
    def _device(self) -> torch.device:
        return next(self.generator.parameters()).device
