"""Adam, then L-BFGS: the usual way to train physics-informed networks.

Adam's learning rate follows the task's schedule as if its share were the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hvadam_bench.contenders._inner_oracle import InnerOracle
from hvadam_bench.contenders._lbfgs import BAD_SWITCH, SWITCH, WITH_PAPER, direction
from hvadam_bench.contenders._spec import Arrays, BadCase, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's Adam with L-BFGS after it."""
    from torch.optim import Adam

    from hvadam_bench.contenders._implementations.lbfgs import ThenLBFGS

    own = {name: value for name, value in options.items() if name not in SWITCH}
    return ThenLBFGS(Adam(groups, **own), **{name: options[name] for name in SWITCH})


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of Adam."""
    inner = InnerOracle(params, {**options, "inner": "adam", "weight_decay": 0.0})
    trace = [params]
    for step in grads:
        trace.append(inner.step(trace[-1], step))
    return trace[1:]


SPEC = OptimizerSpec(
    name="adam_lbfgs",
    label="Adam, then L-BFGS",
    paper=WITH_PAPER,
    source="torch.optim.Adam, then torch.optim.LBFGS",
    build=build,
    defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, **SWITCH},
    oracle=oracle,
    bad=[BadCase({"lr": -1.0}, "Invalid learning rate"), *BAD_SWITCH],
    elementwise=False,
    closure=True,
    direction=direction,
)
