"""Lookaround: heads that train on different augmentations and are averaged every k steps.

The heads share the batches, so a budget of examples buys as many as for any other contender. Bare
parameters have no augmentations, nor batch-norm statistics to keep apart: without a model there is
one head, and Lookaround is its inner optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner import DEFAULTS, InnerOracle
from hvadam_bench.contenders._options import whole
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, both


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Lookaround."""
    from hvadam_bench.contenders._implementations.lookaround import Lookaround

    whole("Lookaround", "heads", options["heads"], 1)
    heads = options["heads"] if model is not None else 1
    return Lookaround(groups, **{**options, "heads": heads}, model=model)


def _run(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any], heads: int = 1
) -> Iterator[tuple[Arrays, Arrays]]:
    """Yield what the parameters hold after each step, the next head's weights, and the average."""
    weights = [[np.array(p) for p in params] for _ in range(heads)]
    inner = [InnerOracle(params, options) for _ in range(heads)]
    for t, step in enumerate(grads):
        weights[t % heads] = inner[t % heads].step(weights[t % heads], step)
        if (t + 1) % (heads * options["k"]) == 0:
            weights = [_average(weights)] * heads
        yield weights[(t + 1) % heads], _average(weights)


def _average(weights: list[Arrays]) -> Arrays:
    return [np.mean(tensors, axis=0) for tensors in zip(*weights, strict=True)]


oracle, evaluated = both(_run)
SPEC = OptimizerSpec(
    name="lookaround",
    label="Lookaround",
    paper="arXiv:2306.07684",
    source="ours around torch.optim: the authors' code needs a loop of its own and does not resume",
    build=build,
    defaults={"lr": 0.1, "heads": 3, "k": 5, **DEFAULTS},
    oracle=oracle,
    cases=[Case({"weight_decay": 0.1}), Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9)})],
    evaluation=methodcaller("evaluation"),
    averages=False,  # batch-norm statistics are averaged with the weights
)
