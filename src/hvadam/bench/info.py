"""What hvadam finds here: versions, the machine, and the kernels that run on it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvadam._version import __version__
from hvadam.torch import kernels
from hvadam.torch.kernels import native
from hvadam.torch.optimizer import HVAdam

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")  # Linux; elsewhere the caches stay unknown


def show(console: Console, as_json: bool) -> None:
    """Print what ``collect`` finds, as tables or as JSON."""
    found = collect()
    if as_json:
        console.print(json.dumps(found, indent=2), markup=False, highlight=False, soft_wrap=True)
        return
    for table in tables(found):
        console.print(table)
    console.print(
        f'kernel="auto" on a CPU takes {auto_sentence(found["auto_on_cpu"])}', highlight=False
    )


def collect() -> dict[str, Any]:
    """Versions, machine and kernels, as JSON can hold them."""
    return {
        "versions": versions(),
        "machine": machine(),
        "kernels": {name: module.available() for name, module in kernels.KERNELS.items()},
        "instruction_set": instruction_set(),
        "auto_on_cpu": {
            "small tensors": kernels_of(_automatic_step(1)),
            "large tensors": kernels_of(_automatic_step(1 << 16)),
        },
    }


def versions() -> dict[str, str]:
    """Of all that takes part in a step."""
    return {
        "hvadam": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def machine() -> dict[str, Any]:
    """The processor, and how much of it torch uses."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "caches": caches(),
        "torch_threads": torch.get_num_threads(),
        "torch_instruction_set": torch.backends.cpu.get_cpu_capability(),
    }


def caches() -> dict[str, int]:
    """Bytes of each data cache that the first core sees, such as {"L1": 32768}; {} if unknown."""
    sizes: dict[str, int] = {}
    for index in sorted(CACHES.glob("index*")):
        try:
            kind, level, size = (
                (index / name).read_text().strip() for name in ("type", "level", "size")
            )
            if kind != "Instruction":
                sizes[f"L{level}"] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return sizes


def instruction_set() -> str | None:
    """That of the native kernel, None where it is not available."""
    return native.instruction_set() if native.available() is None else None


def kernels_of(step: Callable[[], object]) -> list[str]:
    """The kernels that a step of HVAdam calls, found by watching it; [] for other optimizers."""
    seen: set[str] = set()
    watched = {name: _Watched(name, module, seen) for name, module in kernels.KERNELS.items()}
    with mock.patch.dict(kernels.KERNELS, watched):
        step()
    return [name for name in kernels.KERNELS if name in seen]


@contextmanager
def without_native() -> Iterator[None]:
    """As if hvadam had been installed without a compiler."""
    with mock.patch.object(native, "available", new=_switched_off):
        yield


def tables(found: dict[str, Any]) -> list[Table]:
    """Facts, then kernels."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    about = found["machine"]
    sizes = ", ".join(f"{name} {size >> 10:,} KiB" for name, size in about["caches"].items())
    rows = {
        **found["versions"],
        "system": about["system"],
        "cpu": f"{about['cpu']}, cores: {about['cores']}",
        "caches": sizes or "unknown",
        "threads": f"{about['torch_threads']} in torch",
        "instructions": f"{found['instruction_set'] or '-'} in the native kernel, "
        f"{about['torch_instruction_set']} in torch",
    }
    for name, value in rows.items():
        facts.add_row(name, Text(value))

    listed = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    listed.add_column("kernel", no_wrap=True)
    listed.add_column("works here", overflow="fold")
    for name, reason in found["kernels"].items():
        listed.add_row(name, Text("yes" if reason is None else f"no: {reason}"))
    return [facts, listed]


def auto_sentence(used: dict[str, list[str]]) -> str:
    """Such as "native", or "foreach for small tensors, loop for large tensors"."""
    names = {size: " and ".join(kernel) for size, kernel in used.items()}
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{kernel} for {size}" for size, kernel in names.items())


def _switched_off() -> str:
    return "it is switched off for now."


class _Watched(ModuleType):
    """A kernel that notes when it is asked for more than whether it is available."""

    def __init__(self, name: str, module: ModuleType, seen: set[str]) -> None:
        super().__init__(name)
        self._module = module
        self._seen = seen

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "available":
            self._seen.add(self.__name__)
        return getattr(self._module, attribute)


def _automatic_step(size: int) -> Callable[[], object]:
    parameter = torch.nn.Parameter(torch.zeros(size))
    parameter.grad = torch.ones(size)
    return HVAdam([parameter]).step


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
