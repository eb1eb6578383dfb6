"""One step: hands tensors to the kernels, and runs their passes around the scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Gain
from hvadam.torch import kernels
from hvadam.torch.groups import gain_of
from hvadam.torch.kernels.batch import Batch, Columns, Options, number

# v and m_hat cannot be told apart when they differ by the roundings of their dtype. Those of
# low-bit state are random and mostly cancel, so they count for less than a machine epsilon.
LOW_BIT_ROUNDING = 2.0**-10


class Step:
    """The batches of all groups and the scalars of all hidden vectors that one step moves."""

    def __init__(self, custom_gain: Any) -> None:
        self.scalars: list[Tensor] = []  # of each scope
        self.taken: list[tuple[Options, list[Tensor]]] = []  # of each group: who moves, and how
        self._groups: list[dict[str, Any]] = []  # of each scope, one that it lies in
        self._rounding: list[float] = []  # of each scope, the coarsest of its state
        self._batches: dict[str, list[Batch]] = {}  # of each kernel
        self._idle: dict[str, list[Batch]] = {}  # without gradients, with something pending
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
        for name, batch in kernels.assign(
            group["kernel"], tensors, scopes, options, group["bounds"]
        ):
            self._batches.setdefault(name, []).append(batch)
        dtypes = [m.dtype for m in tensors.m]
        kinds = zip(scopes, dtypes, strict=True) if scalars[1:] else ((first, x) for x in {*dtypes})
        for scope, dtype in kinds:
            self._rounding[scope] = max(self._rounding[scope], _rounding(dtype))

    def add_idle(self, group: dict[str, Any], tensors: Columns) -> None:
        """Take in what has no gradient, but may have something pending."""
        scopes = [0] * len(tensors.theta)
        for name, batch in kernels.assign(
            "loop", tensors, scopes, Options.of(group), group["bounds"]
        ):
            self._idle.setdefault(name, []).append(batch)

    def run(self, late: bool, max_grad_norm: float | None, grad_scale: Tensor | None) -> None:
        """Take the step."""
        if max_grad_norm is not None or grad_scale is not None:
            self._scale_gradients(max_grad_norm, grad_scale)
        home = self.scalars[0].device
        dots = torch.zeros(len(self.scalars), 4, dtype=torch.float64, device=home)
        if late:
            self.settle_idle()
            for name, batches in self._batches.items():
                kernels.KERNELS[name].sweep(batches, dots)
        else:
            for name, batches in self._batches.items():
                kernels.KERNELS[name].accumulate(batches, dots)
        mix, gain = self._advance(dots)
        for name, batches in self._batches.items():
            kernel = kernels.KERNELS[name]
            (kernel.defer if late else kernel.apply)(batches, mix, gain)
        self._batches.clear()  # lets go of the gradients
        self._version = self.scalars[0]._version

    def settle_idle(self) -> None:
        """Do what is pending for parameters without a gradient."""
        for name, batches in self._idle.items():
            kernels.KERNELS[name].settle(batches)
        self._idle.clear()

    def is_stale(self) -> bool:
        """Whether the scalars changed since: by a compiled step, say, which leaves no Step."""
        return bool(self.scalars) and self.scalars[0]._version != self._version

    def _scale_gradients(self, max_grad_norm: float | None, grad_scale: Tensor | None) -> None:
        """Fold unscaling and clipping into the factor that kernels put on gradients.

        The rule is that of ``clip_grad_norm_``, except that a norm that is NaN clips like an
        infinite one: the parameter that brought it is lost, the others are spared.
        """
        factor: Any = 1.0 if grad_scale is None else 1.0 / grad_scale.double()
        if max_grad_norm is not None:
            total = torch.zeros((), dtype=torch.float64, device=self.scalars[0].device)
            for name, batches in self._batches.items():
                kernels.KERNELS[name].norm(batches, total)
            norm = total.sqrt() * factor
            factor = factor * (max_grad_norm / (norm + 1e-6)).clamp(max=1.0).nan_to_num(nan=0.0)
        for batches in self._batches.values():
            for i, batch in enumerate(batches):
                own = number(factor.to(batch.tensors.theta[0].device))
                batches[i] = batch._replace(options=batch.options._replace(factor=own))

    def _advance(self, dots: Tensor) -> tuple[Tensor, Tensor]:
        """The one call of the scalar policy, for all hidden vectors at once."""
        before = torch.stack([scalars.to(dots.device) for scalars in self.scalars])
        # On a CPU NumPy does the same arithmetic on so few numbers in a fraction of the time.
        on_cpu = dots.device.type == "cpu" and not torch.compiler.is_compiling()
        options: dict[str, Any] = {
            "beta2": [group["betas"][1] for group in self._groups],
            "threshold": [group["restart_threshold"] for group in self._groups],
            "rounding": self._rounding,
        }
        for name, values in options.items():
            same = all(value == values[0] for value in values)
            options[name] = values[0] if same else dots.new_tensor(values)
        runs = _runs([gain_of(group, self._custom_gain) for group in self._groups])
        rule = self._groups[0]["restart_rule"]
        if on_cpu:
            options = {k: x.numpy() if isinstance(x, Tensor) else x for k, x in options.items()}
            own = [(_of_arrays(gain, self._custom_gain), count) for gain, count in runs]
            made = policy.advance(
                np,
                before.numpy(),
                dots.numpy(),
                gain=policy.piecewise(np, own),
                restart_rule=rule,
                **options,
            )
            mix, gain, after = (torch.from_numpy(np.asarray(x)) for x in made)
        else:
            gains = policy.piecewise(torch, runs)
            mix, gain, after = policy.advance(
                torch, before, dots, gain=gains, restart_rule=rule, **options
            )
        for scalars, row in zip(self.scalars, after.unbind(), strict=True):
            scalars.copy_(row)
        return mix, gain


def _of_arrays(gain: Gain, custom: Any) -> Gain:
    """A gain of NumPy arrays; the user's own is promised tensors."""
    if gain is not custom:
        return gain
    return lambda delta: gain(torch.from_numpy(delta)).numpy()


def _rounding(dtype: torch.dtype) -> float:
    low_bit = dtype in (torch.bfloat16, torch.int8)
    return LOW_BIT_ROUNDING if low_bit else torch.finfo(dtype).eps


def _runs(values: list[Gain]) -> list[tuple[Gain, int]]:
    """Consecutive equal values with their counts."""
    runs: list[tuple[Gain, int]] = []
    for value in values:
        if runs and runs[-1][0] is value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return runs
