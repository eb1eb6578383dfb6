"""What hvadam finds here: versions, the machine, and the kernels that run on it."""

from __future__ import annotations

import json
import os
import platform
import textwrap
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hvadam._version import __version__

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")  # Linux; elsewhere the caches stay unknown
WIDTH = 80  # columns
NO_TORCH = "torch is not installed: pip install 'hvadam[torch]'"


def collect() -> dict[str, Any]:
    """Return versions, machine and kernels, as JSON can hold them."""
    found: dict[str, Any] = {"versions": versions(), "machine": machine()}
    if find_spec("torch") is not None:
        from hvadam.torch import self_check

        found |= {
            "kernels": self_check.reasons(),
            "instruction_set": self_check.instruction_set(),
            "instruction_set_chosen_by": self_check.instruction_set_chosen_by(),
            "auto_on_cpu": self_check.automatic_kernels(),
        }
    return found


def refused_instructions() -> str | None:
    """Return why the instruction set that is asked for cannot be used, None if nothing is wrong."""
    if find_spec("torch") is None:
        return None
    from hvadam.torch import self_check

    try:
        self_check.instruction_set()
    except ValueError as error:
        return str(error).removeprefix("HVAdam: ")
    return None


def versions() -> dict[str, str | None]:
    """Return the versions of all that takes part in a step; None for what is not installed."""
    found = {"hvadam": __version__, **{name: _version(name) for name in ("torch", "numpy")}}
    return {**found, "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """Return what is known of the processor, and how much of it torch uses."""
    found: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "caches": caches(),
    }
    if find_spec("torch") is not None:
        import torch

        found["torch_threads"] = torch.get_num_threads()
        found["torch_instruction_set"] = torch.backends.cpu.get_cpu_capability()
    return found


def usable_cores() -> int:
    """Return how many cores this process may run on, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def caches() -> dict[str, int]:
    """Return the bytes of each data cache of the first core, as {"L1": 32768}; {} if unknown."""
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


def as_json() -> str:
    """Return what `collect` finds, for programs."""
    return json.dumps(collect(), indent=2)


def as_text() -> str:
    """Return what `collect` finds, for people: facts, kernels, what "auto" takes."""
    found = collect()
    about = found["machine"]
    sizes = ", ".join(f"{name} {size >> 10:,} KiB" for name, size in about["caches"].items())
    rows = {name: number or "not installed" for name, number in found["versions"].items()}
    rows |= {
        "system": about["system"],
        "cpu": f"{about['cpu']}, cores: {about['cores']}",
        "caches": sizes or "unknown",
    }
    if "kernels" not in found:
        return "\n".join([*_listed(rows), "", NO_TORCH])
    chosen_by = found["instruction_set_chosen_by"]
    rows |= {
        "threads": f"{about['torch_threads']} in torch",
        "instructions": f"{found['instruction_set'] or '-'} in the native kernel"
        f"{f' (chosen by {chosen_by})' if chosen_by else ''}, "
        f"{about['torch_instruction_set']} in torch",
    }
    kernels = {"kernel": "works here"} | {
        name: "yes" if reason is None else f"no: {reason}"
        for name, reason in found["kernels"].items()
    }
    taken = f'kernel="auto" on a CPU takes {auto_sentence(found["auto_on_cpu"])}'
    return "\n".join([*_listed(rows), "", *_listed(kernels), "", taken])


def auto_sentence(used: dict[str, list[str]]) -> str:
    """Return "native", say, or "foreach for small tensors, loop for large tensors"."""
    names = {size: " and ".join(kernel) for size, kernel in used.items()}
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{kernel} for {size}" for size, kernel in names.items())


def _listed(rows: dict[str, str]) -> list[str]:
    """Return two columns, the second one folded."""
    indent = max(map(len, rows)) + 2
    return [
        textwrap.fill(
            f"{name:{indent}}{value}",
            WIDTH,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
        )
        for name, value in rows.items()
    ]


def _version(package: str) -> str | None:
    """A package's own word, which says more than its metadata: "2.13.0+cpu"."""
    return import_module(package).__version__ if find_spec(package) is not None else None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
