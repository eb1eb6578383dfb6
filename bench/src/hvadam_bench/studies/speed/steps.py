"""Steps of torch's optimizers and of HVAdam versus those of fused Adam, in pairs.

With several numbers of threads every round goes through all of them, on the same tensors.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.profiler import ProfilerActivity, profile

from hvadam import info
from hvadam.torch.kernels import KERNELS
from hvadam.torch.self_check import kernels_of
from hvadam_bench.studies._pairs import Clock, Field, no_garbage_collection, race_all, warm_up
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import CONTENDERS, MANY, REFERENCE, TRAINED, Contender
from hvadam_bench.studies.speed.plan import Plan, Shape

TRIAL_BYTES = 24  # per parameter: itself, two gradients, three float32 states


def benchmark(
    plan: Plan,
    on_progress: OnProgress = ignore_progress,
    *,
    contenders: Sequence[Contender] | None = None,
    reference: Contender = REFERENCE,
    clock: Clock = perf_counter,
) -> dict[str, Any]:
    """Time every contender on every shape, if need be with every number of threads."""
    several = len(plan.threads) > 1
    if contenders is None:
        contenders = (*TRAINED, REFERENCE) if several or plan.what == "growth" else CONTENDERS
    if plan.compile_many:
        contenders = [replace(one, compiled=one.compiled and MANY) for one in contenders]
    on_progress("measuring the memory bandwidth", 0.0)
    rates = bandwidth(max(25_000_000, max(info.caches().values(), default=0)))
    new = partial(Trial, plan=plan, clock=clock)
    fields = [
        Field(
            shape.about,
            0.1 + 6e-9 * shape.parameters + 1e-4 * len(shape.sizes),
            partial(new, reference, shape),
            {one.name: partial(new, one, shape) for one in contenders},
            fit(shape, plan.memory),
        )
        for shape in plan.shapes
    ]
    counts = plan.threads if several else (None,)
    return {
        "bandwidth_gb_per_second": rates,
        "reference": reference.name,
        "contenders": {one.name: _describe(one) for one in contenders},
        "shapes": race_all(fields, plan.rounds, on_progress, counts),
    }


class Trial:
    """A contender with tensors of its own, the same numbers for everyone, warmed up.

    Attributes:
        facts: The steps in a timed group, what the optimizer keeps, what a closer look at one step
            found, and the bytes per parameter that a step has to move, at the least.

    Raises:
        RuntimeError: It does not use the kernel that the contender asks for.
    """

    def __init__(
        self,
        contender: Contender,
        shape: Shape,
        reference: Trial | None = None,
        *,
        plan: Plan,
        clock: Clock,
    ) -> None:
        self._contender, self._clock, self._turn = contender, clock, 0
        random = torch.Generator().manual_seed(0)
        params, *self._gradients = (
            [torch.randn(size, generator=random).mul(0.01) for size in shape.sizes]
            for _ in range(3)
        )
        self._params = [p.requires_grad_() for p in params]
        with contender.surroundings():
            self._optimizer = contender.build(self._params)
            own = self._optimizer.step
            self._take = torch.compile(own) if contender.compiled else own
        self._steps = warm_up(self.run, plan.group_seconds)
        kept = state_bytes(self._optimizer)
        moved = contender.streams.bytes(kept / shape.parameters)
        self.facts: dict[str, Any] = {"steps": self._steps, "state_bytes": kept, **self._inspect()}
        other = reference.facts if reference else {"steps": self._steps, "moved_bytes": moved}
        self.facts |= {"moved_bytes": moved, "limit": moved / other["moved_bytes"]}
        self.facts["reference_steps"] = other["steps"]

    def group(self, threads: int | None) -> dict[str, float]:
        """Return the seconds of a step in a group, if need be with so many threads."""
        if threads is None:
            return {"seconds": self.run(self._steps)}
        with torch_threads(threads):
            self.run(1)  # new threads have to be woken
            return {"seconds": self.run(self._steps)}

    def run(self, steps: int) -> float:
        """Return seconds per step, each timed by itself, so that new gradients cost nothing."""
        total = 0.0
        with self._contender.surroundings(), no_garbage_collection():
            for _ in range(steps):
                self._change_gradients()
                before = self._clock()
                self.step()
                total += self._clock() - before
        return total / steps

    def step(self) -> None:
        """Take the step that is timed."""
        if self._contender.clip is not None:
            clip_grad_norm_(self._params, self._contender.clip)
        self._take()

    def close(self) -> None:
        """Free the tensors; the facts stay."""
        del self._params, self._gradients, self._optimizer, self._take
        release()

    def _inspect(self) -> dict[str, Any]:
        """Look closer at one step: the kernels that it uses, and what it holds meanwhile."""
        with self._contender.surroundings():
            held = temporary_bytes(self.step)
        # What is compiled has its kernel built in.
        used = [] if self._contender.compiled else kernels_of(self._optimizer)
        wanted = self._contender.options.get("kernel")
        if used and wanted in KERNELS and used != [wanted]:
            raise RuntimeError(f"its tensors went to another kernel: {', '.join(used)}.")
        return {"kernels": used, "temporary_bytes": held}

    def _change_gradients(self) -> None:
        """Take the other gradients: the same at every step would be a special case."""
        self._turn += 1
        gradients = self._gradients[self._turn % len(self._gradients)]
        for p, gradient in zip(self._params, gradients, strict=True):
            p.grad = gradient


def fit(shape: Shape, memory: float) -> int:
    """Return how many trials fit so many bytes at once, next to the reference's."""
    return max(1, int(memory / (shape.parameters * TRIAL_BYTES)) - 1)


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
        "options": contender.options,
        "clip_grad_norm": contender.clip,
        "native_hidden": contender.portable,
        "streams": contender.streams._asdict(),
    }


def state_bytes(optimizer: Optimizer) -> int:
    """Return the bytes that an optimizer keeps for all parameters, without the step counters."""
    kept = (own for state in optimizer.state.values() for own in state.items())
    storages = [x.untyped_storage() for key, x in kept if isinstance(x, Tensor) and key != "step"]
    return sum({one.data_ptr(): one.nbytes() for one in storages}.values())


def temporary_bytes(step: Callable[[], object]) -> int:
    """Measure the most that a step held at once beyond what was there, in torch's CPU allocator.

    The profiler reports every allocation and release. What other libraries allocate is not seen:
    Python's lists of tensors, or the few kilobytes that the native kernel works in.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read at the first use; else it is chatty
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8"))
    changes = [event for event in trace["traceEvents"] if event.get("name") == "[memory]"]
    held = most = 0
    for event in sorted(changes, key=lambda event: event["ts"]):
        held += event["args"]["Bytes"]
        most = max(most, held)
    return most


def release() -> None:
    """Give freed memory back to the system, which glibc would keep for later small tensors."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def bandwidth(
    elements: int, repeats: int = 7, clock: Callable[[], float] = perf_counter
) -> dict[str, list[float]]:
    """Measure GB/s, read and written, of three simple passes over tensors of so many float32.

    Take more of them than any cache can hold. A copy may be slower than the others: many
    processors fetch what it is about to overwrite, and that traffic is not counted.
    """
    a, b = torch.ones(elements), torch.ones(elements)
    passes: dict[str, tuple[int, Callable[[], object]]] = {
        "copy": (2, lambda: b.copy_(a)),
        "scale in place": (2, lambda: b.mul_(1.0)),
        "add in place": (3, lambda: b.add_(a, alpha=0.0)),
    }
    rates: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(repeats):
        for name, (streams, run) in passes.items():
            before = clock()
            run()
            rates[name].append(streams * a.nbytes / (clock() - before) / 1e9)
    return rates
