"""Image classification: the batches, the schedules and the measures that its tasks share.

Accuracies are in percent. Every tenth training image is held out for validation, the same ones in
every run. Under protocol "inherited" none is, and the curve is of the test set, as in the published
experiments, which also chose their best epoch there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from hvadam_bench.data import DataError, load
from hvadam_bench.data.images import ImageData, Images
from hvadam_bench.problems.augment import (
    auto_augment,
    rand_augment,
    random_crop,
    random_flip,
    random_rotation,
)
from hvadam_bench.tasks._schedules import warm_cosine
from hvadam_bench.tasks._seeds import seeded, seeded_generator, shuffled
from hvadam_bench.tasks._spec import Problem, Split, Update, fit_batch, run_length

# What the variants of a batch do to its cropped images; the first is the plain protocol.
VARIANTS: tuple[Callable[[Tensor, Generator], Tensor], ...] = (
    random_flip,
    auto_augment,
    rand_augment,
)
# Each channel's mean and standard deviation, of pixels in [0, 1].
CIFAR10_CHANNELS = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
# Of the test split, for its noise: 200 images each of 10,000.
PARTS = 50
# So many fit into a processor's caches; 500 took 1.7 times as long on the small CNN.
_EVALUATION_BATCH = 250


class Batch(NamedTuple):
    """Normalised images and their labels."""

    images: Tensor
    labels: Tensor


class Pictures(Protocol):
    """Images by number, as bytes of one size (n, channels, height, width)."""

    labels: Tensor

    def cropped(self, chosen: Tensor, generator: Generator) -> Tensor:
        """Return pictures for a training batch, cut at a random place."""
        ...

    def centred(self, chosen: Tensor) -> Tensor:
        """Return pictures to evaluate on."""
        ...


class InMemory:
    """Small images, enlarged to `size` when asked for, and shifted by up to `margin` pixels."""

    def __init__(self, images: Images, size: int, margin: int) -> None:
        self.pixels = torch.tensor(images.pixels)
        self.labels = torch.tensor(images.labels)
        self.size = size
        self.margin = margin

    def cropped(self, chosen: Tensor, generator: Generator) -> Tensor:
        """Return images of these numbers, each shifted at random."""
        return random_crop(self.centred(chosen), self.margin, generator)

    def centred(self, chosen: Tensor) -> Tensor:
        """Return images of these numbers as they are."""
        pixels = self.pixels[chosen]
        if pixels.shape[2] == self.size:
            return pixels
        enlarged = interpolate(pixels.float(), (self.size, self.size), mode="bilinear")
        return enlarged.round().byte()


class Parts(NamedTuple):
    """The training pictures, the test pictures, and how many classes they show."""

    train: Pictures
    test: Pictures
    classes: int


class ImageProblem(Problem):
    """A classifier, trained by cross-entropy on shuffled and augmented batches.

    Args:
        make: Classes -> the network; its random numbers come from the run's seed.
        pictures: What to learn from and be tested on.
        settings: "epochs" or "steps", "batch_size" and "weight_decay" are read; "curve_images",
            if there, says how many validation images are enough for a curve.
        seed: The run's.
        protocol: "standard" or "inherited".
        schedule: Epochs done -> what to multiply the learning rate by. If None, it rises for the
            share "warmup" of the steps and then falls to 0 along half a cosine.
        warmup: Epochs over which the learning rate rises linearly from 0, batch by batch.
        floor: The rate that the schedule comes down to, whichever it began at.
        channels: Means and standard deviations to normalise with.
        loaders: How many shuffled passes an inherited "epoch" is made of. With three, the batches
            take turns: flipped, AutoAugment, RandAugment; last batches that are not full are
            dropped.
        rotation: Degrees either way by which inherited batches are turned at the end.
        channels_last: Whether the channels of a pixel lie side by side in memory, where a CPU's
            convolutions of few channels take less time.
    """

    def __init__(
        self,
        make: Callable[[int], nn.Module],
        pictures: Parts,
        settings: Mapping[str, Any],
        seed: int,
        protocol: str,
        schedule: Callable[[float], float] | None,
        warmup: float = 0.0,
        floor: float = 0.0,
        channels: tuple[Sequence[float], Sequence[float]] = CIFAR10_CHANNELS,
        loaders: int = 1,
        rotation: float = 0.0,
        channels_last: bool = False,
    ) -> None:
        inherited = protocol == "inherited"
        self.seed = seed
        self.model = seeded(seed, lambda: make(pictures.classes))
        self.networks = {"model": self.model}
        self.parts = _split(pictures, hold_out=not inherited)
        count = len(self.parts["train"][1])
        self.batch_size = fit_batch(settings, count)
        self.weight_decay = settings["weight_decay"]
        self.curve_images: int | None = settings.get("curve_images")
        if self.curve_images is not None and self.curve_images < 1:
            raise ValueError(f"curve_images must be at least 1, got {self.curve_images}.")
        self.loaders = loaders if inherited else 1
        self.rotation = rotation if inherited else 0.0
        whole = count // self.batch_size
        self.batches = whole if self.loaders > 1 else math.ceil(count / self.batch_size)
        self.steps = run_length(settings, self.batches * self.loaders)
        self.schedule = schedule
        self.rising = 0 if schedule else round(settings["warmup"] * self.steps)
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.warmup = warmup
        self.floor = floor
        mean, deviation = channels
        self.mean = 255 * torch.tensor(mean).view(1, -1, 1, 1)
        self.deviation = 255 * torch.tensor(deviation).view(1, -1, 1, 1)

    def batch(self, step: int, variant: int = 0) -> Batch:
        turn, loader = divmod(step, self.loaders)
        epoch, place = divmod(turn, self.batches)
        pictures, indices = self.parts["train"]
        order = shuffled(len(indices), self.seed, epoch, loader)
        chosen = indices[order[place * self.batch_size : (place + 1) * self.batch_size]]
        way = (loader if self.loaders > 1 else variant) % len(VARIANTS)
        generator = seeded_generator("augmentation", self.seed, step, way)
        images = VARIANTS[way](pictures.cropped(chosen, generator).float(), generator)
        if self.rotation:
            images = random_rotation(images, self.rotation, generator)
        return Batch(self._normalised(images), pictures.labels[chosen])

    def updates(self, batch: Batch) -> Iterator[Update]:
        device = self._device
        yield Update(cross_entropy(self.model(batch.images.to(device)), batch.labels.to(device)))

    def lr_factor(self, step: int) -> float:
        if self.schedule is None:
            return warm_cosine(step, self.steps, self.rising)
        if self._is_rising(step):
            return (step + 1) / (self.warmup * self._per_epoch)
        return self.schedule(step / self._per_epoch)

    def rate(self, step: int, lr: float) -> float:
        floor = 0.0 if self._is_rising(step) else self.floor
        return floor + (lr - floor) * self.lr_factor(step)

    def evaluate(self, split: Split) -> dict[str, float]:
        return self._measures(*self.parts[split])

    def glance(self) -> dict[str, float]:
        pictures, indices = self.parts["valid"]
        return self._measures(pictures, indices[: self.curve_images])

    @torch.no_grad()
    def _measures(self, pictures: Pictures, indices: Tensor) -> dict[str, float]:
        was_training = self.model.training
        self.model.eval()
        loss, right = 0.0, []
        for chosen in indices.split(_EVALUATION_BATCH):
            images = self._normalised(pictures.centred(chosen).float()).to(self._device)
            labels = pictures.labels[chosen].to(self._device)
            logits = self.model(images)
            loss += cross_entropy(logits, labels, reduction="sum").item()
            right.append((logits.argmax(1) == labels).cpu())
        self.model.train(was_training)
        self._right = torch.cat(right)
        correct = self._right.sum().item()
        return {"accuracy": 100 * correct / len(indices), "loss": loss / len(indices)}

    def test_parts(self) -> tuple[float, ...]:
        """Return the accuracies over equal parts of the test split, each spread all over it."""
        parts = (self._right[i::PARTS].double().mean().item() for i in range(PARTS))
        return tuple(round(100 * part, 3) for part in parts)

    def _normalised(self, levels: Tensor) -> Tensor:
        return ((levels - self.mean) / self.deviation).contiguous(memory_format=self.format)

    def _is_rising(self, step: int) -> bool:
        return step < self.warmup * self._per_epoch

    @property
    def _per_epoch(self) -> int:
        return self.batches * self.loaders

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def step_decay(milestones: Sequence[float]) -> Callable[[float], float]:
    """Return a schedule that takes a tenth of the rate from each of these epochs on."""
    return lambda epoch: 0.1 ** sum(epoch >= milestone for milestone in milestones)


def cosine_decay(epochs: float) -> Callable[[float], float]:
    """Return a schedule from 1 down to 0 along half a cosine."""
    return lambda epoch: (1 + math.cos(math.pi * epoch / epochs)) / 2


def small_images(
    settings: Mapping[str, Any], size: int = 32, margin: int = 4, **synthetic_shape: int
) -> Parts:
    """Return the images that "data" names, or "synthetic" ones, as many as the settings say.

    Args:
        settings: The task's.
        size: Height and width that the network takes.
        margin: Of random crops.
        synthetic_shape: Of synthetic images: classes, channels, native (height and width).
    """
    name, train, test = settings["data"], settings["train_images"], settings["test_images"]
    if name == "synthetic":
        images = synthetic(train, test, **synthetic_shape)
    else:
        images = first(name, load(name), train, test)
    return Parts(
        InMemory(images.train, size, margin), InMemory(images.test, size, margin), images.classes
    )


def first(name: str, data: ImageData, train: int | None, test: int | None) -> ImageData:
    """Return the first images of both parts, all of them where no number is given.

    Raises:
        DataError: there are not as many.
    """
    if data.missing and (train is None or len(data.train) < train):
        wanted = f"the first {train:,}" if train else "all"
        raise DataError(
            f"{name}: training takes {wanted} of the images, and "
            f"{', '.join(data.missing)} are missing; `hvadam data get {name}` downloads them."
        )
    cut = (
        Images(part.pixels[:count], part.labels[:count])
        for part, count in ((data.train, train), (data.test, test))
    )
    return ImageData(*cut, classes=data.classes)


@lru_cache(maxsize=2)
def synthetic(
    train: int, test: int, classes: int = 10, channels: int = 3, native: int = 32
) -> ImageData:
    """Make noisy copies of a smooth pattern for each of ten classes: they need no files."""
    generator = seeded_generator("synthetic", train, test, classes, channels, native)
    coarse = torch.randint(2, (10, channels, 4, 4), generator=generator).float()
    patterns = interpolate(coarse, (native, native), mode="bilinear")
    parts: list[Images] = []
    for count in (train, test):
        # Shuffled: in a regular order, every tenth image would be of one class.
        labels = (torch.arange(count) % 10)[torch.randperm(count, generator=generator)]
        noise = torch.randn(count, channels, native, native, generator=generator)
        pixels = (255 * (patterns[labels] + 0.1 * noise)).clamp(0, 255).byte()
        parts.append(Images(pixels.numpy(), labels.numpy()))
    return ImageData(*parts, classes=classes)


def _split(pictures: Parts, hold_out: bool) -> dict[Split, tuple[Pictures, Tensor]]:
    indices = torch.arange(len(pictures.train.labels))
    test = pictures.test, torch.arange(len(pictures.test.labels))
    if not hold_out:
        return {"train": (pictures.train, indices), "valid": test, "test": test}
    held = indices % 10 == 9
    return {
        "train": (pictures.train, indices[~held]),
        "valid": (pictures.train, indices[held]),
        "test": test,
    }
