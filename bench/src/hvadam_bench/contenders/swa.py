"""SWA: train with another optimizer, evaluate the average of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner_oracle import InnerOracle
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, ours


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
    build=ours("swa", "SWA"),
    defaults={
        "lr": 0.1,
        "horizon": 0,  # averages everything: give the steps of the run
        "start": 0.75,  # of them, as in the paper
        "every": 1,
        "swa_lr": None,
        "anneal": 0.0,
        "inner": "sgd",
        "momentum": 0.9,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"horizon": 10, "start": 0.5, "every": 3, "weight_decay": 0.1}),
        Case({"horizon": 10, "start": 0.2, "swa_lr": 0.02, "anneal": 0.4}),
        Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9), "horizon": 4, "swa_lr": 1e-3}),
    ],
    evaluation=lambda optimizer: optimizer.evaluation(),
    averages=True,
    evaluated=evaluated,
)
