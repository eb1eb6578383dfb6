"""The Fréchet distance of two sets of images: how far the Gaussians of their features are apart.

With means m and covariances S of the two sets of features,

    distance = ‖m1 - m2‖² + tr(S1 + S2 - 2 (S1 S2)^½).

It is biased upwards by small sets, so distances are comparable for equal counts, references and
features only. The features are those of a small network of ours, or Inception's, with which the
distance is known as FID; only then is it called so here.

The small networks tell the classes of one data set apart at 16×16, and their last hidden layer is
the features. They are trained once, by

    python -m hvadam_bench.data.features

which prints their test accuracies, and how far real images are from real images. Their weights
are kept with the project, so that distances are the same everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from hvadam_bench.data import load as load_data
from hvadam_bench.data import root
from hvadam_bench.data.images import ImageData, Images

# Bytes of shape (n, channels, height, width) -> (n, features).
Features = Callable[[Tensor], Tensor]

SIZE = 16  # height and width that the small networks see
DATA = ("digits", "fashion_mnist", "cifar10")
INCEPTION = "inception/pt_inception-2015-12-05-6726825d.pth"
_EPOCHS = {"digits": 20, "fashion_mnist": 4, "cifar10": 12}
_BATCH = 500


class Moments(NamedTuple):
    """Mean and covariance of features, in float64."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, features: Tensor) -> Moments:
        """Return the moments of rows of features, at least two."""
        features = features.double()
        mean = features.mean(0)
        centred = features - mean
        return cls(mean, centred.T @ centred / (len(features) - 1))


def distance(one: Moments, other: Moments) -> float:
    """Return the Fréchet distance of two Gaussians.

    Example:
        >>> unit = torch.eye(2, dtype=torch.float64)
        >>> at_zero = Moments(torch.zeros(2, dtype=torch.float64), unit)
        >>> wider = Moments(torch.tensor([3.0, 0.0], dtype=torch.float64), 4 * unit)
        >>> round(distance(at_zero, wider), 9)  # 3² + 2 · (1 - 2)²
        11.0
    """
    # The eigenvalues of S1 S2 are those of the symmetric R S2 R with R R = S1.
    values, vectors = torch.linalg.eigh(one.covariance)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    cross = torch.linalg.eigvalsh(root @ other.covariance @ root).clamp(min=0).sqrt().sum()
    spread = one.covariance.trace() + other.covariance.trace() - 2 * cross
    return max(0.0, ((one.mean - other.mean).square().sum() + spread).item())


def noise(features: Tensor, reference: Moments, generator: Generator, resamples: int = 5) -> float:
    """Return the standard deviation of the distance over samples of one source, by bootstrap."""
    n = len(features)
    found = torch.tensor(
        [
            distance(Moments.of(features[torch.randint(n, (n,), generator=generator)]), reference)
            for _ in range(resamples)
        ]
    )
    return found.std().item()


class FeatureNetwork(nn.Module):
    """Three convolutions and a mean over places: 64 features, and logits to train them by.

    Example:
        >>> FeatureNetwork(channels=1).features(torch.zeros(2, 1, 16, 16)).shape
        torch.Size([2, 64])
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU()),
        )
        self.head = nn.Linear(64, 10)

    def features(self, levels: Tensor) -> Tensor:
        """Return the features of pixels in [0, 1]."""
        return self.body(levels).mean((2, 3))

    def forward(self, levels: Tensor) -> Tensor:
        """Return the logits of pixels in [0, 1]."""
        return self.head(self.features(levels))


def images(name: str) -> ImageData:
    """Read one of the data sets; the digits are scikit-learn's.

    Raises:
        DataError: its files are missing or cannot be trusted.
    """
    if name != "digits":
        return load_data(name)
    from hvadam_bench.data import digits

    train, test = (
        Images((255 * part.pixels).round().byte().numpy(), part.labels.numpy())
        for part in digits.load()
    )
    return ImageData(train, test, classes=10)


def resized(pixels: Tensor, size: int) -> Tensor:
    """Return images as bytes at another size."""
    if pixels.shape[2] == size:
        return pixels
    found = interpolate(pixels.float(), (size, size), mode="bilinear", antialias=True)
    return found.round().clamp(0, 255).byte()


@cache
def small(name: str) -> Features:
    """Return the features of the small network for a data set.

    Raises:
        ValueError: there is none for it.
    """
    if name not in DATA:
        raise ValueError(
            f"features: there is no small network for {name!r}; there are "
            f"{', '.join(DATA)}, or set features to 'inception'."
        )
    weights = files("hvadam_bench.data").joinpath("weights", f"features_{name}.npz")
    with weights.open("rb") as file, np.load(file) as content:
        state = {key: torch.from_numpy(content[key].astype(np.float32)) for key in content.files}
    network = FeatureNetwork(state["body.0.weight"].shape[1])
    network.load_state_dict(state)
    return _features(network)


@cache
def inception() -> Features:
    """Return the 2048 features that FIDs are of; weights not in the data folder are downloaded.

    Raises:
        ImportError: the package that has the network is missing.
    """
    try:
        from torchmetrics.image.fid import NoTrainInceptionV3

        local = root() / INCEPTION
        network: Any = NoTrainInceptionV3(
            "inception-v3-compat",
            ["2048"],
            feature_extractor_weights_path=str(local) if local.exists() else None,
        )
    except (ImportError, ModuleNotFoundError) as error:
        raise ImportError(
            "features: Inception's need torchmetrics and "
            "torch-fidelity: `pip install torchmetrics torch-fidelity`; or set features to 'small'."
        ) from error

    @torch.no_grad()
    def features(pixels: Tensor) -> Tensor:
        colour = pixels.expand(-1, 3, -1, -1)
        return torch.cat([network(part) for part in colour.split(50)])

    return features


def train(name: str, data: ImageData) -> FeatureNetwork:
    """Train a network for a data set, always the same on one machine."""
    pixels = _levels(torch.tensor(data.train.pixels))
    labels = torch.tensor(data.train.labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = FeatureNetwork(pixels.shape[1])
        steps = _EPOCHS[name] * (len(labels) // 64)
        optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(_EPOCHS[name]):
            for chosen in torch.randperm(len(labels))[: len(labels) // 64 * 64].split(64):
                optimizer.zero_grad()
                cross_entropy(network(pixels[chosen]), labels[chosen]).backward()
                optimizer.step()
                schedule.step()
    return network


@torch.no_grad()
def accuracy(network: FeatureNetwork, part: Images) -> float:
    """Return the share of images that are classified right, in percent."""
    logits = [network(_levels(p)) for p in torch.tensor(part.pixels).split(_BATCH)]
    return 100 * (torch.cat(logits).argmax(1) == torch.tensor(part.labels)).double().mean().item()


def main() -> None:
    """Train the networks, keep their weights, and say how good they are."""
    for name in sys.argv[1:] or DATA:
        data = images(name)
        network = train(name, data).half().float()  # half precision is kept, so it is measured
        state = {k: value.numpy().astype(np.float16) for k, value in network.state_dict().items()}
        path = Path(__file__).parent / "weights" / f"features_{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, **state)
        floor = distance(
            *(
                Moments.of(_features(network)(torch.tensor(p.pixels)))
                for p in (data.train, data.test)
            )
        )
        sys.stdout.write(
            f"{name}: test accuracy {accuracy(network, data.test):.2f}%, "
            f"distance of training and test images {floor:.4f}\n"
        )


def _levels(pixels: Tensor) -> Tensor:
    return resized(pixels, SIZE).float() / 255


def _features(network: FeatureNetwork) -> Features:
    network.eval().requires_grad_(False)
    return lambda pixels: torch.cat([network.features(_levels(p)) for p in pixels.split(_BATCH)])


if __name__ == "__main__":
    main()
