"""One step: hands tensors to the kernels, and runs both passes around the scalars."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Gain
from hvadam.torch import kernels
from hvadam.torch.groups import gain_of
from hvadam.torch.kernels.batch import Batch, Columns, Options


class Step:
    """The batches of all groups and the scalars of all hidden vectors that one step moves."""

    def __init__(self, custom_gain: Any) -> None:
        self.scalars: list[Tensor] = []  # of each scope
        self.taken: list[tuple[Options, list[Tensor]]] = []  # of each group: who moves, and how
        self._groups: list[dict[str, Any]] = []  # of each scope, one that it lies in
        self._rounding: list[float] = []  # of each scope, the coarsest of its state
        self._batches: dict[str, list[Batch]] = {}  # of each kernel
        self._custom_gain = custom_gain
        self._version = 0

    def add(self, group: dict[str, Any], tensors: Columns, scalars: list[Tensor]) -> None:
        """Take in what has a gradient in a group."""
        first = len(self.scalars)
        if group["scope"] == "global" and self.scalars:
            first = 0
        else:
            self.scalars += scalars
            self._groups += [group] * len(scalars)
            self._rounding += [0.0] * len(scalars)
        count = len(tensors.theta)
        scopes = range(first, first + count) if group["scope"] == "tensor" else [first] * count
        options = Options.of(group)
        self.taken.append((options, tensors.theta))
        for name, batch in kernels.assign(group["kernel"], tensors, scopes, options):
            self._batches.setdefault(name, []).append(batch)
        for scope, dtype in set(zip(scopes, [m.dtype for m in tensors.m], strict=True)):
            self._rounding[scope] = max(self._rounding[scope], torch.finfo(dtype).eps)

    def run(self) -> None:
        """Accumulate, advance, apply: parameters are written last, when the scalars are known."""
        home = self.scalars[0].device
        dots = torch.zeros(len(self.scalars), 4, dtype=torch.float64, device=home)
        for name, batches in self._batches.items():
            kernels.KERNELS[name].accumulate(batches, dots)
        mix, gain = self._advance(dots)
        for name, batches in self._batches.items():
            kernels.KERNELS[name].apply(batches, mix, gain)
        self._batches.clear()  # lets go of the gradients
        self._version = self.scalars[0]._version

    def is_stale(self) -> bool:
        """Whether the scalars changed since: by a compiled step, say, which leaves no Step."""
        return bool(self.scalars) and self.scalars[0]._version != self._version

    def _advance(self, dots: Tensor) -> tuple[Tensor, Tensor]:
        """The one call of the scalar policy, for all hidden vectors at once."""
        before = torch.stack([scalars.to(dots.device) for scalars in self.scalars])
        options: dict[str, Any] = {
            "beta2": [group["betas"][1] for group in self._groups],
            "threshold": [group["restart_threshold"] for group in self._groups],
            "rounding": self._rounding,
        }
        for name, values in options.items():
            same = all(value == values[0] for value in values)
            options[name] = values[0] if same else dots.new_tensor(values)
        runs = _runs([gain_of(group, self._custom_gain) for group in self._groups])
        mix, gain, after = policy.advance(
            torch,
            before,
            dots,
            gain=policy.piecewise(torch, runs),
            restart_rule=self._groups[0]["restart_rule"],
            **options,
        )
        for scalars, row in zip(self.scalars, after.unbind(), strict=True):
            scalars.copy_(row)
        return mix, gain


def _runs(values: list[Gain]) -> list[tuple[Gain, int]]:
    """Consecutive equal values with their counts."""
    runs: list[tuple[Gain, int]] = []
    for value in values:
        if runs and runs[-1][0] is value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return runs
