"""What a run was made with, and whether it had the machine to itself: only then its times count."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

import hvadam
from hvadam import info
from hvadam.torch import kernels

SOURCES = (Path(__file__).parents[1], Path(hvadam.__file__).parent)  # of both packages
STAT = Path("/proc/stat")  # Linux; elsewhere it stays unknown
# The share of one core that all other processes may use: a system is never quite idle.
SHARE = 0.1


def describe() -> dict[str, Any]:
    """Return what a run is made with, as JSON can hold it, for a record."""
    return {
        "versions": info.versions(),
        "machine": info.machine(),
        "hvadam_kernels": [name for name, k in kernels.KERNELS.items() if k.available() is None],
        **sources(),
    }


@cache
def sources() -> dict[str, Any]:
    """Return the commit that the sources are at, and whether they differ from it.

    Both are None where the package is not in a clone of its own.
    """
    # Tracked, since an installed package may lie inside the clone of another project.
    if any(_git(x, "ls-files", "--error-unmatch", "__init__.py") is None for x in SOURCES):
        return {"commit": None, "dirty": None}
    changes = [_git(x, "status", "--porcelain", "--", ".") for x in SOURCES]
    return {"commit": _git(SOURCES[0], "rev-parse", "HEAD"), "dirty": any(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says of a folder, None if it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


class Company:
    """How busy other processes keep the machine from now on."""

    def __init__(self) -> None:
        self._begun = monotonic()
        self._others = others_seconds()

    def is_absent(self) -> bool | None:
        """Tell whether nobody else was busy so far; None where that cannot be known."""
        now = others_seconds()
        if now is None or self._others is None:
            return None
        return now - self._others <= SHARE * (monotonic() - self._begun)


def others_seconds() -> float | None:
    """Return the CPU time that all other processes have used since the start of the system.

    Time that the host of a virtual machine gave to somebody else counts too. None if unknown.
    """
    try:
        words = STAT.read_text(encoding="ascii").splitlines()[0].split()
        user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, words[1:9])
    except (OSError, ValueError, IndexError):
        return None
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return busy - sum(os.times()[:4])  # this process and its children
