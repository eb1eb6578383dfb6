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

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from hvadam_bench.tasks._problem import seeded, seeded_generator
from hvadam_bench.tasks._spec import Settings, Split, Update
from hvadam_bench.tasks.generative.samples import GenerativeProblem, doublings

Norm = Literal["batch", "layer"]
Head = Literal["conv", "sigmoid", "linear"]

_SHOWN = 500  # images that the loss is evaluated on


class CriticBatch(NamedTuple):
    """Real images, latent vectors, where between the two to look, and whether G moves too."""

    real: Tensor
    latents: Tensor
    mix: Tensor
    both: bool


class WassersteinProblem(GenerativeProblem):
    """A critic, which is kept from growing in one of two ways, and a generator.

    Settings are, besides those of all generators, "epochs", "latent", "width", "critic_steps", and
    "clip" or "penalty".
    """

    def __init__(
        self, kind: Literal["clip", "penalty"], settings: Settings, seed: int, protocol: str
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
        norm: Norm = "batch" if clip or self.inherited else "layer"
        head: Head = "linear" if not clip else "sigmoid" if self.inherited else "conv"
        self.critic: nn.Module = seeded(
            seed, lambda: Critic(width, size, self.channels, norm, head)
        )
        self.generator = seeded(
            seed + 1, lambda: Generator(self.latent, width, size, self.channels)
        )
        self.networks = {"critic": self.critic, "generator": self.generator}
        self.boxed = [
            p
            for module in self.critic.modules()
            for p in module.parameters(recurse=False)
            if clip and (self.inherited or isinstance(module, nn.Conv2d))
        ]

    def batch(self, step: int, variant: int = 0) -> CriticBatch:
        real = self.real(step)
        generator = seeded_generator("latents", self.seed, step)
        latents = torch.randn(len(real), self.latent, generator=generator)
        mix = torch.rand(len(real), 1, 1, 1, generator=generator)
        return CriticBatch(real, latents, mix, step % self.batches % self.critic_steps == 0)

    def updates(self, batch: CriticBatch) -> Iterator[Update]:
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
    def sample(self, count: int, generator: torch.Generator) -> Tensor:
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


class Generator(nn.Module):
    """DCGAN's generator of images in [-1, 1]: transposed convolutions that double the size.

    The size is 8, 16, 32 or 64. There are `width` channels before the last layer, and twice as many
    before each layer earlier.
    """

    def __init__(self, latent: int, width: int, size: int, channels: int) -> None:
        super().__init__()
        widths = _widths(width, size)[::-1]
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent, widths[0], 4, bias=False)]
        for before, after in zip(widths, [*widths[1:], channels], strict=True):
            layers += [nn.BatchNorm2d(before), nn.ReLU()]
            layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1, bias=False)]
        self.layers = nn.Sequential(*layers, nn.Tanh())
        self.apply(_start)

    def forward(self, latents: Tensor) -> Tensor:
        """Return the images of latent vectors."""
        return self.layers(latents[:, :, None, None])


class Critic(nn.Module):
    """DCGAN's critic, which gives each image one number: convolutions that halve the size.

    All convolutions but the first are normalised: over the batch, or over each image alone
    ("layer"), which a penalty on each image's gradient needs to mean what it says.
    """

    def __init__(
        self, width: int, size: int, channels: int, norm: Norm = "batch", head: Head = "conv"
    ) -> None:
        super().__init__()
        widths = _widths(width, size)
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(zip([channels, *widths], widths, strict=False)):
            layers.append(nn.Conv2d(before, after, 4, stride=2, padding=1, bias=False))
            if i > 0:
                layers.append(nn.BatchNorm2d(after) if norm == "batch" else nn.GroupNorm(1, after))
            layers.append(nn.LeakyReLU(0.2))
        if head == "linear":
            layers += [nn.Flatten(), nn.Linear(16 * widths[-1], 1)]
        else:
            layers.append(nn.Conv2d(widths[-1], 1, 4, bias=False))
        if head == "sigmoid":
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)
        self.apply(_start)

    def forward(self, images: Tensor) -> Tensor:
        """Return one number for each image."""
        return self.layers(images).flatten()


def _widths(width: int, size: int) -> list[int]:
    """Return the channels at half the size, a quarter of it, and so on down to 4."""
    return [width * 2**i for i in range(doublings("DCGAN", size))]


def _start(module: nn.Module) -> None:
    """Set DCGAN's initial weights; a linear layer keeps torch's."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)
