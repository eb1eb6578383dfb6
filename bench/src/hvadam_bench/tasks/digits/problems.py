"""The networks, batches and losses of the tasks on scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from hvadam_bench.data.digits import Digits, load
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._problem import ModelProblem
from hvadam_bench.tasks._spec import Settings, Split, Update, fit_batch


def digits_cnn(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a CNN of 10k weights that tells digits apart."""

    def make() -> nn.Module:
        return nn.Sequential(
            *(nn.Conv2d(1, 16, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, kernel_size=3, padding=1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(32 * 4 * 4, 10)),
        )

    return DigitsProblem(make, settings, seed)


def digits_mlp(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a perceptron of 26k weights that tells digits apart."""

    def make() -> nn.Module:
        return nn.Sequential(
            *(nn.Flatten(), nn.Linear(64, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
        )

    return DigitsProblem(make, settings, seed)


def digits_normed_cnn(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a CNN of 4k weights with batch norm that tells digits apart."""

    def make() -> nn.Module:
        return nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
            nn.MaxPool2d(2),
            *(nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16 * 4 * 4, 10)),
        )

    return DigitsProblem(make, settings, seed)


def digits_vae(settings: Settings, seed: int, protocol: str) -> VAEProblem:
    """Build a small variational autoencoder of digits, in mini-batches."""
    return VAEProblem(lambda: VAE(settings["hidden"], settings["code"]), settings, seed)


def digits_autoencoder(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a deep autoencoder of digits, full batch: smooth, float64.

    Its loss is the squared error of all training pixels, whose floor is what eight numbers can tell
    of a digit.
    """
    pixels = parts()["train"].pixels[: settings["images"]].flatten(1).double()
    widths = [64, *settings["widths"]]
    return FullBatchProblem(
        lambda: tanh_mlp([*widths, *reversed(widths[:-1])]),
        lambda network: mse_loss(network(pixels), pixels),
        len(pixels),
        settings,
        seed,
    )


@cache
def parts() -> dict[Split, Digits]:
    """Return the splits; "valid" is a fifth of the training images, always the same."""
    from sklearn.model_selection import train_test_split

    train, test = load()
    kept, held = train_test_split(
        np.arange(len(train.labels)), test_size=0.2, stratify=train.labels, random_state=1
    )
    return {"train": train.at(kept), "valid": train.at(held), "test": test}


class DigitsProblem(ModelProblem):
    """A network that tells ten digits apart.

    Args:
        make: () -> the network; called under the run's seed.
        settings: "batch_size" and "epochs" are read, and "warmup" (a share of the steps), without
            which the learning rate is constant.
        seed: The run's.
    """

    def __init__(self, make: Callable[[], nn.Module], settings: Settings, seed: int) -> None:
        super().__init__(make, settings, seed)
        self.parts = parts()
        count = len(self.parts["train"].labels)
        self.batch_size = fit_batch(settings, count)
        self.batches = count // self.batch_size
        self.steps = settings["epochs"] * self.batches

    def batch(self, step: int, variant: int = 0) -> Any:
        train = self.parts["train"]
        return train.at(self.drawn(len(train.labels), step))

    def updates(self, batch: Digits) -> Iterator[Update]:
        yield Update(cross_entropy(self.model(batch.pixels), batch.labels))

    def lr_factor(self, step: int) -> float:
        return super().lr_factor(step) if "warmup" in self.settings else 1.0

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        pixels, labels = self.parts[split]
        logits = self.model.eval()(pixels)
        right = (logits.argmax(dim=1) == labels).double().mean().item()
        return {"accuracy": 100 * right, "loss": cross_entropy(logits, labels).item()}


class VAE(nn.Module):
    """A variational autoencoder of 8×8 images by perceptrons, with a Gaussian code."""

    def __init__(self, hidden: int, code: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, pixels: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pixels' logits for codes with this noise, the codes' means and log scales."""
        mean, log_scale = self.encoder(pixels).chunk(2, dim=1)
        return self.decoder(mean + log_scale.exp() * noise), mean, log_scale


class VAEProblem(DigitsProblem):
    """An autoencoder of digits with a random code, whose pixels are ink or none.

    Batches are images (n, 64) and the noise of their codes, which is a function of the seed and the
    step, and in evaluations always the same.
    """

    def batch(self, step: int, variant: int = 0) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng((self.seed, 1, step))
        return self._with_noise(super().batch(step).pixels, rng)

    def updates(self, batch: tuple[Tensor, Tensor]) -> Iterator[Update]:
        yield Update(negative_bound(self.model, *batch))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        shown = self._with_noise(self.parts[split].pixels, np.random.default_rng(0))
        return {"loss": negative_bound(self.model, *shown).item()}

    def _with_noise(self, pixels: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        noise = rng.standard_normal((len(pixels), self.settings["code"]), dtype=np.float32)
        return (pixels.flatten(1) > 0.5).float(), torch.from_numpy(noise)


def negative_bound(network: nn.Module, pixels: Tensor, noise: Tensor) -> Tensor:
    """Return the negative evidence lower bound: nats per image."""
    logits, mean, log_scale = network(pixels, noise)
    missed = binary_cross_entropy_with_logits(logits, pixels, reduction="none").sum(1)
    divergence = 0.5 * (mean.square() + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(1)
    return (missed + divergence).mean()
