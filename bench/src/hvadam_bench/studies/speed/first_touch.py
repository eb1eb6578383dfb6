"""Which threads touch memory first: it then lies in the part of memory that is nearest to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

TASKS = Path("/proc/self/task")  # Linux; elsewhere it stays unknown
NODES = Path("/sys/devices/system/node")
# Fields of a thread's stat after its name, which may hold anything but the last parenthesis.
MINOR_FAULTS = 7


def memory_nodes() -> int | None:
    """Return how many parts memory has, each nearest to cores of its own; None if unknown."""
    return len(list(NODES.glob("node[0-9]*"))) or None


def largest_share(make: Callable[[], object]) -> float | None:
    """Return the largest share of new pages that one thread touches first while something is made.

    A first touch is a page fault of the thread, which the system counts. What was freed before and
    kept for later would be touched already, so large things should be made. None if unknown.
    """
    before = _faults()
    kept = make()
    after = _faults()
    del kept
    grown = [count - before.get(thread, 0) for thread, count in after.items()]
    return max(grown) / sum(grown) if sum(grown) > 0 else None


def _faults() -> dict[str, int]:
    """Return the page faults of each thread of this process so far."""
    found: dict[str, int] = {}
    for path in TASKS.glob("*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # the thread has ended
            continue
        found[path.parent.name] = int(fields[MINOR_FAULTS])
    return found
