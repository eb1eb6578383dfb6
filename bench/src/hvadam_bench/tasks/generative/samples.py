"""Generators of images: the data, the batches and the measures that their tasks share.

The measure that counts is the Fréchet distance of samples to real images ("frechet", less is
better). With Inception's features it is also given as "fid"; with the small networks of
`hvadam_bench.data.features` it is comparable within this project only. "frechet_sd" is
the noise of the measure itself, by bootstrap over the samples. "diversity" is the samples' mean
deviation from sample to sample, relative to that of real images: near 0 they are all the same.

Every tenth training image is held out for validation, the same ones in every run, and the test is
against the test images. Under protocol "inherited" nothing is held out, and validation is against
the test images too, or against what a subclass says was published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from hvadam_bench.data import features
from hvadam_bench.data.features import Moments, distance, noise
from hvadam_bench.data.images import Images
from hvadam_bench.tasks._images import as_bytes, first, held_out, png
from hvadam_bench.tasks._problem import seeded_generator, shuffled
from hvadam_bench.tasks._spec import Problem, Settings, Split, fit_batch

# Samples of a generator that works differ about as much as real images do, or half as much; those
# of one that gives a single image for everything differ by a few hundredths of that.
COLLAPSED = 0.1
_CHUNK = 500
_GRID = 8  # samples along a side of the picture


class Pictures:
    """Images by number, in [-1, 1] at the networks' size."""

    def __init__(self, images: Images, size: int) -> None:
        pixels = torch.tensor(images.pixels)
        self.labels = torch.tensor(images.labels)
        # Shrunk once, but enlarged when asked for: whichever takes less memory.
        self.pixels = features.resized(pixels, size) if size < pixels.shape[2] else pixels
        self.size = size

    def __call__(self, chosen: Tensor) -> Tensor:
        return features.resized(self.pixels[chosen], self.size).float() / 127.5 - 1


class Reference(NamedTuple):
    """The moments and the deviation of real images, which samples are held against."""

    moments: Moments
    deviation: float


class GenerativeProblem(Problem):
    """A generator's data and measures; subclasses add networks, losses and `sample`.

    Args:
        settings: "data", "train_images", "size", "batch_size", "samples" and "features" are read.
        seed: The run's.
        protocol: "standard" or "inherited".

    Attributes:
        stretch: Whether images are measured from each one's darkest to its brightest value.
    """

    stretch = False

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        self.seed = seed
        self.inherited = protocol == "inherited"
        self.samples: int = settings["samples"]
        name = settings["data"]
        data = first(name, features.images(name), settings["train_images"], None)
        train = Pictures(data.train, settings["size"])
        test = Pictures(data.test, settings["size"])
        self.channels: int = train.pixels.shape[1]
        self.parts = held_out(train, test, (len(data.train), len(data.test)), self.inherited)
        count = len(self.parts["train"][1])
        self.batch_size = fit_batch(settings, count)
        self.batches = math.ceil(count / self.batch_size)
        self.is_fid = settings["features"] == "inception"
        self.features = features.inception() if self.is_fid else features.small(name)
        self._references: dict[Split, Reference] = {}

    def chosen(self, step: int) -> Tensor:
        """Return the numbers of a step's real images."""
        epoch, place = divmod(step, self.batches)
        indices = self.parts["train"][1]
        order = shuffled(len(indices), self.seed, epoch)
        return indices[order[place * self.batch_size : (place + 1) * self.batch_size]]

    def real(self, step: int) -> Tensor:
        """Return the real images of a step."""
        return self.parts["train"][0](self.chosen(step))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Make new images in [-1, 1], in eval mode."""
        raise NotImplementedError

    @torch.no_grad()
    def measured(self, split: Split) -> dict[str, float]:
        """Return all measures but the loss."""
        generator = seeded_generator("samples", self.seed, split)
        shown = [
            self.sample(min(_CHUNK, self.samples - done), generator)
            for done in range(0, self.samples, _CHUNK)
        ]
        found = torch.cat([self._seen(part) for part in shown])
        if not found.isfinite().all():
            return {"frechet": math.nan}
        reference = self._reference(split)
        value = distance(Moments.of(found), reference.moments)
        return {
            "frechet": value,
            **({"fid": value} if self.is_fid else {}),
            "frechet_sd": noise(found, reference.moments, generator),
            "diversity": _deviation(torch.cat(shown[:2])) / reference.deviation,
        }

    def collapsed(self, measures: Mapping[str, float]) -> bool:
        return measures["diversity"] < COLLAPSED

    @torch.no_grad()
    def artifacts(self) -> dict[str, bytes]:
        shown = self.sample(_GRID**2, seeded_generator("picture", self.seed))
        return {"samples.png": png(as_bytes(shown, stretch=False))}

    def _seen(self, images: Tensor) -> Tensor:
        return self.features(as_bytes(images, self.stretch)).double()

    def _reference(self, split: Split) -> Reference:
        if split not in self._references:
            pictures, indices = self.parts[split]
            real = torch.cat([self._seen(pictures(part)) for part in indices.split(_CHUNK)])
            deviation = _deviation(pictures(indices[: 2 * _CHUNK]))
            self._references[split] = Reference(Moments.of(real), deviation)
        return self._references[split]


def _deviation(images: Tensor) -> float:
    return images.std(0).mean().item()


def doublings(who: str, size: int) -> int:
    """Return how often images of 4×4 are doubled to have a size, refused by name if they cannot."""
    found = size.bit_length() - 3
    if found < 1 or 4 * 2**found != size:
        raise ValueError(f"{who}: size must be a power of two from 8 on, got {size}.")
    return found
