"""How the cost of a valley grows with its condition number, and what noise makes of it.

The valleys are quadratics ½ xᵀAx turned at random, with eigenvalues from 1 down to 1/condition in
equal ratios, started with the same loss along every axis. The rate is tuned for every racer at
every point: all rates run side by side. A step of every racer is its rate times something that the
gradients alone decide, so a row at rate r is the row at rate 1 of y in x = start + r·y.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import linear_regression
from typing import Any

import torch
from torch import Tensor

from hvadam._version import __version__
from hvadam_bench.studies._study import OnProgress
from hvadam_bench.studies.valley.plan import Quadratics
from hvadam_bench.studies.valley.race import make_movers, parameter
from hvadam_bench.studies.valley.result import Conditioning, Growth, Point, Response

CONVERGED = 1e-6  # of the loss at the start
SEEDS = 5  # valleys of a kind; a rate converges where most of them do
RATES = tuple(10.0 ** (k / 4) for k in range(-16, 13))
NOISE = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)  # lengths of the gradient
NOISY_CONDITION, NOISY_DIMENSION = 1e3, 100

# The racers' options, at their rate 1; nobody decays by default but AdamW, who is not here.
RACERS: dict[str, dict[str, Any]] = {
    "sgd": {},
    "sgd (Nesterov)": {},
    "adam": {},
    "nadam": {},
    "adabelief": {"eps": 1e-12},
    "hvadam": {},
}


def measure(
    plan: Quadratics, on_progress: OnProgress, racers: Sequence[str] = tuple(RACERS)
) -> Conditioning:
    """Race down valleys of every condition number, then with noise."""
    parts = len(racers) * (len(plan.dimensions) * len(plan.conditions) + len(NOISE))

    def point(racer: str, condition: float, dimension: int) -> Point:
        on_progress(f"{racer}, condition {condition:g}, {dimension} dimensions", 1 / parts)
        return converge(racer, condition, dimension, plan.most)

    def grow(racer: str, dimension: int) -> Growth:
        points = tuple(point(racer, condition, dimension) for condition in plan.conditions)
        return Growth(points, fit_exponent(points))

    def response(racer: str, noise: float) -> Response:
        on_progress(f"{racer}, noise {noise:g}", 1 / parts)
        return respond(racer, noise, plan.noisy_steps)

    return Conditioning(
        versions={"hvadam": __version__, "torch": torch.__version__},
        seeds=SEEDS,
        arrived=CONVERGED,
        most=plan.most,
        growth={str(n): {racer: grow(racer, n) for racer in racers} for n in plan.dimensions},
        noise={racer: tuple(response(racer, noise) for noise in NOISE) for racer in racers},
        noisy_condition=NOISY_CONDITION,
        noisy_dimension=NOISY_DIMENSION,
        noisy_steps=plan.noisy_steps,
    )


def converge(racer: str, condition: float, dimension: int, most: int) -> Point:
    """Return the steps that a racer needs at its best rate."""
    reached = torch.zeros(SEEDS, len(RATES), dtype=torch.bool)
    for t, losses in enumerate(_walk(racer, condition, dimension)):
        reached |= losses <= CONVERGED
        converged = reached.sum(0) > SEEDS // 2
        if converged.any():  # any other rate takes longer
            return Point(condition, t, RATES[int(converged.int().argmax())])
        if t == most:
            break
    return Point(condition, None, None)


def respond(racer: str, noise: float, steps: int) -> Response:
    """Return what is left of the loss after so many steps, at the best rate."""
    walk = _walk(racer, NOISY_CONDITION, NOISY_DIMENSION, noise)
    losses = next(itertools.islice(walk, steps, None))
    left = losses.nan_to_num(math.inf, posinf=math.inf).median(0).values
    best = int(left.argmin())
    return Response(noise, left[best].item(), RATES[best])


def valleys(condition: float, dimension: int) -> tuple[Tensor, Tensor]:
    """Return the matrices of the valleys, (seeds, d, d), and a start in each, (seeds, d)."""
    generator = torch.Generator().manual_seed(0)
    eigenvalues = condition ** (-torch.linspace(0, 1, dimension, dtype=torch.float64))
    drawn = torch.randn(SEEDS, dimension, dimension, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(drawn).Q
    signs = torch.randint(0, 2, (SEEDS, dimension), generator=generator).double() * 2 - 1
    starts = (turn @ (signs / eigenvalues.sqrt())[..., None])[..., 0]
    return turn * eigenvalues @ turn.mT, starts


def _walk(racer: str, condition: float, dimension: int, noise: float = 0.0) -> Iterator[Tensor]:
    """Yield the losses after 0, 1, 2, ... steps over those at the start: (seeds, rates)."""
    matrices, starts = valleys(condition, dimension)
    generator = torch.Generator().manual_seed(1)
    rates = torch.tensor(RATES, dtype=torch.float64)[None, :, None]
    y = torch.zeros(SEEDS * len(RATES), dimension, dtype=torch.float64)
    g = torch.zeros_like(y)
    optimizer = _make_mover(racer, y, g)
    shape = (SEEDS, len(RATES), dimension)
    slopes = g.view(shape)
    first = None
    while True:
        x = starts[:, None] + rates * y.detach().view(shape)
        torch.matmul(x, matrices, out=slopes)
        losses = (x * slopes).sum(-1) / 2
        first = losses.clone() if first is None else first
        yield losses / first
        # What has diverged would only slow the others down with infinities.
        slopes[~(losses < 1e12)] = 0.0
        if noise:
            length = torch.linalg.vector_norm(slopes, dim=-1, keepdim=True) / math.sqrt(dimension)
            drawn = torch.randn(SEEDS, 1, dimension, generator=generator, dtype=torch.float64)
            slopes += noise * length * drawn  # the same draw at every rate
        optimizer.step()


def fit_exponent(points: Sequence[Point]) -> float | None:
    """Return the slope of log steps over log condition, by least squares."""
    pairs = [(math.log(p.condition), math.log(p.steps)) for p in points if p.steps]
    return linear_regression(*zip(*pairs, strict=True)).slope if len(pairs) > 2 else None


def _make_mover(racer: str, y: Tensor, g: Tensor) -> Any:
    """Build a racer at rate 1 over rows that do not know of each other."""
    if racer == "sgd (Nesterov)":
        return torch.optim.SGD([parameter(y, g)], lr=1.0, momentum=0.9, nesterov=True)
    [mover] = make_movers(racer, {**RACERS[racer], "lr": 1.0}, y, g)
    return mover
