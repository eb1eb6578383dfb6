"""Image classification: the batches, the schedules and the measures that its tasks share.

Accuracies are in percent. Every tenth training image is held out for validation, the same ones in
every run. Under protocol "inherited" none is, and the curve is of the test set, as in the published
experiments, which also chose their best epoch there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.tasks._images import held_out, random_flip
from hvadam_bench.tasks._problem import ModelProblem, seeded_generator, shuffled
from hvadam_bench.tasks._spec import Settings, Split, Update, evaluating, fit_batch, run_length
from hvadam_bench.tasks.vision.augment import auto_augment, rand_augment, random_rotation
from hvadam_bench.tasks.vision.pictures import Parts, Pictures

# What the variants of a batch do to its cropped images; the first is the plain protocol.
VARIANTS = random_flip, auto_augment, rand_augment
# Each channel's mean and standard deviation, of pixels in [0, 1].
CIFAR10_CHANNELS = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
# Of the test split, for its noise: 200 images each of 10,000.
PARTS = 50
# So many fit into a processor's caches; 500 took 1.7 times as long on the small CNN.
_EVALUATION_BATCH = 250


class ImageBatch(NamedTuple):
    """Normalised images and their labels."""

    images: Tensor
    labels: Tensor


class ImageProblem(ModelProblem):
    """A classifier, trained by cross-entropy on shuffled and augmented batches.

    The learning rate takes a tenth from each of "milestones" on, in epochs; or, with "floor", comes
    down to that rate along half a cosine, whichever it began at; "warmup" is then the epochs over
    which it rises linearly from 0, batch by batch. With neither of them "warmup" is a share of the
    steps, as for every problem.

    Args:
        make: Classes -> the network; its random numbers come from the run's seed.
        pictures: What to learn from and be tested on.
        settings: "epochs" or "steps", "batch_size", "weight_decay" and the schedule's are read;
            "curve_images", if there, says how many validation images are enough for a curve.
        seed: The run's.
        protocol: "standard" or "inherited".
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
        settings: Settings,
        seed: int,
        protocol: str,
        channels: tuple[Sequence[float], Sequence[float]] = CIFAR10_CHANNELS,
        loaders: int = 1,
        rotation: float = 0.0,
        channels_last: bool = False,
    ) -> None:
        super().__init__(lambda: make(pictures.classes), settings, seed)
        inherited = protocol == "inherited"
        counts = len(pictures.train.labels), len(pictures.test.labels)
        self.parts = held_out(pictures.train, pictures.test, counts, inherited)
        count = len(self.parts["train"][1])
        self.batch_size = fit_batch(settings, count)
        self.curve_images: int | None = settings.get("curve_images")
        if self.curve_images is not None and self.curve_images < 1:
            raise ValueError(f"curve_images must be at least 1, got {self.curve_images}.")
        self.loaders, self.rotation = (loaders, rotation) if inherited else (1, 0.0)
        whole = count // self.batch_size
        self.batches = whole if self.loaders > 1 else math.ceil(count / self.batch_size)
        self.steps = run_length(settings, self.batches * self.loaders)
        self.schedule = _schedule(settings)
        # Steps over which a rate rises that follows a schedule of epochs.
        epochs = settings.get("warmup", 0.0) if self.schedule else 0.0
        self.warming = epochs * self.batches * self.loaders
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.mean, self.deviation = (255 * torch.tensor(c).view(1, -1, 1, 1) for c in channels)

    def batch(self, step: int, variant: int = 0) -> ImageBatch:
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
        return ImageBatch(self._normalised(images), pictures.labels[chosen])

    def updates(self, batch: ImageBatch) -> Iterator[Update]:
        device = self._device
        yield Update(cross_entropy(self.model(batch.images.to(device)), batch.labels.to(device)))

    def lr_factor(self, step: int) -> float:
        if self.schedule is None:
            return super().lr_factor(step)
        if step < self.warming:
            return (step + 1) / self.warming
        return self.schedule(step / (self.batches * self.loaders))

    def rate(self, step: int, lr: float) -> float:
        floor = 0.0 if step < self.warming else self.settings.get("floor", 0.0)
        return floor + (lr - floor) * self.lr_factor(step)

    def evaluate(self, split: Split) -> dict[str, float]:
        return self._measures(*self.parts[split])

    def glance(self) -> dict[str, float]:
        pictures, indices = self.parts["valid"]
        return self._measures(pictures, indices[: self.curve_images])

    @torch.no_grad()
    def _measures(self, pictures: Pictures, indices: Tensor) -> dict[str, float]:
        loss, right = 0.0, []
        with evaluating(self.model):
            for chosen in indices.split(_EVALUATION_BATCH):
                images = self._normalised(pictures.centred(chosen).float()).to(self._device)
                labels = pictures.labels[chosen].to(self._device)
                logits = self.model(images)
                loss += cross_entropy(logits, labels, reduction="sum").item()
                right.append((logits.argmax(1) == labels).cpu())
        self._right = torch.cat(right)
        correct = self._right.sum().item()
        return {"accuracy": 100 * correct / len(indices), "loss": loss / len(indices)}

    def test_parts(self) -> tuple[float, ...]:
        """Return the accuracies over equal parts of the test split, each spread all over it."""
        parts = (self._right[i::PARTS].double().mean().item() for i in range(PARTS))
        return tuple(round(100 * part, 3) for part in parts)

    def _normalised(self, levels: Tensor) -> Tensor:
        return ((levels - self.mean) / self.deviation).contiguous(memory_format=self.format)


def _schedule(settings: Settings) -> Callable[[float], float] | None:
    """Return what multiplies the rate after some epochs, where the settings have epochs for it."""
    if "milestones" in settings:
        return lambda epoch: 0.1 ** sum(epoch >= milestone for milestone in settings["milestones"])
    if "floor" in settings:
        return lambda epoch: (1 + math.cos(math.pi * epoch / settings["epochs"])) / 2
    return None
