"""The Fréchet distance of two sets of images: how far the Gaussians of their features are apart.

With means m and covariances S of the two sets of features,

    distance = ‖m1 - m2‖² + tr(S1 + S2 - 2 (S1 S2)^½).

With the features of Inception it is known as FID, and only then is it called so here. It is biased
upwards by small sets, so distances are comparable for equal counts, references and features only.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor


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
    found = torch.tensor(
        [
            distance(Moments.of(features[_again(len(features), generator)]), reference)
            for _ in range(resamples)
        ]
    )
    return found.std().item()


def _again(count: int, generator: Generator) -> Tensor:
    return torch.randint(count, (count,), generator=generator)
