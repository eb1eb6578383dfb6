"""How the cost of a valley grows with its condition number, and what noise makes of it.

The valleys are quadratics ½ xᵀAx turned at random, with eigenvalues from 1 down to 1/condition in
equal ratios, started with the same loss along every axis. The rate is tuned for every racer at
every point: all rates run side by side. A step of every racer is its rate times something that the
gradients alone decide, so a row at rate r is the row at rate 1 of y in x = start + r·y.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders import get
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.toy_functions.rows import FORMS, Form, parameter

CONDITIONS = tuple(10.0**k for k in range(1, 7))
DIMENSIONS = (10, 100)
ARRIVED = 1e-6  # of the loss at the start
MOST = 100_000  # steps
SEEDS = 5  # valleys of a kind; a rate has arrived when most of them have
RATES = tuple(10.0 ** (k / 4) for k in range(-16, 13))
NOISE = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)  # lengths of the gradient
NOISY_CONDITION, NOISY_DIMENSION, NOISY_STEPS = 1e3, 100, 2000

RACERS: dict[str, Callable[[Tensor, Tensor], Form]] = {
    "sgd": lambda x, g: _contender("sgd", x, g),
    "sgd (Nesterov)": lambda x, g: torch.optim.SGD(
        [parameter(x, g)], lr=1.0, momentum=0.9, nesterov=True
    ),
    "adam": lambda x, g: _contender("adam", x, g),
    "nadam": lambda x, g: _contender("nadam", x, g),
    "adabelief": lambda x, g: _contender("adabelief", x, g, eps=1e-12),
    "hvadam": lambda x, g: _contender("hvadam", x, g),
}


@dataclass(frozen=True)
class Point:
    """The fewest steps to the end of valleys of one condition number.

    Attributes:
        condition: The largest eigenvalue over the smallest.
        steps: At the best rate, the median over the valleys; None if most did not arrive.
        rate: The best one; None if none arrived.
    """

    condition: float
    steps: int | None
    rate: float | None


@dataclass(frozen=True)
class Growth:
    """How one racer's cost grows in one dimension.

    Attributes:
        points: By condition number.
        exponent: p of steps ~ conditionᵖ, fitted to the points that arrived; None if fewer than 3.
    """

    points: tuple[Point, ...]
    exponent: float | None


@dataclass(frozen=True)
class Response:
    """The loss that is left after so many steps with noise on the gradients.

    Attributes:
        noise: In lengths of the gradient.
        left: Of the loss at the start, at the best rate, the median over the valleys.
        rate: The best one.
    """

    noise: float
    left: float
    rate: float


@dataclass(frozen=True)
class Conditioning:
    """The whole study."""

    versions: Mapping[str, str]
    seeds: int
    arrived: float
    most: int
    growth: Mapping[str, Mapping[str, Growth]]  # dimension -> racer
    noise: Mapping[str, tuple[Response, ...]]  # racer
    noisy_condition: float
    noisy_dimension: int
    noisy_steps: int

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(_results.to_json(self), indent=1, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> Conditioning:
        """Read the JSON form."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))


def measure(
    racers: Sequence[str] = tuple(RACERS),
    conditions: Sequence[float] = CONDITIONS,
    dimensions: Sequence[int] = DIMENSIONS,
    most: int = MOST,
    noisy_steps: int = NOISY_STEPS,
    on_progress: OnProgress = ignore_progress,
) -> Conditioning:
    """Race everyone down valleys of every condition number, then with noise.

    Args:
        racers: Of RACERS.
        conditions: Condition numbers.
        dimensions: Of the valleys.
        most: Steps that a racer may take.
        noisy_steps: Steps with noise.
        on_progress: Told of the progress.
    """
    from hvadam import __version__

    parts = len(racers) * (len(dimensions) * len(conditions) + len(NOISE))
    growth: dict[str, dict[str, Growth]] = {}
    for dimension in dimensions:
        for racer in racers:
            points: list[Point] = []
            for condition in conditions:
                on_progress(f"{racer}, condition {condition:g}, {dimension} dimensions", 1 / parts)
                points.append(arrive(racer, condition, dimension, most))
            found = Growth(tuple(points), _exponent(points))
            growth.setdefault(str(dimension), {})[racer] = found
    noise: dict[str, tuple[Response, ...]] = {}
    for racer in racers:
        responses: list[Response] = []
        for level in NOISE:
            on_progress(f"{racer}, noise {level:g}", 1 / parts)
            responses.append(respond(racer, level, noisy_steps))
        noise[racer] = tuple(responses)
    return Conditioning(
        versions={"hvadam": __version__, "torch": torch.__version__},
        seeds=SEEDS,
        arrived=ARRIVED,
        most=most,
        growth=growth,
        noise=noise,
        noisy_condition=NOISY_CONDITION,
        noisy_dimension=NOISY_DIMENSION,
        noisy_steps=noisy_steps,
    )


def arrive(racer: str, condition: float, dimension: int, most: int) -> Point:
    """Return the steps that a racer needs at its best rate."""
    reached = torch.zeros(SEEDS, len(RATES), dtype=torch.bool)
    for t, losses in enumerate(_walk(racer, condition, dimension)):
        reached |= losses <= ARRIVED
        arrived = reached.sum(0) > SEEDS // 2
        if arrived.any():  # whoever is not there yet takes longer
            return Point(condition, t, RATES[int(arrived.int().argmax())])
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
    optimizer = RACERS[racer](y, g)
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


def _contender(name: str, x: Tensor, g: Tensor, **options: Any) -> Form:
    """Build a contender at rate 1 over rows that do not know of each other."""
    spec = get(name)
    chosen = {**options, "lr": 1.0}  # nobody decays by default but AdamW, who is not here
    if name in FORMS:
        return FORMS[name](spec, chosen, x, g)
    return spec.build(None, [{"params": [parameter(x, g)]}], {**spec.defaults, **chosen})


def _exponent(points: Sequence[Point]) -> float | None:
    """Return the slope of log steps over log condition, by least squares."""
    pairs = [(math.log(p.condition), math.log(p.steps)) for p in points if p.steps]
    if len(pairs) < 3:
        return None
    x, y = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a, _ in pairs)
