"""The paper's toy functions, at any angle and in any dimension, with exact gradients and starts.

Each function is written in its own coordinates z, in which a valley's floor lies along the last
axis, and turned: f(x) = base(Rᵀx). R is the rotation by an angle φ in the plane of the last axis
and the diagonal of the others: in the plane, z = (x cos φ - y sin φ, x sin φ + y cos φ). f1 at 45
degrees is f2. All is float64 NumPy over rows: one row is one start, and no row's numbers depend on
how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[float, float]

HUGE = 1e9  # a loss above it, or one that is not a number, ends a run as diverged
ACROSS, ALONG = 20, 22  # cells of the grid of starts
# How many starts a field has, and its seed: those that are reported, those of the angle study, and
# those on which learning rates are chosen.
FIELDS = {"grid": (ACROSS * ALONG, 0), "sample": (128, 1), "tuning": (128, 2)}


@dataclass(frozen=True)
class Function:
    """A function in its own coordinates z, of which the odd and the even ones are alike.

    Attributes:
        formula: What it is in two dimensions, at its own angle.
        base: Rows of z -> (a loss per row, its gradients).
        angle: The paper's, in degrees.
        window: Where starts are taken from, in z.
        start: In x; where the path figures start, since the paper names no starting points.
        minimiser: In z.
    """

    formula: str
    base: Callable[[Array], tuple[Array, Array]]
    angle: float = 0.0
    window: tuple[Pair, Pair] = ((-2.0, 2.0), (-2.0, 2.0))
    start: Pair = (0.5, 1.0)
    minimiser: Pair = (0.0, 0.0)


def _valley(z: Array, floor: float) -> tuple[Array, Array]:
    """Return 4√2 (|z_1| + ... + |z_{n-1}|) + floor |z_n|; at a kink its slope is 0."""
    slopes = np.full(z.shape[1], 4 * math.sqrt(2))
    slopes[-1] = floor
    return (slopes * np.abs(z)).sum(1), slopes * np.sign(z)


def _log_beale(z: Array) -> tuple[Array, Array]:
    """Return ln(1 + Beale)/10, Beale summed over the pairs of coordinates."""
    x, y = z[:, 0::2], z[:, 1::2]
    y2 = y * y
    y3 = y2 * y
    a, b, c = 1.5 - x + x * y, 2.25 - x + x * y2, 2.625 - x + x * y3
    inside = 1 + (a * a + b * b + c * c).sum(1)
    gradient = np.empty_like(z)
    gradient[:, 0::2] = 2 * (a * (y - 1) + b * (y2 - 1) + c * (y3 - 1))
    gradient[:, 1::2] = 2 * x * (a + 2 * b * y + 3 * c * y2)
    return np.log(inside) / 10, gradient / (10 * inside[:, None])


def _rosenbrock(z: Array) -> tuple[Array, Array]:
    """Return Σ 100 (z_{i+1} - z_i²)² + (1 - z_i)²."""
    left, right = z[:, :-1], z[:, 1:]
    bend, rest = right - left * left, 1 - left
    gradient = np.zeros_like(z)
    gradient[:, 1:] = 200 * bend
    gradient[:, :-1] -= 400 * left * bend + 2 * rest
    return (100 * bend * bend + rest * rest).sum(1), gradient


_GENTLE, _STEEP = (partial(_valley, floor=math.sqrt(2) / part) for part in (10, 1))
FUNCTIONS = {
    "f1": Function("4√2·|x| + (√2/10)·|y|", _GENTLE),
    "f2": Function("4·|x − y| + |x + y|/10", _GENTLE, 45.0),
    "f3": Function(
        "ln(1 + Beale)/10", _log_beale, 0.0, ((-4.0, 4.0), (-4.0, 4.0)), (-2.5, -2.5), (3.0, 0.5)
    ),
    "f4": Function(
        "Rosenbrock", _rosenbrock, 0.0, ((-2.0, 2.0), (-1.0, 3.0)), (-1.5, 2.0), (1.0, 1.0)
    ),
    "fig3": Function("4·|x − y| + |x + y|", _STEEP, 45.0),
}


@dataclass(frozen=True)
class Problem:
    """A function at an angle and in a dimension.

    At several angles it is as many problems at once, one block of rows each: a step costs the same
    whatever it moves, so this takes a fraction of the time of one angle after another.

    Attributes:
        name: A key of ``FUNCTIONS``.
        turned: Angles in degrees; none stands for the paper's.
        dimension: At least 2; even for f3.
    """

    name: str
    turned: tuple[float, ...] = ()
    dimension: int = 2

    @property
    def function(self) -> Function:
        """Return the function in its own coordinates."""
        return FUNCTIONS[self.name]

    @property
    def angles(self) -> tuple[float, ...]:
        """Return the angles, in degrees."""
        return self.turned or (self.function.angle,)

    @property
    def label(self) -> str:
        """Return its name, with the angle where it is not the paper's."""
        return "-".join([self.name, *(f"{angle:g}deg" for angle in self.turned)])

    @property
    def minimiser(self) -> Array:
        """Return the best x, at the first angle."""
        return self._turn(np.resize(self.function.minimiser, self.dimension)[None])[0]

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Return the loss of each row and its gradient; what overflows is infinite or NaN."""
        with np.errstate(all="ignore"):
            loss, gradient = self.function.base(self._turn(x, back=True))
            return loss, self._turn(gradient)

    def starts(self, field: str) -> Array:
        """Return the starts of one of ``FIELDS``, one a row, in x; the same in z at every angle.

        A "grid" of the plane has one in each cell; the other fields are drawn uniformly. The
        valleys are symmetric: from the centres of the cells three runs of four would mirror others,
        and steps of one length would meet a lattice. So starts are drawn.
        """
        count, seed = FIELDS[field]
        low, high = (np.resize(end, self.dimension) for end in np.array(self.function.window).T)
        unit = np.random.default_rng([seed, self.dimension]).random((count, self.dimension))
        if field == "grid" and self.dimension == 2:
            column, row = np.arange(count) % ACROSS, np.arange(count) // ACROSS  # bottom up
            unit = (np.stack([column, row], 1) + unit) / (ACROSS, ALONG)
        return self._turn(np.tile(low + (high - low) * unit, (len(self.angles), 1)))

    def _turn(self, rows: Array, *, back: bool = False) -> Array:
        """Return R times each row, from z to x, or its inverse; each block at its angle."""
        if not any(self.angles):
            return rows
        cos, sin = (np.repeat(x, len(rows) // len(self.angles)) for x in self._rotation)
        sin = -sin if back else sin
        turned = np.empty_like(rows)
        last = rows[:, -1]
        if self.dimension == 2:  # the rule below, without its detours
            turned[:, 0] = cos * rows[:, 0] + sin * last
            turned[:, 1] = cos * last - sin * rows[:, 0]
            return turned
        others = math.sqrt(self.dimension - 1)
        diagonal = rows[:, :-1].sum(1) / others
        move = cos * diagonal + sin * last - diagonal
        turned[:, :-1] = rows[:, :-1] + (move / others)[:, None]
        turned[:, -1] = cos * last - sin * diagonal
        return turned

    @cached_property
    def _rotation(self) -> tuple[Array, Array]:
        # The cosine as the sine of the complement, so that both are one number at 45 degrees: then
        # x = y is the bottom of f2 exactly.
        cos, sin = (
            np.array([math.sin(math.radians(x)) for x in each])
            for each in ([90.0 - x for x in self.angles], self.angles)
        )
        return cos, sin
