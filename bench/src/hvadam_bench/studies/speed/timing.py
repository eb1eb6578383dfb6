"""Timing in pairs: every group of steps stands beside one of fused Adam, moments apart."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from hvadam.torch.kernels import KERNELS
from hvadam.torch.survey import kernels_of
from hvadam_bench.studies.speed.contenders import REFERENCE, REFUSALS, Contender
from hvadam_bench.studies.speed.memory import release, state_bytes, temporary_bytes
from hvadam_bench.studies.speed.result import Measurement, Plan, Skip, Timing
from hvadam_bench.studies.speed.shapes import Shape

Clock = Callable[[], float]
Progress = Callable[[str, int], None]  # what is being done, and the parts done since the last call

TRIAL_BYTES = 24  # per parameter: itself, two gradients, three float32 states
START_BYTES = 12
MOST_STEPS = 1000


class Inspection(NamedTuple):
    """What a trial shows besides its time."""

    kernels: tuple[str, ...]
    temporary_bytes: int | None


class Start:
    """Random parameters and two sets of gradients, the same for every contender."""

    def __init__(self, shape: Shape) -> None:
        random = torch.Generator().manual_seed(0)
        self._sets = [
            [torch.randn(size, generator=random).mul_(0.01) for size in shape.sizes]
            for _ in range(3)
        ]

    def copy(self) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return parameters, and gradients to alternate."""
        params, *grads = ([x.clone() for x in tensors] for tensors in self._sets)
        return [p.requires_grad_() for p in params], grads


class Trial:
    """A contender with tensors of its own, warmed up."""

    def __init__(self, contender: Contender, start: Start, plan: Plan, clock: Clock) -> None:
        self.contender = contender
        self.clock = clock
        self._params, self._gradients = start.copy()
        self._turn = 0
        self.parameters = sum(p.numel() for p in self._params)
        with contender.surroundings():
            self._optimizer = contender.build(self._params)
            self._take = contender.step(self._optimizer)
        fastest = min([self.run(1) for _ in range(plan.warm_up)][-2:])
        wanted = plan.group_seconds / fastest if fastest > 0 else MOST_STEPS
        self.steps = min(max(math.ceil(wanted), 1), MOST_STEPS)

    def run(self, steps: int) -> float:
        """Return seconds per step, each timed by itself, so that new gradients cost nothing."""
        total = 0.0
        with self.contender.surroundings(), _no_garbage_collection():
            for _ in range(steps):
                self._change_gradients()
                before = self.clock()
                self.step()
                total += self.clock() - before
        return total / steps

    def step(self) -> None:
        """Take the step that is timed."""
        if self.contender.clip is not None:
            clip_grad_norm_(self._params, self.contender.clip)
        self._take()

    @property
    def state_bytes(self) -> int:
        """Return the bytes that the optimizer keeps for all parameters."""
        return state_bytes(self._optimizer)

    def inspect(self, plan: Plan) -> Inspection:
        """Look closer at one step: its kernels, its temporaries.

        Raises:
            RuntimeError: It does not use the kernel that the contender asks for.
        """
        with self.contender.surroundings():
            # What is compiled has its kernel built in, and would be compiled anew to be watched.
            used = [] if self.contender.compiled else kernels_of(self.step)
            wanted = self.contender.options.get("kernel")
            if used and wanted in KERNELS and used != [wanted]:
                raise RuntimeError(f"its tensors went to another kernel: {', '.join(used)}.")
            temporary = temporary_bytes(self.step) if plan.temporaries else None
        return Inspection(tuple(used), temporary)

    def _change_gradients(self) -> None:
        """Take the other gradients: the same at every step would be a special case."""
        self._turn += 1
        gradients = self._gradients[self._turn % len(self._gradients)]
        for p, gradient in zip(self._params, gradients, strict=True):
            p.grad = gradient


def measure(
    shape: Shape,
    contenders: Sequence[Contender],
    plan: Plan,
    *,
    reference: Contender = REFERENCE,
    clock: Clock = perf_counter,
    on_progress: Progress = lambda doing, done: None,
) -> Measurement:
    """Time every contender on a shape.

    Args:
        shape: The tensors.
        contenders: Who is timed; those that refuse are skipped with their reason.
        plan: How much.
        reference: Whose steps stand beside those of every contender, on tensors of its own.
        clock: Seconds, from anywhere.
        on_progress: Told between timed groups; a contender has ``1 + plan.rounds`` parts.
    """
    start = Start(shape)
    beside = Trial(reference, start, plan, clock)
    results: list[Timing] = []
    skipped: list[Skip] = []
    for batch in batches(contenders, shape, plan):
        results += _measure_batch(batch, start, beside, plan, skipped, on_progress)
        release()  # its memory is the next batch's
    return Measurement(
        name=shape.name,
        title=shape.title,
        tensors=len(shape.sizes),
        parameters=shape.parameters,
        results=tuple(results),
        skipped=tuple(skipped),
    )


def batches(
    contenders: Sequence[Contender], shape: Shape, plan: Plan
) -> Iterator[Sequence[Contender]]:
    """Yield as many at a time as fit the memory; rounds go around within a batch."""
    free = plan.memory - shape.parameters * (START_BYTES + TRIAL_BYTES)
    at_once = max(1, int(free / (shape.parameters * TRIAL_BYTES)))
    for first in range(0, len(contenders), at_once):
        yield contenders[first : first + at_once]


def _measure_batch(
    batch: Sequence[Contender],
    start: Start,
    beside: Trial,
    plan: Plan,
    skipped: list[Skip],
    on_progress: Progress,
) -> list[Timing]:
    """Prepare all, then time all; who refuses joins the skipped."""
    trials: list[Trial] = []
    found: list[Inspection] = []
    for contender in batch:
        on_progress(f"preparing {contender.name}", 0)
        try:
            trial = Trial(contender, start, plan, beside.clock)
            found.append(trial.inspect(plan))
        except REFUSALS as error:
            skipped.append(Skip(contender.name, " ".join(str(error).split())))
            on_progress("", 1 + plan.rounds)
        else:
            trials.append(trial)
            on_progress("", 1)
    pairs = race(trials, beside, plan.rounds, on_progress)
    return [_result(beside, *parts) for parts in zip(trials, found, pairs, strict=True)]


def race(
    trials: Sequence[Trial],
    beside: Trial,
    rounds: int,
    on_progress: Progress = lambda doing, done: None,
) -> list[list[tuple[float, float]]]:
    """Time each trial and the one beside it: seconds per step, for each trial and round."""
    pairs: list[list[tuple[float, float]]] = [[] for _ in trials]
    for number in range(rounds):
        gc.collect()
        for trial, times in zip(trials, pairs, strict=True):
            on_progress(f"round {number + 1}, {trial.contender.name}", 0)
            if number % 2:  # take turns, so that a machine that slows down favours neither
                own = trial.run(trial.steps)
                times.append((own, beside.run(beside.steps)))
            else:
                other = beside.run(beside.steps)
                times.append((trial.run(trial.steps), other))
            on_progress("", 1)
    return pairs


def _result(
    beside: Trial, trial: Trial, found: Inspection, pairs: Sequence[tuple[float, float]]
) -> Timing:
    moved, moved_beside = (
        x.contender.streams.bytes(x.state_bytes / x.parameters) for x in (trial, beside)
    )
    return Timing(
        contender=trial.contender.name,
        parameters=trial.parameters,
        steps=trial.steps,
        seconds=tuple(own for own, _ in pairs),
        reference_steps=beside.steps,
        reference_seconds=tuple(other for _, other in pairs),
        state_bytes=trial.state_bytes,
        temporary_bytes=found.temporary_bytes,
        moved_bytes=moved,
        limit=moved / moved_beside,
        kernels=found.kernels,
    )


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
