"""L-BFGS: a quasi-Newton step from the last changes of the gradient, its length by line search."""

from __future__ import annotations

from typing import Any

from hvadam_bench.contenders._lbfgs import HISTORY, PAPER, direction
from hvadam_bench.contenders._spec import BadCase, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's L-BFGS, which keeps to a number of evaluations."""
    from hvadam_bench.contenders._implementations.lbfgs import LBFGS

    return LBFGS(groups, **options)


SPEC = OptimizerSpec(
    name="lbfgs",
    label="L-BFGS",
    paper=PAPER,
    source="torch.optim.LBFGS with strong Wolfe line search, held to a limit of evaluations",
    build=build,
    defaults={"lr": 1.0, **HISTORY},
    bad=[
        BadCase({"lr": 0.0}, "LBFGS: lr must be > 0 and finite, got 0"),
        BadCase({"history_size": 0}, "LBFGS: history_size must be a whole number >= 1, got 0"),
        BadCase({"max_eval": 0.5}, "LBFGS: max_eval must be a whole number >= 1, got 0.5"),
    ],
    elementwise=False,
    closure=True,
    direction=direction,
)
