"""Memory: what a step keeps and borrows, and how fast it moves."""

from __future__ import annotations

import ctypes
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.profiler import ProfilerActivity, profile


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
