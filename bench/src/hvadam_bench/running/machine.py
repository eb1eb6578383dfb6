"""Whether a run had the machine to itself: the times of one that had not say little."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

STAT = Path("/proc/stat")  # Linux; elsewhere it stays unknown
# Of one core, which all other processes together may use: a system is never quite idle.
SHARE = 0.1


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
