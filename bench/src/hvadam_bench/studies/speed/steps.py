"""Steps of torch's optimizers and of HVAdam versus those of fused Adam, in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from hvadam import info
from hvadam.torch.kernels import KERNELS
from hvadam.torch.self_check import kernels_of
from hvadam_bench.studies._pairs import Clock, no_garbage_collection, race_all, warm_up
from hvadam_bench.studies._results import to_json
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import REFERENCE, Contender
from hvadam_bench.studies.speed.memory import bandwidth, release, state_bytes, temporary_bytes
from hvadam_bench.studies.speed.results import Budget, Growth, Measurement, Speed, Timing, made
from hvadam_bench.studies.speed.shapes import Shape

TRIAL_BYTES = 24  # per parameter: itself, two gradients, three float32 states
START_BYTES = 12


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
    """A contender with tensors of its own, warmed up.

    Attributes:
        steps: In a timed group.
        state_bytes: What the optimizer keeps for all parameters.
        moved: Bytes per parameter that a step has to move, at the least.
        kernels, temporary_bytes: What a closer look at one step found; None if not measured.

    Raises:
        RuntimeError: It does not use the kernel that the contender asks for.
    """

    def __init__(self, contender: Contender, start: Start, budget: Budget, clock: Clock) -> None:
        self.contender = contender
        self._clock = clock
        self._params, self._gradients = start.copy()
        self._turn = 0
        with contender.surroundings():
            self._optimizer = contender.build(self._params)
            self._take = contender.step(self._optimizer)
        self.steps = warm_up(self.run, budget.warm_up, budget.group_seconds)
        self.state_bytes = state_bytes(self._optimizer)
        parameters = sum(p.numel() for p in self._params)
        self.moved = contender.streams.bytes(self.state_bytes / parameters)
        self.kernels: tuple[str, ...] = ()
        self.temporary_bytes: int | None = None

    def inspect(self, *, temporaries: bool) -> Trial:
        """Look closer at one step: its kernels, its temporaries."""
        with self.contender.surroundings():
            self.step()
            # What is compiled has its kernel built in.
            used = [] if self.contender.compiled else kernels_of(self._optimizer)
            wanted = self.contender.options.get("kernel")
            if used and wanted in KERNELS and used != [wanted]:
                raise RuntimeError(f"its tensors went to another kernel: {', '.join(used)}.")
            self.kernels = tuple(used)
            if temporaries:
                self.temporary_bytes = temporary_bytes(self.step)
        return self

    def group(self, threads: int | None) -> float:
        """Return the seconds of a step in a group, if need be with so many threads."""
        if threads is None:
            return self.run(self.steps)
        with torch_threads(threads):
            self.run(1)  # new threads have to be woken
            return self.run(self.steps)

    def run(self, steps: int) -> float:
        """Return seconds per step, each timed by itself, so that new gradients cost nothing."""
        total = 0.0
        with self.contender.surroundings(), no_garbage_collection():
            for _ in range(steps):
                self._change_gradients()
                before = self._clock()
                self.step()
                total += self._clock() - before
        return total / steps

    def step(self) -> None:
        """Take the step that is timed."""
        if self.contender.clip is not None:
            clip_grad_norm_(self._params, self.contender.clip)
        self._take()

    def close(self) -> None:
        """Free the tensors; what was found stays."""
        del self._params, self._gradients, self._optimizer, self._take
        release()

    def _change_gradients(self) -> None:
        """Take the other gradients: the same at every step would be a special case."""
        self._turn += 1
        gradients = self._gradients[self._turn % len(self._gradients)]
        for p, gradient in zip(self._params, gradients, strict=True):
            p.grad = gradient


def benchmark(
    shapes: Sequence[Shape],
    contenders: Sequence[Contender],
    budget: Budget,
    *,
    threads: int = 1,
    growing: tuple[Sequence[Shape], Sequence[Shape]] | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Speed:
    """Time every contender on every shape; growing are those in parameters, and in tensors."""
    growers = [one for one in contenders if one.grows]
    short = replace(budget, temporaries=False)
    parts = [(shapes, contenders, budget), *((part, growers, short) for part in growing or ())]
    total = sum(_cost(shape) * len(who) for part, who, _ in parts for shape in part)

    def timed(shape: Shape, who: Sequence[Contender], own: Budget) -> Measurement:
        share = _cost(shape) * len(who) / total
        return measure(shape, who, own, on_progress=on_progress, share=share)

    with torch_threads(threads):
        on_progress("measuring the memory bandwidth", 0.0)
        rates = bandwidth(elements=max(25_000_000, max(info.caches().values(), default=0)))
        main, *grown = (tuple(timed(shape, *how) for shape in part) for part, *how in parts)
        made_with = made()
    return Speed(
        **made_with,
        threads=threads,
        plan=budget,
        bandwidth_gb_per_second={name: tuple(own) for name, own in rates.items()},
        reference=REFERENCE.name,
        contenders={one.name: _describe(one) for one in contenders},
        shapes=main,
        growth=Growth(*grown) if grown else None,
    )


def measure(
    shape: Shape,
    contenders: Sequence[Contender],
    budget: Budget,
    *,
    reference: Contender = REFERENCE,
    clock: Clock = perf_counter,
    on_progress: OnProgress = ignore_progress,
    share: float = 1.0,
) -> Measurement:
    """Time every contender on a shape."""
    start = Start(shape)
    beside = Trial(reference, start, budget, clock)
    skipped, timed = race_all(
        make_trials(contenders, start, budget, clock),
        beside,
        budget.rounds,
        at_once=fit(shape, budget),
        doing=shape.name,
        on_progress=on_progress,
        share=share,
    )
    results = [
        Timing(
            *one.times,
            contender=one.contender,
            steps=one.trial.steps,
            parameters=shape.parameters,
            reference_steps=beside.steps,
            state_bytes=one.trial.state_bytes,
            temporary_bytes=one.trial.temporary_bytes,
            moved_bytes=one.trial.moved,
            limit=one.trial.moved / beside.moved,
            kernels=one.trial.kernels,
        )
        for one in timed
    ]
    about = (shape.name, shape.title, shape.parameters)
    return Measurement(*about, skipped, len(shape.sizes), tuple(results))


def make_trials(
    contenders: Sequence[Contender], start: Start, budget: Budget, clock: Clock
) -> dict[str, partial[Trial]]:
    """Return what makes and inspects the trial of each contender."""

    def make(contender: Contender) -> Trial:
        trial = Trial(contender, start, budget, clock)
        return trial.inspect(temporaries=budget.temporaries)

    return {one.name: partial(make, one) for one in contenders}


def fit(shape: Shape, budget: Budget) -> int:
    """Return how many trials fit the memory at once."""
    free = budget.memory - shape.parameters * (START_BYTES + TRIAL_BYTES)
    return max(1, int(free / (shape.parameters * TRIAL_BYTES)))


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _describe(contender: Contender) -> dict[str, object]:
    return {
        "options": to_json(contender.options),
        "clip_grad_norm": contender.clip,
        "native_hidden": contender.portable,
        "streams": contender.streams._asdict(),
    }


def _cost(shape: Shape) -> float:
    """Guess the seconds of one part."""
    return 0.1 + 6e-9 * shape.parameters + 1e-4 * len(shape.sizes)
