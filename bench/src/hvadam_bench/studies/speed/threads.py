"""Steps with several numbers of threads versus fused Adam with as many.

Every round goes through all contenders and all numbers of threads, on the same tensors, which are
made with the most threads. For one shape, HVAdam's step is also timed on tensors that one thread
made and so touched first: where memory has several nodes, they then lie in that thread's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import torch
from torch import Tensor

from hvadam.torch.storage import empty_state
from hvadam_bench.running.machine import Company
from hvadam_bench.studies._pairs import Clock, Pair, race, race_all
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import REFERENCE, TRAINED, Contender
from hvadam_bench.studies.speed.memory import largest_share, memory_nodes, release
from hvadam_bench.studies.speed.results import (
    Budget,
    Placement,
    ThreadMeasurement,
    ThreadSpeed,
    ThreadTiming,
    made,
)
from hvadam_bench.studies.speed.shapes import Shape
from hvadam_bench.studies.speed.steps import Start, Trial, fit, make_trials, torch_threads

# Fused Adam against another copy of itself shows the noise.
CONTENDERS = (*TRAINED, REFERENCE)


def benchmark(
    shapes: Sequence[Shape],
    counts: Sequence[int],
    budget: Budget,
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
        budget: How much is measured.
        contenders: Those that refuse are skipped with their reason.
        reference: Whose steps are timed next to theirs, with as many threads.
        placed: The shape on which it is measured who touches the state first, if any.
        clock: Seconds, from anywhere.
        on_progress: Called between timed groups only.
    """
    total = sum(shape.parameters for shape in (*shapes, *([placed] if placed else [])))
    company, found = Company(), []
    inspected = replace(budget, temporaries=False)
    with torch_threads(max(counts)):
        for shape in shapes:
            start = Start(shape)
            skipped, timed = race_all(
                make_trials(contenders, start, inspected, clock),
                Trial(reference, start, budget, clock),
                budget.rounds,
                at_once=fit(shape, budget),
                counts=counts,
                doing=shape.name,
                on_progress=on_progress,
                share=shape.parameters / total,
            )
            del start  # its memory is the next shape's
            results = [
                ThreadTiming(*one.times, one.contender, one.trial.steps, one.threads or 1)
                for one in timed
            ]
            about = (shape.name, shape.title, shape.parameters, skipped)
            found.append(ThreadMeasurement(*about, tuple(results)))
        placement = None
        if placed is not None:
            on_progress(f"{placed.name}: who touches the state first", 0.0)
            placement = place(placed, max(counts), budget, clock=clock)
            on_progress("", placed.parameters / total)
        made_with = made()
    return ThreadSpeed(
        **made_with,
        alone=company.is_absent(),
        counts=tuple(counts),
        plan=budget,
        reference=reference.name,
        shapes=tuple(found),
        placement=placement,
    )


def place(
    shape: Shape,
    threads: int,
    budget: Budget,
    *,
    contender: Contender = TRAINED[0],
    clock: Clock = perf_counter,
) -> Placement:
    """Time steps on tensors that one thread made versus tensors that all made."""
    start = Start(shape)
    shares: list[float | None] = []
    groups: list[partial[float]] = []
    for makers in (1, threads):
        with torch_threads(makers):
            release()
            shares.append(largest_share(lambda: _new_state(shape)))
            groups.append(partial(Trial(contender, start, budget, clock).group, threads))
    [(one, everyone)] = race([Pair(shape.name, *groups)], budget.rounds)
    return Placement(shape.name, threads, memory_nodes(), shares[0], shares[1], one, everyone)


def _new_state(shape: Shape) -> list[dict[str, Tensor]]:
    """Return HVAdam's state of parameters that nobody has touched."""
    return [empty_state(torch.empty(size), "float32") for size in shape.sizes]
