r"""The paper's toy functions, at any angle and in any dimension, with exact gradients.

Each function is written in its own coordinates z, in which a valley's floor lies along the last
axis, and turned: f(x) = base(Rᵀx). R is the rotation by ``angle`` in the plane of the last axis
and the diagonal of the others, so that in two dimensions

$$z_1 = x \cos\varphi - y \sin\varphi, \quad z_2 = x \sin\varphi + y \cos\varphi$$

f1 at 45 degrees is f2. All is float64 NumPy over rows: one row is one start, and no row's numbers
depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Window = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Function:
    """A function in its own coordinates.

    Attributes:
        formula: What it is in two dimensions, at its own angle.
        base: Rows of z -> (a loss per row, its gradients).
        angle: In degrees, as the paper has it.
        window: Where starts are taken from, in z; odd and even coordinates take turns.
        start: In x; where the path figures start, since the paper names no starting points.
        minimiser: In z, odd and even coordinates likewise.
        dimensions: The ones it exists in are the multiples of this, from 2 on.
    """

    formula: str
    base: Callable[[Array], tuple[Array, Array]]
    angle: float
    window: Window
    start: tuple[float, float]
    minimiser: tuple[float, float] = (0.0, 0.0)
    dimensions: int = 1


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


_SQUARE: Window = ((-2.0, 2.0), (-2.0, 2.0))
_GENTLE = partial(_valley, floor=math.sqrt(2) / 10)

FUNCTIONS = {
    "f1": Function("4√2·|x| + (√2/10)·|y|", _GENTLE, 0.0, _SQUARE, (0.5, 1.0)),
    "f2": Function("4·|x − y| + |x + y|/10", _GENTLE, 45.0, _SQUARE, (0.5, 1.0)),
    "f3": Function(
        "ln(1 + Beale)/10",
        _log_beale,
        0.0,
        ((-4.0, 4.0), (-4.0, 4.0)),
        (-2.5, -2.5),
        minimiser=(3.0, 0.5),
        dimensions=2,
    ),
    "f4": Function(
        "Rosenbrock",
        _rosenbrock,
        0.0,
        ((-2.0, 2.0), (-1.0, 3.0)),
        (-1.5, 2.0),
        minimiser=(1.0, 1.0),
    ),
    "fig3": Function(
        "4·|x − y| + |x + y|", partial(_valley, floor=math.sqrt(2)), 45.0, _SQUARE, (0.5, 1.0)
    ),
}


@dataclass(frozen=True)
class Problem:
    """A function at an angle and in a dimension.

    Args:
        name: A key of ``FUNCTIONS``.
        angle: In degrees; None for the paper's.
        dimension: At least 2.

    Raises:
        ValueError: A name, an angle or a dimension that does not exist.

    Example:
        >>> problem = Problem.of("f2")
        >>> loss, gradient = problem.evaluate(np.array([[0.5, 1.0]]))
        >>> loss.round(6).tolist(), gradient.round(6).tolist()
        ([2.15], [[-3.9, 4.1]])
    """

    name: str
    angle: float
    dimension: int

    @classmethod
    def of(cls, name: str, angle: float | None = None, dimension: int = 2) -> Problem:
        """Check the arguments, and fill in the paper's angle."""
        if name not in FUNCTIONS:
            raise ValueError(f"valley: there is no function {name!r}; choose from {_known()}.")
        function = FUNCTIONS[name]
        angle = function.angle if angle is None else float(angle)
        if not math.isfinite(angle) or abs(angle) > 360:
            raise ValueError(f"valley: an angle must be within 360 degrees, got {angle:g}.")
        if dimension < 2 or dimension % function.dimensions:
            rule = "even" if function.dimensions == 2 else "at least 2"
            raise ValueError(f"valley: the dimension of {name} must be {rule}, got {dimension}.")
        return cls(name, angle, dimension)

    @property
    def function(self) -> Function:
        """Return the function in its own coordinates."""
        return FUNCTIONS[self.name]

    @property
    def label(self) -> str:
        """Return its name, with angle and dimension where they are not the paper's."""
        turned = "" if self.angle == self.function.angle else f"-{self.angle:g}deg"
        return self.name + turned + ("" if self.dimension == 2 else f"-{self.dimension}d")

    @property
    def minimiser(self) -> Array:
        """Return the best x."""
        z = np.resize(self.function.minimiser, self.dimension)
        return self.turn(z[None])[0]

    @property
    def parts(self) -> list[Problem]:
        """Return the problem itself; a ``Fan`` has several."""
        return [self]

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Return the loss of each row and its gradient; what overflows is infinite or NaN."""
        with np.errstate(all="ignore"):
            if not self.angle:
                return self.function.base(x)
            cos, sin = self._rotation
            loss, gradient = self.function.base(_turn(x, cos, -sin))
            return loss, _turn(gradient, cos, sin)

    def turn(self, z: Array) -> Array:
        """Return R times each row: from z to x."""
        return _turn(z, *self._rotation) if self.angle else z

    @cached_property
    def _rotation(self) -> tuple[float, float]:
        # The cosine as the sine of the complement, so that both are one number at 45 degrees: then
        # x = y is the bottom of f2 exactly.
        return math.sin(math.radians(90.0 - self.angle)), math.sin(math.radians(self.angle))


@dataclass(frozen=True)
class Fan:
    """One function at several angles at once: as many blocks of rows as there are angles.

    A step costs the same whatever it moves, so this takes a fraction of the time of one angle
    after another.
    """

    parts: tuple[Problem, ...]

    @property
    def label(self) -> str:
        """Return the name of the function, and its dimension where it is not 2."""
        first = self.parts[0]
        return f"{first.name}-fan" + ("" if first.dimension == 2 else f"-{first.dimension}d")

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Return the loss of each row and its gradient, each block at its angle."""
        cos, sin = (np.repeat(column, len(x) // len(self.parts)) for column in self._rotations)
        with np.errstate(all="ignore"):
            loss, gradient = self.parts[0].function.base(_turn(x, cos, -sin))
            return loss, _turn(gradient, cos, sin)

    @cached_property
    def _rotations(self) -> Array:
        return np.array([part._rotation for part in self.parts]).T


def _turn(rows: Array, cos: Any, sin: Any) -> Array:
    """Rotate rows, by one angle or by one each."""
    turned = np.empty_like(rows)
    last = rows[:, -1]
    if rows.shape[1] == 2:  # the rule below, without its detours
        first = rows[:, 0]
        turned[:, 0] = cos * first + sin * last
        turned[:, 1] = cos * last - sin * first
        return turned
    others = math.sqrt(rows.shape[1] - 1)
    diagonal = rows[:, :-1].sum(1) / others
    move = cos * diagonal + sin * last - diagonal
    turned[:, :-1] = rows[:, :-1] + (move / others)[:, None]
    turned[:, -1] = cos * last - sin * diagonal
    return turned


def _known() -> str:
    return ", ".join(FUNCTIONS)
