"""HVAdam, then L-BFGS from where it got.

HVAdam's learning rate follows the task's schedule as if its share were the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hvadam_bench.contenders._hvadam import contender
from hvadam_bench.contenders._lbfgs import BAD_SWITCH, SWITCH, WITH_PAPER, direction
from hvadam_bench.contenders._spec import Arrays, BadCase, OptimizerSpec

HVADAM = contender("full")
# L-BFGS would not go on with decay; records of this contender never held hidden_step.
WITHOUT = ("weight_decay", "weight_decay_mode", "hidden_step")


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build HVAdam with L-BFGS after it."""
    from hvadam_bench.contenders._implementations.lbfgs import ThenLBFGS

    own = {name: value for name, value in options.items() if name not in SWITCH}
    first = HVADAM.build(model, groups, own)
    return ThenLBFGS(first, **{name: options[name] for name in SWITCH})


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of HVAdam."""
    assert HVADAM.oracle is not None
    own = {name: value for name, value in options.items() if name not in SWITCH}
    return HVADAM.oracle(params, grads, {**HVADAM.defaults, **own})


SPEC = OptimizerSpec(
    name="hvadam_lbfgs",
    label="HVAdam, then L-BFGS",
    paper=f"{HVADAM.paper}; {WITH_PAPER}",
    source="ours: hvadam.HVAdam, then torch.optim.LBFGS",
    build=build,
    defaults={
        **{name: value for name, value in HVADAM.defaults.items() if name not in WITHOUT},
        **SWITCH,
    },
    oracle=oracle,
    bad=[BadCase({"lr": -1.0}, "HVAdam: lr must be >= 0 and finite, got -1"), *BAD_SWITCH],
    elementwise=False,
    closure=True,
    direction=direction,
)
