"""One step: hands tensors to the kernels, and runs their passes around the scalars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Gain
from hvadam.torch import kernels, sharding
from hvadam.torch.groups import gain_of
from hvadam.torch.kernels import storage
from hvadam.torch.kernels.batch import Batch, Columns, Options, number
from hvadam.torch.sharding import Sharding


class Step:
    """The batches of all groups and the scalars of all hidden vectors that one step moves."""

    def __init__(self, custom_gain: Any, sharded: Sharding | None = None) -> None:
        self.scalars: list[Tensor] = []  # of each scope
        self.taken: list[tuple[Options, list[Tensor]]] = []  # of each group: who moves, and how
        self._groups: list[dict[str, Any]] = []  # of each scope, one that it lies in
        self._rounding: list[float] = []  # of each scope, the coarsest of its state
        self._active: set[int] = set()  # scopes that saw a gradient here
        # Of each kernel, apart by whether their tensors go into the sums: copies do not.
        self._batches: dict[tuple[str, bool], list[Batch]] = {}
        self._idle: dict[str, list[Batch]] = {}  # without gradients, with something pending
        self._custom_gain = custom_gain
        self._sharded = sharded
        self._version = 0

    def add(
        self,
        group: dict[str, Any],
        tensors: Columns,
        scalars: list[Tensor],
        places: Sequence[int] | None = None,
    ) -> None:
        """Take in what has a gradient in a group.

        Args:
            group: The group.
            tensors: Its parameters that have one, with their state.
            scalars: Of the group's hidden vectors.
            places: Under scope="tensor", which of the scalars each tensor has; by default one each.
        """
        first = len(self.scalars)
        if group["scope"] == "global" and self.scalars:
            first = 0
        else:
            self.scalars += scalars
            self._groups += [group] * len(scalars)
            self._rounding += [0.0] * len(scalars)
        count = len(tensors.theta)
        if group["scope"] != "tensor":
            scopes: Sequence[int] = [first] * count
        elif places is None:
            scopes = range(first, first + count)
        else:
            scopes = [first + place for place in places]
        self._active.update(scopes if group["scope"] == "tensor" else scopes[:1])
        options = Options.of(group)
        self.taken.append((options, tensors.theta))
        for counted, columns, own in self._parts(tensors, scopes):
            for name, batch in kernels.assign(
                group["kernel"], columns, own, options, group["bounds"]
            ):
                self._batches.setdefault((name, counted), []).append(batch)
        dtypes = [m.dtype for m in tensors.m]
        kinds = zip(scopes, dtypes, strict=True) if scalars[1:] else ((first, x) for x in {*dtypes})
        for scope, dtype in kinds:
            self._rounding[scope] = max(self._rounding[scope], storage.rounding(dtype))

    def add_idle(self, group: dict[str, Any], tensors: Columns) -> None:
        """Take in what has no gradient, but may have something pending."""
        tensors = sharding.local(tensors)
        scopes = [0] * len(tensors.theta)
        for name, batch in kernels.assign(
            "loop", tensors, scopes, Options.of(group), group["bounds"]
        ):
            self._idle.setdefault(name, []).append(batch)

    def run(
        self,
        late: bool,
        max_grad_norm: float | None,
        grad_scale: Tensor | None,
        squared_norm: Tensor | None = None,
    ) -> None:
        """Take the step.

        Args:
            late: hidden_step="late".
            max_grad_norm: Clip the gradients to this norm.
            grad_scale: Divide them by this first.
            squared_norm: Of all gradients as they are, if sharded: it is known by then.
        """
        if max_grad_norm is not None or grad_scale is not None:
            self._scale_gradients(max_grad_norm, grad_scale, squared_norm)
        home = self.scalars[0].device
        dots = torch.zeros(len(self.scalars), 4, dtype=torch.float64, device=home)
        copies = torch.zeros_like(dots) if self._sharded is not None else dots
        if late:
            self.settle_idle()
        for (name, counted), batches in self._batches.items():
            kernel = kernels.KERNELS[name]
            (kernel.sweep if late else kernel.accumulate)(batches, dots if counted else copies)
        mix, gain = self._advance(dots)
        for (name, _), batches in self._batches.items():
            kernel = kernels.KERNELS[name]
            (kernel.defer if late else kernel.apply)(batches, mix, gain)
        self._batches.clear()  # lets go of the gradients
        self._version = self.scalars[0]._version
        if self._sharded is not None:  # the kernels wrote to the local parts
            increment_version([p for _, params in self.taken for p in params])

    def settle_idle(self) -> None:
        """Do what is pending for parameters without a gradient."""
        for name, batches in self._idle.items():
            kernels.KERNELS[name].settle(batches)
        self._idle.clear()

    def is_stale(self) -> bool:
        """Whether the scalars changed since: by a compiled step, say, which leaves no Step."""
        return bool(self.scalars) and self.scalars[0]._version != self._version

    def _parts(
        self, tensors: Columns, scopes: Sequence[int]
    ) -> Iterator[tuple[bool, Columns, Sequence[int]]]:
        """The tensors as they lie on this rank, those that go into the sums apart from copies."""
        if self._sharded is None:
            yield True, tensors, scopes
            return
        counts = [self._sharded.counts(p) for p in tensors.theta]
        tensors = sharding.local(tensors)
        for counted in (True, False):
            rows = [i for i, x in enumerate(counts) if x == counted]
            if rows:
                yield counted, tensors.take(rows), [scopes[i] for i in rows]

    def _scale_gradients(
        self, max_grad_norm: float | None, grad_scale: Tensor | None, squared_norm: Tensor | None
    ) -> None:
        """Fold unscaling and clipping into the factor that kernels put on gradients.

        The rule is that of ``clip_grad_norm_``, except that a norm that is NaN clips like an
        infinite one: the parameter that brought it is lost, the others are spared.
        """
        factor: Any = 1.0 if grad_scale is None else 1.0 / grad_scale.double()
        if max_grad_norm is not None:
            if squared_norm is None:
                home = self.scalars[0].device
                squared_norm = torch.zeros((), dtype=torch.float64, device=home)
                for (name, _), batches in self._batches.items():
                    kernels.KERNELS[name].norm(batches, squared_norm)
            norm = squared_norm.sqrt() * factor
            factor = factor * (max_grad_norm / (norm + 1e-6)).clamp(max=1.0).nan_to_num(nan=0.0)
        for batches in self._batches.values():
            for i, batch in enumerate(batches):
                own = number(factor.to(batch.tensors.theta[0].device))
                batches[i] = batch._replace(options=batch.options._replace(factor=own))

    def _sum_over_ranks(self, dots: Tensor) -> tuple[Tensor, Any, list[float]]:
        """The dots of all ranks, which scopes saw a gradient on any, and their roundings."""
        if self._sharded is None:
            return dots, True, self._rounding
        seen = [[float(i in self._active)] for i in range(len(self.scalars))]
        sums = torch.cat([dots, dots.new_tensor(seen)], 1)
        self._sharded.sum(sums)
        rounding = [self._sharded.rounding(i) for i in range(len(self.scalars))]
        return sums[:, :4], sums[:, 4] > 0, rounding

    def _advance(self, dots: Tensor) -> tuple[Tensor, Tensor]:
        """The scalar policy, for all hidden vectors at once."""
        dots, active, rounding = self._sum_over_ranks(dots)
        # On a CPU the fewer numbers there are, the less is gained by arrays of them.
        on_cpu = dots.device.type == "cpu" and not torch.compiler.is_compiling()
        if on_cpu and len(self.scalars) == 1:
            return self._advance_one(dots, bool(active), rounding[0])
        before = torch.stack([scalars.to(dots.device) for scalars in self.scalars])
        options: dict[str, Any] = {
            "beta2": [group["betas"][1] for group in self._groups],
            "threshold": [group["restart_threshold"] for group in self._groups],
            "rounding": rounding,
        }
        for name, values in options.items():
            same = all(value == values[0] for value in values)
            options[name] = values[0] if same else dots.new_tensor(values)
        options["active"] = active
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

    def _advance_one(self, dots: Tensor, active: bool, rounding: float) -> tuple[Tensor, Tensor]:
        """The same for a single hidden vector on a CPU."""
        group = self._groups[0]
        after = torch.tensor(
            policy.decide(
                policy.Floats,
                self.scalars[0].tolist(),
                dots[0].tolist(),
                beta2=group["betas"][1],
                threshold=group["restart_threshold"],
                gain=_of_floats(gain_of(group, self._custom_gain), self._custom_gain),
                restart_rule=group["restart_rule"],
                rounding=rounding,
                active=active,
            ),
            dtype=torch.float64,
        )
        self.scalars[0].copy_(after)
        return after[policy.MIX : policy.MIX + 1], after[policy.GAIN : policy.GAIN + 1]


def _of_arrays(gain: Gain, custom: Any) -> Gain:
    """A gain of NumPy arrays; the user's own is promised tensors."""
    if gain is not custom:
        return gain
    return lambda delta: gain(torch.from_numpy(delta)).numpy()


def _of_floats(gain: Gain, custom: Any) -> Gain:
    """The same of a float."""
    if gain is not custom:
        return gain
    return lambda delta: float(gain(torch.tensor([delta], dtype=torch.float64)))


def _runs(values: list[Gain]) -> list[tuple[Gain, int]]:
    """Consecutive equal values with their counts."""
    runs: list[tuple[Gain, int]] = []
    for value in values:
        if runs and runs[-1][0] is value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return runs
