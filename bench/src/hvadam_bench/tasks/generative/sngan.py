"""SN-GAN: residual networks that are told the classes, and a discriminator of slope one.

The discriminator D descends E[max(0, 1 - D(x, c))] + E[max(0, 1 + D(G(z, c), c))] on every batch.
After every fifth, the generator G descends -E[D(G(z, c), c)] with z and c of its own.

The discriminator's weights are divided by their largest singular value, found by one power
iteration in each training pass and none in eval mode. Torch's own parametrization does it: its
singular vectors are buffers, so that checkpoints have them and deep copies have their own; they are
drawn once, when the network is built, and its passes draw nothing.

Protocol "inherited" has the published quirks. No image is held out; samples are held against the
test images 50 times, and the best of these is the result, so that it is chosen on the test images.
And the discriminator's blocks apply their first ReLU in place, so that their shortcuts pass on
positive values only. "standard" chooses on training images that are held out, tests once at the
end, and has the shortcuts of residual networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, relu
from torch.nn.utils.parametrizations import spectral_norm

from hvadam_bench.tasks._images import random_flip
from hvadam_bench.tasks._problem import seeded, seeded_generator
from hvadam_bench.tasks._spec import Settings, Split, Update
from hvadam_bench.tasks.generative.samples import GenerativeProblem, doublings

Shortcut = Literal["plain", "rectified"]

_BATCH_NORM_EPS = 1e-4
_SPECTRAL_NORM_EPS = 1e-6
_CLASSES = 10  # of every data set that has features to measure by
_SHOWN = 500  # images, at most, that the loss is evaluated on


Drawn = tuple[Tensor, Tensor]  # latent vectors and classes to make images of


class ClassBatch(NamedTuple):
    """Real images and their classes, what D sees samples of, and what G moves on, if it does."""

    real: Tensor
    labels: Tensor
    against: Drawn
    moving: Drawn | None


class SpectralProblem(GenerativeProblem):
    """A discriminator and a generator that are told the classes.

    Settings are, besides those of all generators, "iterations" of G, "critic_steps" of D for each
    of them, "latent" and "width".
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        super().__init__(settings, seed, protocol)
        # As published: a batch that is not full is dropped.
        self.batches = len(self.parts["train"][1]) // self.batch_size
        self.critic_steps: int = settings["critic_steps"]
        self.steps = settings["iterations"] * self.critic_steps
        self.latent: int = settings["latent"]
        width, size = settings["width"], settings["size"]
        shortcut: Shortcut = "rectified" if self.inherited else "plain"
        self.discriminator: nn.Module = seeded(
            seed, lambda: Discriminator(width, self.channels, _CLASSES, shortcut)
        )
        self.generator = seeded(
            seed + 1, lambda: Generator(self.latent, width, size, self.channels, _CLASSES)
        )
        self.networks = {"discriminator": self.discriminator, "generator": self.generator}
        self.best: dict[str, float] = {}  # of the measures under "inherited"

    def batch(self, step: int, variant: int = 0) -> ClassBatch:
        chosen = self.chosen(step)
        pictures = self.parts["train"][0]
        generator = seeded_generator("batch", self.seed, step)
        real = random_flip(pictures(chosen), generator)
        against = self._drawn(len(chosen), generator)
        moves = step % self.critic_steps == self.critic_steps - 1
        moving = self._drawn(len(chosen), generator) if moves else None
        return ClassBatch(real, pictures.labels[chosen], against, moving)

    def updates(self, batch: ClassBatch) -> Iterator[Update]:
        yield Update(self._hinge(batch.real, batch.labels, batch.against), "discriminator")
        if batch.moving is not None:
            fake, labels = self._made(batch.moving)
            yield Update(-self.discriminator(fake, labels).mean(), "generator")

    @torch.no_grad()
    def sample(self, count: int, generator: torch.Generator) -> Tensor:
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

    def _drawn(self, count: int, generator: torch.Generator) -> Drawn:
        latents = torch.randn(count, self.latent, generator=generator)
        return latents, torch.randint(_CLASSES, (count,), generator=generator)


class Generator(nn.Module):
    """A generator of images of given classes in [-1, 1]: residual blocks that double the size.

    The blocks have four times `width` channels; the size is 8, 16, 32 and so on.
    """

    def __init__(self, latent: int, width: int, size: int, channels: int, classes: int) -> None:
        super().__init__()
        inner = 4 * width
        self.start = nn.Linear(latent, inner * 4 * 4)
        self.blocks = nn.ModuleList(
            Doubling(inner, classes) for _ in range(doublings("SN-GAN", size))
        )
        self.norm = nn.BatchNorm2d(inner, _BATCH_NORM_EPS)
        self.end = nn.Conv2d(inner, channels, 3, padding=1)
        self.apply(_orthogonal)

    def forward(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Return the images of latent vectors and classes."""
        x = self.start(latents).unflatten(1, (-1, 4, 4))
        for block in self.blocks:
            x = block(x, labels)
        return torch.tanh(self.end(relu(self.norm(x))))


class Doubling(nn.Module):
    """A residual block of two 3×3 convolutions, at twice the size."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.first_norm = ClassNorm(channels, classes)
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second_norm = ClassNorm(channels, classes)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """Return the features after the block, at twice the size."""
        y = self.first(_doubled(relu(self.first_norm(x, labels))))
        y = self.second(relu(self.second_norm(y, labels)))
        return y + _doubled(self.shortcut(x))  # a 1×1 convolution is cheaper before, and the same


class ClassNorm(nn.Module):
    """Batch norm with a scale and a shift for each class."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, _BATCH_NORM_EPS, affine=False)
        self.scale = nn.Embedding(classes, channels)
        self.shift = nn.Embedding(classes, channels)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """Return the features, normalised and then scaled and shifted by class."""
        scale, shift = (e(labels)[:, :, None, None] for e in (self.scale, self.shift))
        return self.norm(x) * (1 + scale) + shift


class Discriminator(nn.Module):
    """A discriminator of images and classes, all of whose weights are spectrally normalised.

    Of the features h of an image, it is w·h + b + e·h with e the embedding of the class. The blocks
    have twice `width` channels; what passes by their convolutions is their input as it is
    ("plain") or after the first ReLU ("rectified"), as where that is applied in place.
    """

    def __init__(
        self, width: int, channels: int, classes: int, shortcut: Shortcut = "plain"
    ) -> None:
        super().__init__()
        inner = 2 * width
        self.blocks = nn.Sequential(
            HalvingFirst(channels, inner),
            Block(inner, shortcut, halves=True),
            Block(inner, shortcut, halves=False),
            Block(inner, shortcut, halves=False),
        )
        self.head = nn.Linear(inner, 1)
        self.embedding = nn.Embedding(classes, inner)
        self.apply(_orthogonal)
        for module in list(self.modules()):
            if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
                spectral_norm(module, eps=_SPECTRAL_NORM_EPS)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return one number for each image and its class."""
        features = relu(self.blocks(images)).sum((2, 3))
        return self.head(features).squeeze(1) + (self.embedding(labels) * features).sum(1)


class HalvingFirst(nn.Module):
    """A residual block at half the size, which takes images without a ReLU."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, padding=1)
        self.second = nn.Conv2d(out, out, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of images, at half the size."""
        y = self.second(relu(self.first(x)))
        return avg_pool2d(y, 2) + self.shortcut(avg_pool2d(x, 2))


class Block(nn.Module):
    """A residual block of two ReLUs and 3×3 convolutions, at half the size or the same."""

    def __init__(self, channels: int, shortcut: Shortcut, halves: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, channels, 1) if halves else nn.Identity()
        self.pool = nn.AvgPool2d(2) if halves else nn.Identity()
        self.rectified = shortcut == "rectified"

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after the block."""
        positive = relu(x)
        y = self.second(relu(self.first(positive)))
        return self.pool(y) + self.shortcut(self.pool(positive if self.rectified else x))


def _doubled(images: Tensor) -> Tensor:
    return interpolate(images, scale_factor=2.0)


def _orthogonal(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
        nn.init.orthogonal_(module.weight)
    if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
