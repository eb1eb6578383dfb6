"""SWA: train with another optimizer, evaluate the average of its weights.

From step s = start·horizon on, after steps s, s + every, s + 2·every and so on, the average takes
in θ: θ̄ ← θ̄ + (θ - θ̄) / n with n the count so far. "every" is an epoch's worth of steps in the
paper; with a horizon of 0 all weights are averaged. Training itself is that of the inner optimizer,
at the scheduler's learning rate or, with "swa_lr", at one of its own from s on, to which the rate
goes along half a cosine over the share "anneal" of the horizon, as in
`torch.optim.swa_utils.SWALR`, though step by step and not epoch by epoch. Batch-norm statistics
have to be estimated for θ̄.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner import DEFAULTS, InnerOracle, inner_step
from hvadam_bench.contenders._options import require, share, whole
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, stepping


def update(everything: Sequence[Any]) -> None:
    """Take one step of all tensors, each group at a rate of its own."""
    done: dict[int, int] = {}
    for _, _, state, group, _ in everything:
        done[id(group)] = max(done.get(id(group), 0), state["step"] - 1)
    for p, g, state, group, lr in everything:
        inner_step(p, g, state, group, _rate(group, lr, done[id(group)] - _start(group)))
        since = state["step"] - _start(group)
        if since == 0:
            state["average"] = p.clone()
        elif since > 0 and since % group["every"] == 0:
            state["average"].lerp_(p, 1 / (since // group["every"] + 1))


def _start(group: Any) -> int:
    """Return the step that is averaged first."""
    return max(1, round(group["start"] * group["horizon"]))


def _rate(group: Any, lr: float, since: int) -> float:
    if group["swa_lr"] is None or since < 0:
        return lr
    annealing = group["anneal"] * group["horizon"]
    share = min(1.0, since / annealing) if annealing else 1.0
    weight = (1 - math.cos(math.pi * share)) / 2
    return weight * group["swa_lr"] + (1 - weight) * lr


def _average(p: Any, state: Any, group: Any) -> Any:
    """Return the average, once there is one."""
    return state.get("average", p)


def _swa_lr(who: str, name: str, value: Any) -> None:
    if value is not None:
        require(who, name, value)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the inner optimizer."""
    inner = InnerOracle(params, options)
    trace = [params]
    for done, step in enumerate(grads):
        if options["swa_lr"] is not None and done >= _first(options):
            inner.options["lr"] = _annealed(options, done - _first(options))
        trace.append(inner.step(trace[-1], step))
    return trace[1:]


def evaluated(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the average of the weights so far after each step."""
    trace = oracle(params, grads, options)
    shown = []
    for t in range(1, len(trace) + 1):
        chosen = trace[_first(options) - 1 : t : options["every"]] or [trace[t - 1]]
        shown.append([np.mean(tensors, axis=0) for tensors in zip(*chosen, strict=True)])
    return shown


def _first(options: Mapping[str, Any]) -> int:
    return max(1, round(options["start"] * options["horizon"]))


def _annealed(options: Mapping[str, Any], since: int) -> float:
    steps = options["anneal"] * options["horizon"]
    turned = np.cos(np.pi * min(1.0, since / steps)) if steps else -1.0
    return options["lr"] * (1 + turned) / 2 + options["swa_lr"] * (1 - turned) / 2


SPEC = OptimizerSpec(
    name="swa",
    label="SWA",
    paper="arXiv:1803.05407",
    source="ours around torch.optim; torch.optim.swa_utils averages models, it is no optimizer",
    build=stepping(
        "SWA",
        update,
        shown=_average,
        together=True,
        **{"horizon": partial(whole, low=0), "start": share, "every": partial(whole, low=1)},
        **{"swa_lr": _swa_lr, "anneal": share},
    ),
    defaults={
        "lr": 0.1,
        "horizon": 0,  # averages everything: give the steps of the run
        "start": 0.75,  # of them, as in the paper
        "every": 1,
        "swa_lr": None,
        "anneal": 0.0,
        **DEFAULTS,
    },
    oracle=oracle,
    cases=[
        Case({"horizon": 10, "start": 0.5, "every": 3, "weight_decay": 0.1}),
        Case({"horizon": 10, "start": 0.2, "swa_lr": 0.02, "anneal": 0.4}),
        Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9), "horizon": 4, "swa_lr": 1e-3}),
    ],
    evaluation=methodcaller("evaluation"),
    averages=True,
    evaluated=evaluated,
)
