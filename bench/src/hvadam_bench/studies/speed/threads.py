"""Steps with several numbers of threads, beside fused Adam with as many.

    hvadam speed --threads 1,2

Every round goes through all contenders and all numbers of threads, so that what slows the machine
for a while slows all. The tensors are the same ones throughout; parameters, gradients and state are
made with the most threads. For one shape, HVAdam's step is also timed on tensors that one thread
made and so touched first: where memory has several nodes, they then lie in that thread's.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

import torch
from torch import Tensor

from hvadam import info
from hvadam.torch.storage import empty_state
from hvadam_bench.running.machine import Company
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import REFERENCE, REFUSALS, Contender
from hvadam_bench.studies.speed.first_touch import largest_share, memory_nodes
from hvadam_bench.studies.speed.memory import release
from hvadam_bench.studies.speed.result import Plan, Skip
from hvadam_bench.studies.speed.shapes import Shape
from hvadam_bench.studies.speed.threads_result import (
    Placement,
    ThreadMeasurement,
    ThreadSpeed,
    ThreadTiming,
)
from hvadam_bench.studies.speed.timing import Clock, Start, Trial, batches, torch_threads
from hvadam_bench.studies.speed.training import TRAINED

# Fused Adam against another copy of itself shows the noise.
CONTENDERS = (*TRAINED, REFERENCE)
Pairs = list[tuple[float, float]]  # a contender's seconds and the reference's, per round


def benchmark(
    shapes: Sequence[Shape],
    counts: Sequence[int],
    plan: Plan,
    *,
    contenders: Sequence[Contender] = CONTENDERS,
    reference: Contender = REFERENCE,
    placed: Shape | None = None,
    clock: Clock = perf_counter,
    on_progress: OnProgress = ignore_progress,
) -> ThreadSpeed:
    """Time every contender on every shape with every number of threads.

    Args:
        shapes: On which all contenders are timed.
        counts: Numbers of threads, rising.
        plan: How much.
        contenders: Who is timed; those that refuse are skipped with their reason.
        reference: Whose steps stand beside theirs, with as many threads.
        placed: The shape on which it is measured who touches the state first, if any.
        clock: Seconds, from anywhere.
        on_progress: Told between timed groups only, so that it disturbs none.
    """
    work = [*shapes, *([placed] if placed else [])]
    total = sum(shape.parameters for shape in work)
    company = Company()
    with torch_threads(max(counts)):
        found: list[ThreadMeasurement] = []
        for shape in shapes:
            share = shape.parameters / total
            found.append(
                _measure(shape, counts, plan, contenders, reference, clock, share, on_progress)
            )
            release()
        placement = None
        if placed is not None:
            on_progress(f"{placed.name}: who touches the state first", 0.0)
            placement = place(placed, max(counts), plan, clock=clock)
            on_progress("", placed.parameters / total)
        about = info.collect()
    return ThreadSpeed(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=about["versions"],
        machine=about["machine"] | {"native_instruction_set": about["instruction_set"]},
        alone=company.is_absent(),
        counts=tuple(counts),
        plan=plan,
        reference=reference.name,
        shapes=tuple(found),
        placement=placement,
    )


def place(
    shape: Shape,
    threads: int,
    plan: Plan,
    *,
    contender: Contender = TRAINED[0],
    clock: Clock = perf_counter,
) -> Placement:
    """Time steps on tensors that one thread made beside steps on tensors that all made.

    Args:
        shape: The tensors.
        threads: All that there are.
        plan: How much.
        contender: Whose steps.
        clock: Seconds, from anywhere.
    """
    start = Start(shape)
    shares: list[float | None] = []
    trials: list[Trial] = []
    for makers in (1, threads):
        with torch_threads(makers):
            release()
            shares.append(largest_share(lambda: _new_state(shape)))
            trials.append(Trial(contender, start, plan, clock))
    with torch_threads(threads):
        pairs = [_pair(*trials, turned=bool(number % 2)) for number in range(plan.rounds)]
    return Placement(
        shape=shape.name,
        threads=threads,
        nodes=memory_nodes(),
        one_share=shares[0],
        all_share=shares[1],
        one_seconds=tuple(own for own, _ in pairs),
        all_seconds=tuple(other for _, other in pairs),
    )


def _measure(
    shape: Shape,
    counts: Sequence[int],
    plan: Plan,
    contenders: Sequence[Contender],
    reference: Contender,
    clock: Clock,
    share: float,
    on_progress: OnProgress,
) -> ThreadMeasurement:
    start = Start(shape)
    beside = Trial(reference, start, plan, clock)
    results: list[ThreadTiming] = []
    skipped: list[Skip] = []
    part = share / len(contenders)
    for batch in batches(contenders, shape, plan):
        trials: list[Trial] = []
        for contender in batch:
            on_progress(f"{shape.name}: preparing {contender.name}", 0.0)
            try:
                trial = Trial(contender, start, plan, clock)
                trial.inspect(replace(plan, temporaries=False))
            except REFUSALS as error:
                skipped.append(Skip(contender.name, " ".join(str(error).split())))
                on_progress("", part)
            else:
                trials.append(trial)
        results += _race(shape, trials, beside, counts, plan.rounds, part, on_progress)
        del trials
        release()  # its memory is the next batch's
    return ThreadMeasurement(
        name=shape.name,
        title=shape.title,
        parameters=shape.parameters,
        results=tuple(results),
        skipped=tuple(skipped),
    )


def _race(
    shape: Shape,
    trials: Sequence[Trial],
    beside: Trial,
    counts: Sequence[int],
    rounds: int,
    part: float,
    on_progress: OnProgress,
) -> list[ThreadTiming]:
    pairs: dict[tuple[int, int], Pairs] = {
        (place, count): [] for place in range(len(trials)) for count in counts
    }
    for number in range(rounds):
        gc.collect()
        for (place, count), times in pairs.items():
            trial = trials[place]
            on_progress(f"{shape.name}: round {number + 1}, {trial.contender.name}", 0.0)
            with torch_threads(count):
                times.append(_pair(trial, beside, turned=bool(number % 2)))
            on_progress("", part / (rounds * len(counts)))
    return [
        ThreadTiming(
            contender=trials[place].contender.name,
            threads=count,
            steps=trials[place].steps,
            seconds=tuple(own for own, _ in times),
            reference_seconds=tuple(other for _, other in times),
        )
        for (place, count), times in pairs.items()
    ]


def _pair(trial: Trial, beside: Trial, *, turned: bool) -> tuple[float, float]:
    """Return the seconds of a step of both, who take turns in being first.

    Each takes one step before, for new threads have to be woken.
    """
    order = (trial, beside) if turned else (beside, trial)
    seconds: dict[int, float] = {}
    for one in order:
        one.run(1)
        seconds[id(one)] = one.run(one.steps)
    return seconds[id(trial)], seconds[id(beside)]


def _new_state(shape: Shape) -> list[dict[str, Tensor]]:
    """Return HVAdam's state of parameters that nobody has touched."""
    return [empty_state(torch.empty(size), "float32") for size in shape.sizes]
