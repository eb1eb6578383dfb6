"""What goes past while a command works: lines of progress, and warnings that read as sentences."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

# The time between two lines: at first, and as a share of the time that has gone by.
LINE_SECONDS = 5.0
LINE_SHARE = 0.05


class Lines:
    """Progress where there is no terminal to draw a bar on: a line now and then.

    Every few seconds at first and ever more rarely later, so that neither a pipe is silent for
    minutes nor a log of hours long.
    """

    def __init__(self, console: Console) -> None:
        self._console = None if console.is_terminal else console
        self._begun = monotonic()
        self._next = self._begun + LINE_SECONDS

    def tell(self, line: str) -> None:
        """Print a line, if it is time for one."""
        now = monotonic()
        if self._console is None or now < self._next:
            return
        self._next = now + max(LINE_SECONDS, LINE_SHARE * (now - self._begun))
        print_line(line, self._console)


def print_line(line: str, console: Console) -> None:
    """Print a line as it is: no markup, no colours, and no breaks that a log would keep."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def make_bars(console: Console, *columns: str | ProgressColumn, **how: Any) -> Progress:
    """Return bars that are drawn on a terminal only, and are gone when they end."""
    from rich.progress import Progress

    return Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, **how
    )


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Enter a context in which a warning is one line, without the code that it came from."""
    before = warnings.showwarning
    warnings.showwarning = _show
    try:
        yield
    finally:
        warnings.showwarning = before


def _show(message: Warning | str, category: type[Warning], *where: Any) -> None:
    print(f"hvadam: warning: {message}", file=sys.stderr)
