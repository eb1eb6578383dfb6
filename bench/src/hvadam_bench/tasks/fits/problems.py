"""The networks, data and losses of the fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.fits.lotka_volterra import Equation, integrate, truth
from hvadam_bench.tasks.fits.online_regression import OnlineRegressionProblem
from hvadam_bench.tasks.fits.pictures import PictureProblem, Siren

ARRIVED = 0.01  # the largest error of a matrix or of rates that are found


def two_spirals(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a tanh perceptron that tells two spirals apart: smooth, float64."""
    points, labels = spirals(settings["points"], settings["turns"])
    width = settings["width"]
    return FullBatchProblem(
        lambda: tanh_mlp([2, width, width, 1]),
        lambda network: binary_cross_entropy_with_logits(network(points).squeeze(1), labels),
        len(points),
        settings,
        seed,
    )


def multiscale_regression(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a tanh perceptron that fits a sum of slow and fast waves: smooth, float64."""
    x, y = waves(settings["points"], settings["frequencies"])
    width = settings["width"]
    return FullBatchProblem(
        lambda: tanh_mlp([1, width, width, 1]),
        lambda network: mse_loss(network(x), y),
        len(x),
        settings,
        seed,
    )


def matrix_factorization(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build two thin factors of an ill-conditioned matrix, all of whose entries are seen.

    The loss is the squared error over the squared size of the matrix.
    """
    size, rank = settings["size"], settings["rank"]
    matrix = low_rank_matrix(size, rank, settings["condition"])
    whole = matrix.square().sum()
    return FullBatchProblem(
        lambda: Factors(size, rank),
        lambda factors: (factors() - matrix).square().sum() / whole,
        matrix.numel(),
        settings,
        seed,
    )


def matrix_completion(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build two thin factors that learn an ill-conditioned matrix from some of its entries.

    A fixed draw of the entries is seen. The loss is the squared error of those over their squared
    size; `unseen_error` is the root of the same ratio over the others. A run has arrived when that
    is below 1%: only the right matrix fills the gaps.
    """
    size, rank = settings["size"], settings["rank"]
    matrix = low_rank_matrix(size, rank, settings["condition"])
    seen = seen_entries(size, settings["seen"])

    def error(factors: nn.Module, among: Tensor) -> Tensor:
        return ((factors() - matrix) * among).square().sum() / (matrix * among).square().sum()

    def measure(factors: nn.Module) -> dict[str, float]:
        unseen = error(factors, ~seen).sqrt().item()
        return {"unseen_error": unseen, "arrived": float(unseen < ARRIVED)}

    return FullBatchProblem(
        lambda: Factors(size, rank),
        lambda factors: error(factors, seen),
        int(seen.sum()),
        settings,
        seed,
        measure,
    )


def ode_fit(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build Lotka and Volterra's equations with first guesses, and the counts to explain.

    The prey of two orbits are counted at every step without noise, the predators only at the start:
    four rates and the starts are to be found that explain the counts. The loss is the mean squared
    error of their logarithms. First guesses depend on the seed; their logarithms lie up to "spread"
    away from the truth. `parameter_error` is the worst relative error of the four rates, and a run
    has arrived when it is below 1%. The loss has other minima, where orbits are out of phase.
    """
    span = settings["length"], settings["samples"]
    samples = integrate(*truth(), *span)
    counted = torch.ones_like(samples, dtype=torch.bool)
    counted[1:, 1] = False  # the predators only once

    def measure(equation: Equation) -> dict[str, float]:
        error = equation.error()
        return {"parameter_error": error, "arrived": float(error < ARRIVED)}

    return FullBatchProblem(
        lambda: Equation(settings["spread"]),
        lambda equation: (equation(*span) - samples)[counted].square().mean(),
        int(counted.sum()),
        settings,
        seed,
        measure,
    )


def online_regression(settings: Settings, seed: int, protocol: str) -> OnlineRegressionProblem:
    """Build a perceptron, its teacher and the stream."""
    return OnlineRegressionProblem(settings, seed)


def siren_image(settings: Settings, seed: int, protocol: str) -> PictureProblem:
    """Build a coordinate network of sines and the picture that it fits: float32 as published.

    Sitzmann et al. (arXiv:2006.09661) fit photographs of 256 x 256 pixels with three hidden layers
    of 256 and ω = 30 by Adam. The picture here is drawn by a formula, because it must be the same
    everywhere and of any size.
    """
    shape = settings["width"], settings["layers"], settings["omega"]
    return PictureProblem(lambda: Siren(2, *shape), settings, seed)


class Factors(nn.Module):
    """Two thin matrices, whose product is square and starts with entries of about 1 / size."""

    def __init__(self, size: int, rank: int) -> None:
        super().__init__()
        scale = (size * size * rank) ** -0.25
        self.left = nn.Parameter(scale * torch.randn(size, rank))
        self.right = nn.Parameter(scale * torch.randn(size, rank))

    def forward(self) -> Tensor:
        """Return the product."""
        return self.left @ self.right.T


def spirals(points: int, turns: float) -> tuple[Tensor, Tensor]:
    """Return points of two spirals around each other, within the unit disc, and whose each is.

    Example:
        >>> points, labels = spirals(4, 1.0)
        >>> points.round(decimals=2).abs().tolist(), labels.tolist()
        ([[0.1, 0.0], [1.0, 0.0], [0.1, 0.0], [1.0, 0.0]], [0.0, 0.0, 1.0, 1.0])
    """
    radii = torch.linspace(0.1, 1, points // 2, dtype=torch.float64)
    angles = torch.linspace(0, 2 * math.pi * turns, points // 2, dtype=torch.float64)
    arm = radii[:, None] * torch.stack([angles.cos(), angles.sin()], 1)
    labels = torch.arange(2, dtype=torch.float64).repeat_interleave(points // 2)
    return torch.cat([arm, -arm]), labels


def waves(points: int, frequencies: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return places in [-1, 1] and Σ sin(πfx)/f over the frequencies f, both (points, 1).

    Example:
        >>> waves(3, [1, 2])[0].tolist()
        [[-1.0], [0.0], [1.0]]
    """
    x = torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]
    return x, torch.stack([torch.sin(math.pi * f * x) / f for f in frequencies]).sum(0)


def low_rank_matrix(size: int, rank: int, condition: float) -> Tensor:
    """Return a square matrix of some rank whose singular values fall from 1 by powers.

    Args:
        size: Of its sides.
        rank: Of the matrix.
        condition: The largest singular value over the smallest that is not 0.
    """
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for _ in range(2))
    return torch.from_numpy((left * np.geomspace(1, 1 / condition, rank)) @ right.T)


def seen_entries(size: int, share: float) -> Tensor:
    """Return which entries of a square matrix are seen: a fixed draw of a share of them.

    Example:
        >>> seen_entries(10, 0.3).sum().item()
        30
    """
    order = np.random.default_rng(1).permutation(size * size)
    return torch.from_numpy(order.reshape(size, size) < round(share * size * size))
