"""The choice of what is timed, on which tensors and with how many threads."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib.util import find_spec

from hvadam.info import usable_cores
from hvadam_bench.registry import instead
from hvadam_bench.studies.speed.results import Budget
from hvadam_bench.studies.speed.shapes import SHAPES, Shape

SHORT = Budget(rounds=3, group_seconds=0.01)  # enough to see that it works


@dataclass(frozen=True)
class Plan:
    """What is timed, and how much."""

    what: str  # the stem of the result
    budget: Budget
    shapes: tuple[Shape, ...]
    threads: tuple[int, ...]  # rising; several for "speed-threads" only
    growth: bool
    compile_many: bool
    smoke: bool


def plan(
    *,
    shapes: tuple[str, ...] = (),
    jax: bool = False,
    threads: tuple[int, ...] = (1,),
    growth: bool = False,
    training: bool = False,
    compile_many: bool = False,
    runner: bool = False,
    smoke: bool = False,
) -> Plan:
    """Return what is timed: by default steps on one thread.

    Args:
        shapes: Choose among single, resnet50, lstm, small and huge. If not given, all but huge, or
            with several numbers of threads all but small.
        jax: Time HVAdam for JAX instead, versus Optax's Adam.
        threads: How many torch may use. With several numbers, the native kernel is timed versus
            fused Adam with as many.
        growth: Also time how a step grows, up to 100M parameters.
        training: Time whole training steps instead, versus fused AdamW's.
        compile_many: Also time the compiled step of 161 tensors; a quarter of an hour more at
            first.
        runner: Time the bench's runner instead, versus a loop written by hand.
        smoke: Take few, short measurements, on the smallest shape if none is named.
    """
    counts = sorted(threads) or [1]
    several = len(counts) > 1
    chosen = {"--jax": jax, "--growth": growth, "--training": training, "--runner": runner}
    given = [option for option, wanted in chosen.items() if wanted]
    if several and given:
        numbers = ",".join(map(str, counts))
        raise ValueError(f"--threads {numbers}: several numbers are for steps without {given[0]}.")
    if len(given) > 1:
        raise ValueError(f"choose one of {', '.join(chosen)}.")
    if (several or jax) and counts[-1] > usable_cores():
        raise ValueError(
            f"--threads must be at most {usable_cores()}, the cores here, got {counts[-1]}."
        )
    if jax and (find_spec("jax") is None or find_spec("optax") is None):
        raise ValueError("--jax needs JAX and Optax, not installed here: pip install 'hvadam[jax]'")
    for name in shapes:
        if name not in SHAPES:
            raise ValueError(f"--shapes: there is no shape {name!r}; {instead(name, [*SHAPES])}")
    what = "speed-threads" if several else "speed"
    if given and not growth:
        what = given[0].removeprefix("--").replace("jax", "speed-jax")
    if smoke and not shapes:
        shapes = ("small",) if what == "speed" else ("lstm",)
    left_out = "small" if several else "huge"
    return Plan(
        what=what,
        budget=_within_memory(SHORT if smoke else Budget()),
        shapes=tuple(SHAPES[name] for name in shapes or SHAPES if shapes or name != left_out),
        threads=tuple(counts),
        growth=growth,
        compile_many=compile_many,
        smoke=smoke,
    )


def _within_memory(budget: Budget) -> Budget:
    """Limit a budget to half of the machine's memory, where that can be known."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return budget
    return replace(budget, memory=min(budget.memory, physical / 2))
