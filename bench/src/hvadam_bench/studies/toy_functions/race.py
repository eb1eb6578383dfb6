"""Many starts of one problem at once, each a run of its own.

A contender that moves each coordinate by its own gradients alone holds all starts in one tensor.
The others would mix them there: a hidden vector or a norm over all starts is another problem. They
have a form that keeps rows apart (``rows.py``), or get an optimizer per start, which is slow. A
test holds every contender, bit for bit, to its single runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.optim import Optimizer

from hvadam_bench.contenders import ABLATION, OURS, OptimizerSpec, create, get
from hvadam_bench.studies.toy_functions import rows
from hvadam_bench.studies.toy_functions.functions import Array, Fan, Problem
from hvadam_bench.studies.toy_functions.paths import Trace

HUGE = 1e9  # a loss above it, or one that is not a number, ends a run as diverged
TARGET = 1e-3
LAST = 10  # steps over which the loss at the end is averaged
COMMON_LR = 1e-3  # the paper's, for all

# Appendix F.2. SGDM is sgd_ema: only averaged momentum fits what the paper says of f2. Decay is off
# for all, for it pulls towards the origin, where f1 and f2 have their minimum.
_PAPER: dict[str, Mapping[str, Any]] = {
    "sgd_ema": {"momentum": 0.9},
    "adam": {"betas": (0.9, 0.999), "eps": 1e-12},
    "adabelief": {"betas": (0.9, 0.999), "eps": 1e-12},
    "hvadam": {"betas": (0.9, 0.999), "eps": 1e-12, "gamma": 0.5, "hidden_gain": "linear"},
}


class Outcome(NamedTuple):
    """How each start fared.

    Attributes:
        loss: After the budget, the mean over the last LAST steps: with a constant rate a run ends
            in a cycle around a kink, and one loss of it would be a matter of its phase. Infinite
            if diverged by then.
        late_loss: After the horizon, likewise.
        reached: The first step with a loss of at most TARGET, -1 if there was none.
        diverged: The step at which the run was ended, -1 if it never was.
    """

    loss: Array
    late_loss: Array
    reached: np.ndarray
    diverged: np.ndarray


def run(
    problem: Problem | Fan, contender: str, lr: float, starts: Array, steps: int, horizon: int
) -> Outcome:
    """Race one contender from all starts.

    Args:
        problem: What is minimised.
        contender: A name of ``hvadam_bench.contenders``.
        lr: Its learning rate.
        starts: One a row.
        steps: The budget.
        horizon: At least the budget; how long a run may take to reach TARGET.
    """
    reached = np.full(len(starts), -1)
    diverged = np.full(len(starts), -1)
    at_budget, late = np.zeros(len(starts)), np.zeros(len(starts))
    for t, (_, losses) in enumerate(walk(problem, contender, lr, starts, steps)):
        reached[(reached < 0) & (losses <= TARGET)] = t
        diverged[(diverged < 0) & np.isinf(losses)] = t
        for total, end in ((at_budget, steps), (late, horizon)):
            if end - LAST < t <= end:
                total += losses / min(LAST, end + 1)
        if t == horizon:
            break
    return Outcome(at_budget, late, reached, diverged)


def trace(problem: Problem, contender: str, lr: float, start: Array, steps: int) -> Trace:
    """Follow one run up to its end or its divergence."""
    path: list[Array] = []
    losses: list[float] = []
    for t, (x, loss) in enumerate(walk(problem, contender, lr, start[None], steps)):
        if np.isinf(loss[0]):
            return Trace(np.array(path), np.array(losses), diverged=True)
        path.append(x[0].copy())
        losses.append(float(loss[0]))
        if t == steps:
            break
    return Trace(np.array(path), np.array(losses), diverged=False)


def walk(
    problem: Problem | Fan, contender: str, lr: float, starts: Array, steps: int
) -> Iterator[tuple[Array, Array]]:
    """Yield positions and losses after 0, 1, 2, ... steps, without end; the arrays are reused.

    The loss of a start that diverged is infinite from then on, and it moves no more. The budget of
    steps only tells those who plan by it.
    """
    spec = get(contender)
    x, gradient = starts.copy(), np.zeros_like(starts)
    mover = _mover(spec, {**options_of(contender, steps), "lr": lr}, x, gradient)
    places, frozen = x.copy(), np.zeros(len(x), bool)
    while True:
        loss, gradient[:] = problem.evaluate(x)
        shown = x
        fallen = ~(loss <= HUGE)
        if spec.averages:
            assert isinstance(mover, _Optimizers)
            shown = mover.averaged()
            loss = problem.evaluate(shown)[0]
            fallen |= ~(loss <= HUGE)
        fallen &= ~frozen
        if fallen.any():
            frozen |= fallen
            places[fallen] = np.nan_to_num(x[fallen], posinf=0.0, neginf=0.0)
        if frozen.any():
            loss = np.where(frozen, np.inf, loss)
            gradient[frozen] = 0.0
            x[frozen] = places[frozen]
        yield shown, loss
        mover.step()


def options_of(contender: str, steps: int) -> dict[str, Any]:
    """Return what a contender is created with, lr aside.

    That is the paper's toy settings, else its own, in any case without decay.
    """
    defaults = get(contender).defaults
    family = OURS if contender in ABLATION else contender
    chosen = {**_PAPER.get(family, {}), "weight_decay": 0.0}
    if contender == "swa":  # its paper averages the last quarter
        chosen["horizon"] = steps
    return {key: value for key, value in chosen.items() if key in defaults}


def _mover(spec: OptimizerSpec, options: Mapping[str, Any], x: Array, gradient: Array) -> rows.Form:
    theta, g = torch.from_numpy(x), torch.from_numpy(gradient)
    if spec.name in rows.FORMS:
        return rows.FORMS[spec.name](spec, options, theta, g)
    if spec.elementwise:
        return _Optimizers(spec, x, [create(spec.name, [rows.parameter(theta, g)], **options)])
    pairs = zip(theta, g, strict=True)
    return _Optimizers(spec, x, [create(spec.name, [rows.parameter(*p)], **options) for p in pairs])


class _Optimizers:
    """One optimizer for all starts, or one each."""

    def __init__(self, spec: OptimizerSpec, x: Array, optimizers: Sequence[Optimizer]) -> None:
        self._spec, self._x, self._optimizers = spec, x, optimizers

    def step(self) -> None:
        """Take a step from every start."""
        for optimizer in self._optimizers:
            optimizer.step()

    def averaged(self) -> Array:
        """Return the positions to evaluate, for contenders that average."""
        with ExitStack() as stack:
            for optimizer in self._optimizers:
                stack.enter_context(self._spec.evaluation(optimizer))
            return self._x.copy()
