"""How a study tells how far it is: it prints nothing itself."""

from __future__ import annotations

from collections.abc import Callable

# Told what is being done, and which share of all the work was done since the last call.
OnProgress = Callable[[str, float], None]


def say_nothing(doing: str, share: float) -> None:
    """Ignore how far a study is."""
