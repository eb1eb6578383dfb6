"""Wasserstein GANs with DCGAN's networks: what WGAN and WGAN-GP share.

The critic D ascends E[D(x)] - E[D(G(z))] on every batch, the generator G ascends E[D(G(z))] on the
first of every five, with the same z. WGAN keeps the critic's weights in a box, WGAN-GP adds
10 E[(‖∇D(x̃)‖ - 1)²] at points x̃ between real images and samples.

Protocol "inherited" has the published quirks: WGAN's critic ends with a sigmoid, and its batch-norm
is clamped to the box as well, which leaves a hundredth of the signal at every layer; WGAN-GP's has
batch norm, by which one image's gradient depends on the others. "standard" has no sigmoid, clamps
the convolutions only, and normalises each image alone under the penalty. Also as published,
"inherited" samples are held against the training images, each image stretched from its darkest to
its brightest value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from hvadam_bench.models import dcgan
from hvadam_bench.problems.generative import GenerativeProblem
from hvadam_bench.tasks._seeds import seeded, seeded_generator
from hvadam_bench.tasks._spec import Split, Update

_SHOWN = 500  # images that the loss is evaluated on


class Batch(NamedTuple):
    """Real images, latent vectors, where between the two to look, and whether G moves too."""

    real: Tensor
    latents: Tensor
    mix: Tensor
    both: bool


class WassersteinProblem(GenerativeProblem):
    """A critic, whose slope is bounded, and a generator.

    Args:
        settings: Besides those of all generators, "epochs", "latent", "width" and "critic_steps",
            and "clip" or "penalty".
        seed: The run's.
        protocol: "standard" or "inherited".
        kind: How the critic is kept from growing.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        seed: int,
        protocol: str,
        kind: Literal["clip", "penalty"],
    ) -> None:
        super().__init__(settings, seed, protocol)
        self.steps = settings["epochs"] * self.batches
        if self.inherited:
            self.parts["valid"] = self.parts["test"] = self.parts["train"]
            self.stretch = True
        self.kind = kind
        self.limit: float = settings[kind]
        self.latent: int = settings["latent"]
        self.critic_steps: int = settings["critic_steps"]
        size, width = settings["size"], settings["width"]
        clip = kind == "clip"
        norm: dcgan.Norm = "batch" if clip or self.inherited else "layer"
        head: dcgan.Head = "linear" if not clip else "sigmoid" if self.inherited else "conv"
        self.critic = seeded(seed, lambda: dcgan.Critic(width, size, self.channels, norm, head))
        self.generator = seeded(
            seed + 1, lambda: dcgan.Generator(self.latent, width, size, self.channels)
        )
        self.networks = {"critic": self.critic, "generator": self.generator}
        self.boxed = [
            p
            for module in self.critic.modules()
            for p in module.parameters(recurse=False)
            if clip and (self.inherited or isinstance(module, nn.Conv2d))
        ]

    def batch(self, step: int, variant: int = 0) -> Batch:
        real = self.real(step)
        generator = seeded_generator("latents", self.seed, step)
        latents = torch.randn(len(real), self.latent, generator=generator)
        mix = torch.rand(len(real), 1, 1, 1, generator=generator)
        return Batch(real, latents, mix, step % self.batches % self.critic_steps == 0)

    def updates(self, batch: Batch) -> Iterator[Update]:
        device = self._device
        real, latents, mix = (t.to(device) for t in batch[:3])
        with torch.no_grad():
            fake = self.generator(latents)
        loss = self.critic(fake).mean() - self.critic(real).mean()
        if self.kind == "penalty":
            loss = loss + self.limit * self._penalty(mix * real + (1 - mix) * fake)
        yield Update(loss, "critic")
        with torch.no_grad():
            for parameter in self.boxed:
                parameter.clamp_(-self.limit, self.limit)
        if batch.both:
            yield Update(-self.critic(self.generator(latents)).mean(), "generator")

    @torch.no_grad()
    def sample(self, count: int, generator: Generator) -> Tensor:
        self.generator.eval()
        latents = torch.randn(count, self.latent, generator=generator)
        return self.generator(latents.to(self._device)).cpu()

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        self.critic.eval()
        pictures, indices = self.parts[split]
        real = pictures(indices[:_SHOWN]).to(self._device)
        fake = self.sample(_SHOWN, seeded_generator("loss", self.seed)).to(self._device)
        loss = self.critic(fake).mean() - self.critic(real).mean()
        return {**self.measured(split), "loss": loss.item()}

    def _penalty(self, between: Tensor) -> Tensor:
        between.requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).square().mean()

    @property
    def _device(self) -> torch.device:
        return next(self.generator.parameters()).device
