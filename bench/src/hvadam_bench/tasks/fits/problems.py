"""The networks, data and losses of the fits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._problem import ModelProblem, seeded
from hvadam_bench.tasks._spec import Settings, Split, Update
from hvadam_bench.tasks.fits.pictures import PictureProblem, Siren

ARRIVED = 0.01  # the largest error of a matrix or of rates that are found
# a, b, c, d of predators and prey; an orbit near (1, 1/2) has a period of about 7.7.
RATES = (2 / 3, 4 / 3, 1.0, 1.0)
STARTS = ((0.9, 1.8), (0.9, 1.8))  # x and y: a small orbit and a wide one
TEACHER_SEED = 1_000_003  # no run's own, or it would know everything from the start
EVALUATED = {"train": 1, "valid": 2, "test": 3}  # their seeds


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


def siren_image(settings: Settings, seed: int, protocol: str) -> PictureProblem:
    """Build a coordinate network of sines and the picture that it fits: float32 as published.

    Sitzmann et al. (arXiv:2006.09661) fit photographs of 256 x 256 pixels with three hidden layers
    of 256 and ω = 30 by Adam. The picture here is drawn by a formula, because it must be the same
    everywhere and of any size.
    """
    shape = settings["width"], settings["layers"], settings["omega"]
    return PictureProblem(lambda: Siren(2, *shape), settings, seed)


class OnlineRegressionProblem(ModelProblem):
    """A perceptron that learns another one from a stream, in which no example comes twice.

    Inputs are of very different sizes. The teacher is always the same; training sees its values
    with noise, and evaluations measure the squared error to the teacher itself, whose floor is 0.

    Args:
        settings: "inputs", "spread" (the largest input's size over the smallest's), "width",
            "noise" (of targets of size 1), "evaluated", "batch_size", "steps" and "warmup" (a
            share) are read.
        seed: The run's.
        protocol: "standard".
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        widths = [settings["inputs"], settings["width"], 1]
        super().__init__(lambda: tanh_mlp(widths), settings, seed)
        self.batch_size, self.steps = settings["batch_size"], settings["steps"]
        self._teacher = seeded(TEACHER_SEED, lambda: tanh_mlp(widths)).requires_grad_(False)
        sizes = np.geomspace(1, 1 / settings["spread"], settings["inputs"])
        self._sizes = sizes * np.sqrt(len(sizes) / np.sum(sizes**2))
        self._held = {split: self._draw((place,), 0.0) for split, place in EVALUATED.items()}

    def batch(self, step: int, variant: int = 0) -> tuple[Tensor, Tensor]:
        return self._draw((self.seed, step, 4), self.settings["noise"])

    def updates(self, batch: tuple[Tensor, Tensor]) -> Iterator[Update]:
        inputs, targets = batch
        yield Update(mse_loss(self.model(inputs), targets))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        inputs, targets = self._held[split]
        return {"loss": mse_loss(self.model(inputs), targets).item()}

    @torch.no_grad()
    def _draw(self, seed: tuple[int, ...], noise: float) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(seed)
        count = self.batch_size if noise else self.settings["evaluated"]
        drawn = rng.standard_normal((count, len(self._sizes) + 1))
        inputs = torch.from_numpy(drawn[:, :-1] * self._sizes).float()
        targets = self._teacher(inputs)
        return inputs, targets + noise * torch.from_numpy(drawn[:, -1:]).float()


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
    """Return points of two spirals around each other, within the unit disc, and whose each is."""
    radii = torch.linspace(0.1, 1, points // 2, dtype=torch.float64)
    angles = torch.linspace(0, 2 * math.pi * turns, points // 2, dtype=torch.float64)
    arm = radii[:, None] * torch.stack([angles.cos(), angles.sin()], 1)
    labels = torch.arange(2, dtype=torch.float64).repeat_interleave(points // 2)
    return torch.cat([arm, -arm]), labels


def waves(points: int, frequencies: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return places in [-1, 1] and Σ sin(πfx)/f over the frequencies f, both (points, 1)."""
    x = torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]
    return x, torch.stack([torch.sin(math.pi * f * x) / f for f in frequencies]).sum(0)


def low_rank_matrix(size: int, rank: int, condition: float) -> Tensor:
    """Return a square matrix whose singular values fall from 1 to 1 / condition by powers."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for _ in range(2))
    return torch.from_numpy((left * np.geomspace(1, 1 / condition, rank)) @ right.T)


def seen_entries(size: int, share: float) -> Tensor:
    """Return which entries of a square matrix are seen: a fixed draw of a share of them."""
    order = np.random.default_rng(1).permutation(size * size)
    return torch.from_numpy(order.reshape(size, size) < round(share * size * size))


class Equation(nn.Module):
    """Predators and prey, their rates and starts to be found through the integrator.

        x' = a x - b x y,    y' = d x y - c y

    In the logarithms u = ln x and v = ln y, which keep both positive, u' = a - b eᵛ and
    v' = d eᵘ - c. The parameters are logarithms too, first up to `spread` away from the truth.
    """

    def __init__(self, spread: float) -> None:
        super().__init__()
        self.rates, self.starts = (
            nn.Parameter(true + spread * (2 * torch.rand(true.shape, dtype=true.dtype) - 1))
            for true in truth()
        )

    def forward(self, length: float, count: int) -> Tensor:
        """Return ln x and ln y before the first and after each of so many steps."""
        return integrate(self.rates, self.starts, length, count)

    def error(self) -> float:
        """Return how far the rates are from the truth, relative to it, the worst of them."""
        return (self.rates - truth()[0]).expm1().abs().max().item()


def truth() -> tuple[Tensor, Tensor]:
    """Return the logarithms of the true rates, and of x and y at the starts, (2, starts)."""
    rates, starts = (torch.tensor(true, dtype=torch.float64).log() for true in (RATES, STARTS))
    return rates, starts


def integrate(rates: Tensor, starts: Tensor, length: float, count: int) -> Tensor:
    """Return ln x and ln y at the start and after Runge-Kutta steps, (1 + steps, 2, starts).

    The steps are the classical ones, of a fixed length, differentiated as they are; the samples are
    made by the same steps, so that the loss can be 0. Rates are logarithms of a, b, c and d.
    """
    a, b, c, d = rates.exp()
    none = torch.zeros_like(a)
    own = torch.stack([a, -c])[:, None]
    mutual = torch.stack([none, -b, d, none]).reshape(2, 2)
    path = [starts]
    for _ in range(count):
        at = path[-1]
        first = torch.addmm(own, mutual, at.exp())
        second = torch.addmm(own, mutual, torch.add(at, first, alpha=length / 2).exp())
        third = torch.addmm(own, mutual, torch.add(at, second, alpha=length / 2).exp())
        fourth = torch.addmm(own, mutual, torch.add(at, third, alpha=length).exp())
        slope = torch.add(first + fourth, second + third, alpha=2)
        path.append(torch.add(at, slope, alpha=length / 6))
    return torch.stack(path)
