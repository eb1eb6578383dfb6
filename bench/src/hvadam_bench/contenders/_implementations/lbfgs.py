"""L-BFGS within a number of evaluations, and another optimizer before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from hvadam_bench.contenders._options import between, positive, whole

# Iterations of one call of `step`, which begins by evaluating where it stands: so that this costs
# about one evaluation in a hundred.
ITERATIONS = 100


class LBFGS(torch.optim.LBFGS):
    """Torch's L-BFGS with a strong Wolfe line search, which never exceeds `max_eval`.

    Torch's own limit may be passed by one evaluation. Nothing but the limit ends a step early: the
    tolerances are 0, because torch's are absolute and would end a fit of small losses too soon.

    The size of the loss does not matter: twice the loss gives the same steps, bit for bit. Torch
    alone drops a change of the gradient whose product with the step is below 1e-10, and overflows
    on large gradients; it is shown the loss times a power of two, which rounds nothing. Where a
    trial is so far off that interpolation would overflow, the line search halves its interval.

    Args:
        params: Parameters, or one group of them.
        lr: The first length that a line search tries, but at the very first step.
        history_size: How many changes of the gradient the curvature is estimated from.
        max_eval: The most evaluations of the loss in one call of `step`.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1.0,
        history_size: int = 100,
        max_eval: int = 25,
    ) -> None:
        positive("LBFGS", "lr", lr)
        whole("LBFGS", "history_size", history_size, 1)
        whole("LBFGS", "max_eval", max_eval, 1)
        super().__init__(
            params,
            lr=lr,
            max_iter=ITERATIONS,
            max_eval=max_eval,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=history_size,
            line_search_fn="strong_wolfe",
        )
        self._far = False  # whether the last trial was too far off to interpolate

    def step(self, closure: Callable[[], Any]) -> Any:
        """Take iterations for as long as evaluations are left; returns the first loss.

        One evaluation is no room for a line search: it is spent where the parameters are.
        """
        (group,) = self.param_groups
        limit = group["max_eval"]
        if limit == 1:
            with torch.enable_grad():
                return closure()
        # Torch checks its limit before the last evaluation of a line search, not after it.
        group["max_eval"] = limit - 1
        state = self.state[self._params[0]]
        furthest = 2.0 ** (3 * _exponent(self._params[0]) // 8)
        first: list[Any] = []

        def scaled() -> float:
            loss = closure()
            if "scale" not in state:
                state["scale"] = _scale(super(LBFGS, self)._gather_flat_grad())
            shown = state["scale"] * loss.item()
            self._far = bool(first) and shown > furthest
            if not first:
                first.append(loss)
            return math.inf if self._far else shown

        try:
            super().step(scaled)
        finally:
            group["max_eval"] = limit
        return first[0]

    def _gather_flat_grad(self) -> Tensor:
        gradient = self.state[self._params[0]]["scale"] * super()._gather_flat_grad()
        # Torch interpolates with squares of what it is shown; without numbers, it halves.
        return gradient.fill_(math.nan) if self._far else gradient


def _scale(gradient: Tensor) -> float:
    """Return the power of two to multiply the loss by, from the first gradient.

    The first line search computes with the fourth power of the gradient's norm. The norm becomes
    the sixth root of the largest number, so that the gradient may still grow as much (2**21 in
    float32), and y·s > 1e-10 holds for changes of the loss down to 5e-17 of the norm (1e-61 in
    float64).
    """
    norm = float(torch.linalg.vector_norm(gradient, dtype=torch.float64))
    if norm == 0.0 or not math.isfinite(norm):
        return 1.0
    largest = _exponent(gradient)
    return 2.0 ** min(largest // 6 - math.frexp(norm)[1], largest - 1)


def _exponent(tensor: Tensor) -> int:
    """Return the exponent of the largest number of a tensor's dtype."""
    return math.frexp(torch.finfo(tensor.dtype).max)[1]


class ThenLBFGS(Optimizer):
    """An optimizer for a share of all evaluations, then L-BFGS from where it got.

    There is one param group: its `lr`, which schedules may change, is the first optimizer's, and
    `max_eval` that of L-BFGS, whose own rate is 1.

    Args:
        first: The optimizer to begin with, new.
        switch: Its share of the evaluations, in [0, 1].
        horizon: All evaluations that there will be.
        history_size: As L-BFGS has it.
        max_eval: The most evaluations in one call of `step`.
    """

    def __init__(
        self, first: Optimizer, switch: float, horizon: int, history_size: int, max_eval: int
    ) -> None:
        between("ThenLBFGS", "switch", switch, 0, 1)
        whole("ThenLBFGS", "horizon", horizon, 1)
        if len(first.param_groups) != 1:
            raise ValueError(
                "ThenLBFGS: params must be in one group, because L-BFGS has one rate for all, "
                f"got {len(first.param_groups)}."
            )
        (group,) = first.param_groups
        self.first = first
        self.second = LBFGS(group["params"], 1.0, history_size, max_eval)
        self.evaluations = 0
        self.first_evaluations = round(switch * horizon)
        own = {"params": group["params"], "lr": group["lr"], "max_eval": max_eval}
        super().__init__([own], {})

    def step(self, closure: Callable[[], Any]) -> Any:
        """Take one step of the first optimizer, or iterations of L-BFGS; returns the first loss."""

        def counted() -> Any:
            self.evaluations += 1
            return closure()

        (own,) = self.param_groups
        if self.evaluations < self.first_evaluations:
            self.first.param_groups[0]["lr"] = own["lr"]
            return self.first.step(counted)
        self.second.param_groups[0]["max_eval"] = own["max_eval"]
        return self.second.step(counted)

    def state_dict(self) -> dict[str, Any]:
        """Return both optimizers' states and the evaluations so far."""
        return {
            **super().state_dict(),
            "first": self.first.state_dict(),
            "second": self.second.state_dict(),
            "evaluations": self.evaluations,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        own = {name: state_dict[name] for name in ("state", "param_groups")}
        super().load_state_dict(own)
        self.first.load_state_dict(state_dict["first"])
        self.second.load_state_dict(state_dict["second"])
        self.evaluations = state_dict["evaluations"]
