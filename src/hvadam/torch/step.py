"""One step: sorts tensors into batches for the kernels, and runs both passes around the scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.torch import kernels
from hvadam.torch.groups import gain_of
from hvadam.torch.kernels.batch import Batch, Options, number


class Step:
    """The batches of all groups and the scalars of all hidden vectors that one step moves."""

    def __init__(self, custom_gain: Any) -> None:
        self.batches: list[Batch] = []
        self.kernels: list[str] = []  # of each batch
        self.scopes: list[int] = []  # of each batch
        self.scalars: list[Tensor] = []  # of each scope
        self.groups: list[dict[str, Any]] = []  # of each scope, one that it lies in
        self.taken: list[tuple[Options, list[Tensor]]] = []  # of each group: who moves, and how
        self._custom_gain = custom_gain

    def add(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        hiddens: list[Tensor],
        exp_avg_vars: list[Tensor],
        steps: list[Tensor],
        scalars: list[Tensor],
    ) -> None:
        """Count the step of a group's tensors and sort them into batches."""
        first = len(self.scalars)
        if group["scope"] == "global" and self.groups:
            first = 0
        else:
            self.scalars += scalars
            self.groups += [group] * len(scalars)
        options = Options.of(group)
        self.taken.append((options, params))
        torch._foreach_add_(steps, 1)
        bias1, bias2 = _bias_corrections(steps, options)

        # One batch has one kernel, hidden vector, dtype and device.
        batches: dict[Any, Batch] = {}
        rows = zip(params, grads, exp_avgs, hiddens, exp_avg_vars, bias1, bias2, strict=True)
        for i, (theta, g, m, v, s, b1, b2) in enumerate(rows):
            scope = first + i if group["scope"] == "tensor" else first
            kernel = kernels.select(group["kernel"], theta)
            key = (kernel, scope, theta.dtype, theta.device)
            batch = batches.get(key)
            if batch is None:
                batch = batches[key] = Batch([], [], [], [], [], [], [], options)
                self.batches.append(batch)
                self.kernels.append(kernel)
                self.scopes.append(scope)
            batch.append(theta, g, m, v, s, b1, b2)

    def run(self) -> None:
        """Accumulate, advance, apply: parameters are written last, when the scalars are known."""
        home = self.scalars[0].device
        served = {
            name: [i for i, used in enumerate(self.kernels) if used == name]
            for name in dict.fromkeys(self.kernels)
        }
        dots: list[list[Tensor]] = [[] for _ in self.scalars]  # of each scope
        for name, indices in served.items():
            rows = kernels.KERNELS[name].accumulate([self.batches[i] for i in indices])
            for i, row in zip(indices, rows, strict=True):
                dots[self.scopes[i]].append(row.to(home))

        mix, gain = self._advance(torch.stack([torch.stack(rows).sum(0) for rows in dots]))

        for name, indices in served.items():
            devices = [self.batches[i].theta[0].device for i in indices]
            scopes = [self.scopes[i] for i in indices]
            kernels.KERNELS[name].apply(
                [self.batches[i] for i in indices],
                [mix[scope].to(device) for scope, device in zip(scopes, devices, strict=True)],
                [gain[scope].to(device) for scope, device in zip(scopes, devices, strict=True)],
            )

    def _advance(self, dots: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The one call of the scalar policy, for all hidden vectors at once."""
        rounding = [0.0] * len(self.scalars)
        for batch, scope in zip(self.batches, self.scopes, strict=True):
            rounding[scope] = max(rounding[scope], torch.finfo(batch.m[0].dtype).eps)
        gains = [gain_of(group, self._custom_gain) for group in self.groups]
        mix, gain, after = policy.advance(
            torch,
            torch.stack([scalars.to(dots.device) for scalars in self.scalars]),
            dots,
            beta2=_per_scope([group["betas"][1] for group in self.groups], dots),
            threshold=_per_scope([group["restart_threshold"] for group in self.groups], dots),
            gain=policy.piecewise(torch, _runs(gains)),
            restart_rule=self.groups[0]["restart_rule"],
            rounding=_per_scope(rounding, dots),
        )
        for scalars, row in zip(self.scalars, after.unbind(), strict=True):
            scalars.copy_(row)
        return mix.unbind(), gain.unbind()


def _bias_corrections(steps: list[Tensor], o: Options) -> tuple[list[Any], list[Any]]:
    """1 - beta**t of each tensor, in double: 1 - 0.999f would be off by 5e-5."""
    if isinstance(number(steps[0]), Tensor):
        t = torch.stack(steps).double()
        return list((1.0 - o.beta1**t).unbind()), list((1.0 - o.beta2**t).unbind())
    counts = [t.item() for t in steps]
    bias = {t: (1.0 - o.beta1**t, 1.0 - o.beta2**t) for t in set(counts)}
    return [bias[t][0] for t in counts], [bias[t][1] for t in counts]


def _per_scope(values: list[float], like: Tensor) -> float | Tensor:
    """One float if all scopes agree, else a tensor of them."""
    if all(value == values[0] for value in values):
        return values[0]
    return torch.tensor(values, dtype=torch.float64, device=like.device)


def _runs(values: list[Any]) -> list[tuple[Any, int]]:
    """Consecutive equal values with their counts."""
    runs: list[tuple[Any, int]] = []
    for value in values:
        if runs and runs[-1][0] is value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return runs
