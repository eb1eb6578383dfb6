"""What a run was made with: versions, hardware, and the state of the sources."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from hvadam.bench import info
from hvadam.torch import kernels

SOURCES = Path(__file__).parents[1]  # of the package hvadam


def describe() -> dict[str, Any]:
    """As JSON can hold it, for a record."""
    return {
        "versions": info.versions(),
        "machine": info.machine(),
        "hvadam_kernels": [name for name, k in kernels.KERNELS.items() if k.available() is None],
        **sources(),
    }


@cache
def sources() -> dict[str, Any]:
    """The commit that the package's sources are at and whether they differ from it.

    Both are None where the package is not in a clone of its own.
    """
    # Tracked, since an installed package may lie inside the clone of another project.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return {"commit": None, "dirty": None}
    changes = _git("status", "--porcelain", "--", ".")
    return {"commit": _git("rev-parse", "HEAD"), "dirty": changes != ""}


def _git(*arguments: str) -> str | None:
    """What git says of the sources, None if it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(SOURCES), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
