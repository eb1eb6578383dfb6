"""Contenders that look beyond a coordinate, for a matrix whose rows are problems of their own.

Each is the contender itself with its one statistic taken per row: what a single run would compute
in that row, for all rows in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from hvadam.core import scalars as policy
from hvadam.torch import kernels
from hvadam.torch.kernels import Batch, Columns, Options
from hvadam_bench.contenders import OptimizerSpec, create
from hvadam_bench.contenders._implementations._base import Moving
from hvadam_bench.contenders._implementations.adai import Adai
from hvadam_bench.contenders._implementations.fromage import Fromage


class Form(Protocol):
    """An optimizer over the rows of one tensor."""

    def step(self) -> Any:
        """Take a step of every row."""
        ...


def parameter(theta: Tensor, g: Tensor) -> nn.Parameter:
    """Return a leaf that shares the memory of the positions, its gradient that of the gradients."""
    leaf = nn.Parameter(theta)
    leaf.grad = g
    return leaf


class HiddenRows:
    """HVAdam with a hidden vector per row.

    ``HVAdam(scope="tensor")`` with a tensor per row is the same, but looks up every tensor and its
    state anew at every step, which takes ten times as long as the step. This looks once, and then
    calls the same kernels around the same policy.
    """

    def __init__(
        self, spec: OptimizerSpec, options: Mapping[str, Any], theta: Tensor, g: Tensor
    ) -> None:
        made = create(
            spec.name, [parameter(*pair) for pair in zip(theta, g, strict=True)], **options
        )
        group = self._group = made.param_groups[0]
        count = len(theta)
        m, v, s = (list(torch.zeros_like(theta)) for _ in range(3))
        columns = Columns(group["params"], list(g), m, v, s, list(torch.zeros(count)))
        self._batches: dict[str, list[Batch[Any]]] = {}
        for name, batch in kernels.assign(
            group["kernel"], Options.of(group), columns, range(count)
        ):
            self._batches.setdefault(name, []).append(batch)
        self._scalars = np.tile(policy.INITIAL, (count, 1))

    @torch.no_grad()
    def step(self) -> None:
        """Take both passes, around the scalars of every row."""
        group = self._group
        dots = torch.zeros(len(self._scalars), 4, dtype=torch.float64)
        for name, batches in self._batches.items():
            kernels.KERNELS[name].accumulate(batches, dots)
        with np.errstate(over="ignore"):  # of gradients that have all but vanished
            mix, gain, self._scalars = policy.advance(
                np,
                self._scalars,
                dots.numpy(),
                beta2=group["betas"][1],
                threshold=group["restart_threshold"],
                gain=policy.GAINS[group["hidden_gain"]],
                restart_rule=group["restart_rule"],
                rounding=float(np.finfo(np.float64).eps),
            )
        for name, batches in self._batches.items():
            kernels.KERNELS[name].apply(batches, torch.from_numpy(mix), torch.from_numpy(gain))


class AdaiRows(Adai):
    """Adai whose mean is over a row."""

    def _second_moments(self, everything: list[Moving]) -> Tensor:
        super()._second_moments(everything)
        [(param, _, state, group, _)] = everything
        moment = state["exp_avg_sq"].sum(1, keepdim=True) / (1 - group["betas"][1] ** state["step"])
        return moment / param.shape[1]


class FromageRows(Fromage):
    """Fromage whose norms are of rows."""

    def update(self, moving: Moving) -> None:
        param, grad, _, _, lr = moving
        size, slope = (torch.linalg.vector_norm(x, dim=1, keepdim=True) for x in (param, grad))
        scale = torch.where((size > 0) & (slope > 0), size / slope, torch.ones_like(size))
        param.sub_(grad * scale * lr).div_(math.sqrt(1 + lr**2))


def _rows_of(optimizer: type[Adai] | type[Fromage]) -> Callable[..., Form]:
    def build(spec: OptimizerSpec, options: Mapping[str, Any], theta: Tensor, g: Tensor) -> Form:
        return optimizer([parameter(theta, g)], **{**spec.defaults, **options})

    return build


def _flat(spec: OptimizerSpec, options: Mapping[str, Any], theta: Tensor, g: Tensor) -> Form:
    """Build Muon for points: it orthogonalizes matrices only, so to vectors it is an AdamW."""
    return create(spec.name, [parameter(theta.view(-1), g.view(-1))], **options)


FORMS: dict[str, Callable[..., Form]] = {
    "adai": _rows_of(AdaiRows),
    "fromage": _rows_of(FromageRows),
    "muon": _flat,
    "hvadam": HiddenRows,
    "hvadam1": HiddenRows,
    "hvadam2": HiddenRows,
}
