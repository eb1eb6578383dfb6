"""The scalar policy of ``core.scalars`` for torch: in the array namespace that costs least.

Python's floats for one hidden vector on a CPU, NumPy for several, torch elsewhere and under
``torch.compile``. All of them compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.core.scalars import Gain
from hvadam.torch import tracing


@dataclass
class HiddenVectors:
    """The hidden vectors that a step moves: their scalars, and the options that rule them."""

    scalars: list[Tensor] = field(default_factory=list)  # of each
    rounding: list[float] = field(default_factory=list)  # of each, the coarsest of its state
    # Groups, with how many each has.
    owners: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    # The dots of the step, and the scalars before it: a row for each. For diagnostics.
    dots: Any = None
    before: Any = None

    def add(self, group: dict[str, Any], scalars: Sequence[Tensor]) -> int:
        """Add the hidden vectors of a group, and return the place of the first."""
        if group["scope"] == "global" and self.scalars:
            return 0
        first = len(self.scalars)
        self.scalars += scalars
        self.rounding += [0.0] * len(scalars)
        self.owners.append((group, len(scalars)))
        return first


def feet_are_clear(dots: Tensor) -> bool:
    """Return whether dots on a CPU that were summed in float32 tell every cosine by themselves."""
    with np.errstate(all="ignore"):  # what is not finite is not clear
        return bool(policy.foot_is_clear(np, list(dots.numpy().T)).all())


def first_mix(vectors: HiddenVectors, dots: Tensor) -> Tensor:
    """Return the mix that each hidden vector on a CPU is to be measured with.

    Args:
        vectors: The hidden vectors; all of them saw a gradient.
        dots: (vectors, 4) float64, good for the mix.
    """
    before = torch.stack(vectors.scalars).numpy()
    rounding = np.array(vectors.rounding)
    mix = policy.first_mix(np, list(before.T), list(dots.numpy().T), rounding=rounding)
    return torch.from_numpy(mix)


def advance(
    vectors: HiddenVectors, dots: Tensor, active: Any = True, foot: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Advance the scalars of hidden vectors in place, and return the mix and gain of each.

    Args:
        vectors: The hidden vectors.
        dots: (vectors, 4) float64: ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² of each.
        active: Whether it saw any gradient: of each, or of all.
        foot: ‖foot‖² of each, if it was measured after a move by `first_mix`.
    """
    vectors.dots = dots
    # On a CPU the fewer numbers there are, the less is gained by arrays of them.
    on_cpu = dots.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and len(vectors.scalars) == 1:
        measured = None if foot is None else foot.item()
        return _advance_floats(vectors, dots, bool(active), measured)
    before = torch.stack([scalars.to(dots.device) for scalars in vectors.scalars])
    vectors.before = before
    options = {**_options(vectors, dots), "active": active, "foot": foot}
    if on_cpu:
        mix, gain, after = _advance_numpy(vectors, before, dots, options)
    else:
        gains = policy.piecewise(torch, _gains(vectors))
        mix, gain, after = policy.advance(torch, before, dots, gain=gains, **options)
    torch._foreach_copy_(vectors.scalars, after.unbind())
    return mix, gain


def _advance_floats(
    vectors: HiddenVectors, dots: Tensor, active: bool, foot: float | None
) -> tuple[Tensor, Tensor]:
    """Advance a single hidden vector on a CPU."""
    group, _ = vectors.owners[0]
    vectors.before = [vectors.scalars[0].tolist()]
    after = torch.tensor(
        policy.decide(
            policy.Floats,
            vectors.before[0],
            dots[0].tolist(),
            beta2=group["betas"][1],
            threshold=group["restart_threshold"],
            gain=policy.GAINS[group["hidden_gain"]],
            restart_rule=group["restart_rule"],
            rounding=vectors.rounding[0],
            active=active,
            foot=foot,
        ),
        dtype=torch.float64,
        device="cpu",
    )
    vectors.scalars[0].copy_(after)
    return after[policy.MIX : policy.MIX + 1], after[policy.GAIN : policy.GAIN + 1]


def _advance_numpy(
    vectors: HiddenVectors, before: Tensor, dots: Tensor, options: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Advance several hidden vectors on a CPU, and return mix, gain and the next scalars."""
    options = {k: x.numpy() if isinstance(x, Tensor) else x for k, x in options.items()}
    gains = policy.piecewise(np, _gains(vectors))
    made = policy.advance(np, before.numpy(), dots.numpy(), gain=gains, **options)
    mix, gain, after = (torch.from_numpy(np.asarray(x)) for x in made)
    return mix, gain, after


def _options(vectors: HiddenVectors, dots: Tensor) -> dict[str, Any]:
    """Return the options of the policy, each one number or a tensor with one per hidden vector."""
    owners = vectors.owners
    betas = [group["betas"][1] for group, _ in owners]
    thresholds = [group["restart_threshold"] for group, _ in owners]
    counts = [count for _, count in owners]
    return {
        "beta2": _number_or_tensor(betas, counts, dots),
        "threshold": _number_or_tensor(thresholds, counts, dots),
        "rounding": _number_or_tensor(vectors.rounding, [1] * len(vectors.rounding), dots),
        "restart_rule": owners[0][0]["restart_rule"],
    }


def _number_or_tensor(values: Sequence[float], counts: Sequence[int], like: Tensor) -> Any:
    """Return a value that all share, else a tensor in which each is repeated as counted."""
    # A trace cannot look at tensors, so several of them are taken to differ.
    looks = not (torch.compiler.is_compiling() and any(isinstance(x, Tensor) for x in values))
    if len(values) == 1 or (looks and all(value == values[0] for value in values)):
        return tracing.operand(values[0], like.device)
    repeated = [x for x, n in zip(values, counts, strict=True) for _ in range(n)]
    if torch.compiler.is_compiling():
        return torch.stack([tracing.operand(x, like.device) for x in repeated])
    return like.new_tensor(repeated)


def _gains(vectors: HiddenVectors) -> list[tuple[Gain, int]]:
    """Return the gain functions in order, with how many consecutive hidden vectors have each."""
    runs: list[tuple[Gain, int]] = []
    for group, count in vectors.owners:
        gain = policy.GAINS[group["hidden_gain"]]
        if runs and runs[-1][0] is gain:
            runs[-1] = (gain, runs[-1][1] + count)
        else:
            runs.append((gain, count))
    return runs
