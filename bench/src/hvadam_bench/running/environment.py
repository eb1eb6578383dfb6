"""What a run was made with: versions, hardware, and the state of the sources."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import hvadam
from hvadam import info
from hvadam.torch import kernels

SOURCES = (Path(__file__).parents[1], Path(hvadam.__file__).parent)  # of both packages


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
