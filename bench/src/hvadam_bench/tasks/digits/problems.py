"""The networks, batches and losses of the tasks on scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from hvadam_bench.data.digits import Digits, load
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._schedules import AnnealedProblem
from hvadam_bench.tasks._seeds import permuted, seeded
from hvadam_bench.tasks._spec import Settings, Split, Update, fit_batch


def digits_cnn(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a CNN of 10k weights that tells digits apart."""
    return DigitsProblem(
        lambda: nn.Sequential(
            *(nn.Conv2d(1, 16, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, kernel_size=3, padding=1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(32 * 4 * 4, 10)),
        ),
        settings,
        seed,
    )


def digits_mlp(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a perceptron of 26k weights that tells digits apart."""
    return DigitsProblem(
        lambda: nn.Sequential(
            *(nn.Flatten(), nn.Linear(64, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
        ),
        settings,
        seed,
    )


def digits_normed_cnn(settings: Settings, seed: int, protocol: str) -> DigitsProblem:
    """Build a CNN of 4k weights with batch norm that tells digits apart."""
    return DigitsProblem(
        lambda: nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
            nn.MaxPool2d(2),
            *(nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16 * 4 * 4, 10)),
        ),
        settings,
        seed,
    )


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


class DigitsProblem(AnnealedProblem):
    """A network that tells ten digits apart, without weight decay.

    Args:
        make: () -> the network; called under the run's seed.
        settings: "batch_size" and "epochs" are read, and "warmup" (a share of the steps), without
            which the learning rate is constant.
        seed: The run's.
    """

    def __init__(self, make: Callable[[], nn.Module], settings: Settings, seed: int) -> None:
        self.parts = parts()
        self.seed = seed
        self.network = seeded(seed, make)
        self.networks = {"model": self.network}
        count = len(self.parts["train"].labels)
        self.batch_size = fit_batch(settings, count)
        self.batches = count // self.batch_size
        self.steps = settings["epochs"] * self.batches
        self.constant = "warmup" not in settings
        self.rising = 0 if self.constant else round(settings["warmup"] * self.steps)

    def batch(self, step: int, variant: int = 0) -> Any:
        epoch, place = divmod(step, self.batches)
        train = self.parts["train"]
        order = permuted(len(train.labels), self.seed, epoch)
        return train.at(order[place * self.batch_size : (place + 1) * self.batch_size])

    def updates(self, batch: Digits) -> Iterator[Update]:
        yield Update(cross_entropy(self.network(batch.pixels), batch.labels))

    def lr_factor(self, step: int) -> float:
        return 1.0 if self.constant else super().lr_factor(step)

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        pixels, labels = self.parts[split]
        logits = self.network.eval()(pixels)
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


class NoisyCodes(NamedTuple):
    """Images of ink or none, (n, 64), and the noise of their codes."""

    pixels: Tensor
    noise: Tensor


class VAEProblem(DigitsProblem):
    """An autoencoder of digits with a random code, whose pixels are ink or none.

    The noise of the codes is a function of the seed and the step, and that of evaluations always
    the same.
    """

    def __init__(self, make: Callable[[], nn.Module], settings: Settings, seed: int) -> None:
        super().__init__(make, settings, seed)
        self.code = settings["code"]

    def batch(self, step: int, variant: int = 0) -> NoisyCodes:
        rng = np.random.default_rng((self.seed, 1, step))
        return self._with_noise(super().batch(step).pixels, rng)

    def updates(self, batch: NoisyCodes) -> Iterator[Update]:
        yield Update(negative_bound(self.network, batch))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        shown = self._with_noise(self.parts[split].pixels, np.random.default_rng(0))
        return {"loss": negative_bound(self.network, shown).item()}

    def _with_noise(self, pixels: Tensor, rng: np.random.Generator) -> NoisyCodes:
        noise = torch.from_numpy(rng.standard_normal((len(pixels), self.code), dtype=np.float32))
        return NoisyCodes((pixels.flatten(1) > 0.5).float(), noise)


def negative_bound(network: nn.Module, batch: NoisyCodes) -> Tensor:
    """Return the negative evidence lower bound: nats per image."""
    logits, mean, log_scale = network(*batch)
    missed = binary_cross_entropy_with_logits(logits, batch.pixels, reduction="none").sum(1)
    divergence = 0.5 * (mean.square() + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(1)
    return (missed + divergence).mean()
