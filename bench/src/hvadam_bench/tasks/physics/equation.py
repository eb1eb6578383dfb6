"""What a physics-informed network is trained on: an equation, the points, the loss, the error.

The loss is the mean squared residual inside, plus the mean squared errors at the start and at the
ends, equally weighted, as in "Challenges in Training PINNs" (arXiv:2402.01868).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics.jets import Jet, jet


@dataclass(frozen=True)
class Equation:
    """An equation for u(x, t), t in [0, 1], with one solution that is known.

    Attributes:
        low: The least x.
        high: The greatest.
        wanted: The derivatives that its residual is made of.
        residual: Of u and those derivatives; 0 where the equation holds.
        solution: Of points (x, t), one a row, in float64; its values at t = 0 are the start.
        periodic: Whether u is the same at both ends; it is 0 there otherwise.
        at_rest: Whether the start also says that u_t = 0.
    """

    low: float
    high: float
    wanted: Sequence[str]
    residual: Callable[[Jet], Tensor]
    solution: Callable[[Tensor], Tensor]
    periodic: bool = False
    at_rest: bool = False


class Points(NamedTuple):
    """Where the loss looks: (x, t) inside, at t = 0, and at the low and the high end of x."""

    inside: Tensor
    start: Tensor
    lows: Tensor
    highs: Tensor

    def to(self, dtype: torch.dtype) -> Points:
        """Return the points as numbers of another type."""
        return Points(*(part.to(dtype) for part in self))


def grid(equation: Equation, sizes: Sequence[int]) -> Tensor:
    """Return the points of a grid over x and t, edges included, as (sizes of x, of t, 2)."""
    x = torch.linspace(equation.low, equation.high, sizes[0], dtype=torch.float64)
    t = torch.linspace(0, 1, sizes[1], dtype=torch.float64)
    return torch.stack(torch.meshgrid(x, t, indexing="ij"), 2)


def on_grid(equation: Equation, sizes: Sequence[int], inside: int, seed: int) -> Points:
    """Draw points inside from those of a grid; at its edges take all.

    Raises:
        ValueError: the grid has fewer points inside.
    """
    whole = grid(equation, sizes)
    inner = whole[1:-1, 1:].reshape(-1, 2)
    if inside > len(inner):
        raise ValueError(
            f"inside must be at most {len(inner)}, all inner points of the grid, got {inside}."
        )
    chosen = np.random.default_rng(seed).permutation(len(inner))[:inside]
    return Points(inner[torch.from_numpy(chosen)], whole[:, 0], whole[0], whole[-1])


def scattered(equation: Equation, inside: int, start: int, ends: int, seed: int) -> Points:
    """Draw points anywhere: inside, at the start, and half as many as `ends` at each end."""
    rng = np.random.default_rng(seed)
    width = equation.high - equation.low

    def draw(count: int, x: float | None = None, t: float | None = None) -> Tensor:
        drawn = torch.from_numpy(rng.uniform(size=(count, 2)))
        drawn[:, 0] = equation.low + width * drawn[:, 0] if x is None else x
        if t is not None:
            drawn[:, 1] = t
        return drawn

    half = ends // 2
    return Points(
        draw(inside),
        draw(start, t=0),
        draw(half, x=equation.low),
        draw(ends - half, x=equation.high),
    )


class Loss:
    """The loss of a tanh perceptron from (x, t) to u.

    Args:
        equation: To solve.
        points: To solve it at.
    """

    def __init__(self, equation: Equation, points: Points) -> None:
        self.equation, self.points = equation, points
        self.start = equation.solution(points.start.double()).to(points.start.dtype)

    def __call__(self, network: Any, rows: Tensor | None = None) -> Tensor:
        """Return the loss at all points, or at some of those inside and all at the edges."""
        equation, points = self.equation, self.points
        inside = points.inside if rows is None else points.inside[rows]
        residual = equation.residual(jet(network, inside, equation.wanted))
        return residual.square().mean() + self._edges(network)

    def _edges(self, network: Any) -> Tensor:
        equation, (_, start, lows, highs) = self.equation, self.points
        u = network(torch.cat([start, lows, highs])).squeeze(1)
        begun, low, high = u.split([len(start), len(lows), len(highs)])
        ends = low - high if equation.periodic else torch.cat([low, high])
        loss = (begun - self.start).square().mean() + ends.square().mean()
        if equation.at_rest:
            loss = loss + jet(network, start, ["t"])["t"].square().mean()
        return loss


def relative_error(network: Any, points: Tensor, solution: Tensor) -> float:
    """Return the norm of a network's error over that of the solution."""
    found = network(points).squeeze(1).double()
    return ((found - solution).norm() / solution.norm()).item()


def problem(
    equation: Equation, points: Points, settings: Mapping[str, Any], seed: int
) -> FullBatchProblem:
    """Build the training of a perceptron on an equation.

    Beside the loss it measures "error", relative to the solution over the points of a grid, and
    "arrived", 1 if that is small: a loss may be small where a network fell for a solution that
    meets the equation nearly everywhere, such as u = 0.

    Args:
        equation: To solve.
        points: To solve it at.
        settings: "width" and "layers" of the network, the "grid" and "arrived_below", the error
            that counts as a solution; the rest as `FullBatchProblem` reads them.
        seed: The run's.
    """
    dtype = getattr(torch, settings["dtype"])
    everywhere = grid(equation, settings["grid"]).reshape(-1, 2)
    solution = equation.solution(everywhere)
    shown = everywhere.to(dtype)

    def measure(network: Any) -> dict[str, float]:
        error = relative_error(network, shown, solution)
        return {"error": error, "arrived": float(error < settings["arrived_below"])}

    return FullBatchProblem(
        lambda: tanh_mlp([2, *[settings["width"]] * settings["layers"], 1]),
        Loss(equation, points.to(dtype)),
        len(points.inside),
        settings,
        seed,
        measure=measure,
    )
