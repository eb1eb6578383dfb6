"""The choice of what is timed, on which tensors and with how many threads."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from hvadam.info import usable_cores
from hvadam_bench.registry import instead


@dataclass(frozen=True)
class Shape:
    """The parameters of a model, as the sizes of its tensors."""

    name: str
    title: str
    sizes: tuple[tuple[int, ...], ...]

    @property
    def parameters(self) -> int:
        """Return the count of numbers in all tensors."""
        return sum(math.prod(size) for size in self.sizes)

    @property
    def about(self) -> dict[str, Any]:
        """Return what a result keeps of it."""
        counts = {"tensors": len(self.sizes), "parameters": self.parameters}
        return {"name": self.name, "title": self.title, **counts}


def _resnet50() -> list[tuple[int, ...]]:
    """Return the tensors of ResNet-50 for 1,000 classes."""

    def convolution(out: int, into: int, kernel: int) -> list[tuple[int, ...]]:
        """Return weights without bias, then scale and shift of the normalization that follows."""
        return [(out, into, kernel, kernel), (out,), (out,)]

    sizes, into = convolution(64, 3, 7), 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            sizes += convolution(width, into, 1) + convolution(width, width, 3)
            sizes += convolution(4 * width, width, 1)
            if block == 0:  # the shortcut has to change its width, too
                sizes += convolution(4 * width, into, 1)
            into = 4 * width
    return [*sizes, (1000, into), (1000,)]


_LSTM = [(800, 200), (800, 200), (800,), (800,)] * 2  # two layers as torch.nn.LSTM keeps them
SHAPES = {
    name: Shape(name, title, tuple(sizes))
    for name, title, sizes in (
        ("single", "one tensor of 25M", [(25_000_000,)]),
        ("resnet50", "ResNet-50: 161 tensors, 25.6M", _resnet50()),
        # The small word-level model of the Penn Treebank: embedding, LSTM, decoder of its own.
        ("lstm", "LSTM: 11 tensors, 4.65M", [(10_000, 200), *_LSTM, (10_000, 200), (10_000,)]),
        ("small", "2,000 tensors of 64", [(64,)] * 2000),
        # HVAdam's float32 state takes 12 bytes a parameter.
        ("huge", "one tensor of 89.5M: 1 GiB of state", [(2**30 // 12,)]),
    )
}
# How the time grows: with the parameters of one tensor, and with the tensors of one total.
GROWING = (
    *(Shape(f"{n}M", f"one tensor of {n}M", ((n * 10**6,),)) for n in (1, 3, 10, 30, 100)),
    *(
        Shape(f"{n}", f"4M in {n:,} tensors", ((4_000_000 // n,),) * n)
        for n in (1, 10, 100, 1000, 10_000)
    ),
)


@dataclass(frozen=True)
class Plan:
    """What is timed, and how much."""

    what: str  # the stem of the result
    shapes: tuple[Shape, ...] = ()
    threads: Sequence[int] = (1,)  # rising; several for "speed-threads" only
    rounds: int = 7
    group_seconds: float = 0.05  # at least, of the steps that are timed together
    memory: float = 8e9  # bytes that tensors may take, roughly
    compile_many: bool = False
    smoke: bool = False


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
        growth: Time how a step grows instead, up to 100M parameters and up to 10,000 tensors.
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
    if given:
        what = given[0].removeprefix("--").replace("jax", "speed-jax")
    if smoke and not shapes:
        shapes = ("small",) if what == "speed" else ("lstm",)
    left_out = "small" if several else "huge"
    named = tuple(SHAPES[name] for name in shapes or SHAPES if shapes or name != left_out)
    if growth:
        named = GROWING[:1] if smoke else GROWING
    found = Plan(what, named, counts, compile_many=compile_many, smoke=smoke)
    found = replace(found, memory=min(found.memory, _half_of_memory()))
    return replace(found, rounds=3, group_seconds=0.01) if smoke else found


def _half_of_memory() -> float:
    """Return half of the machine's memory in bytes, infinitely many where that is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (AttributeError, OSError, ValueError):
        return math.inf
