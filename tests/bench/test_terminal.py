"""Lines of progress come now and then, and warnings without code."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from itertools import pairwise

import pytest
from rich.console import Console

from hvadam_bench import terminal
from hvadam_bench.terminal import Lines, plain_warnings


class Clock:
    """A clock that tests set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(terminal, "monotonic", clock)
    return clock


def told(clock: Clock, seconds: int, *, on_a_terminal: bool = False) -> list[int]:
    """Return the seconds at which a work that tells every second has a line printed."""
    file = io.StringIO()
    lines = Lines(Console(file=file, force_terminal=on_a_terminal, width=20))
    begun = clock.now
    for second in range(seconds + 1):
        clock.now = begun + second
        lines.tell(f"at [b]{second} of a line that is longer than the console is wide")
    return [int(line.split("[b]")[1].split()[0]) for line in file.getvalue().splitlines()]


def test_lines_come_every_few_seconds_then_ever_more_rarely(clock: Clock) -> None:
    assert told(clock, 21) == [5, 10, 15, 20]
    minutes = told(clock, 16 * 60)
    gaps = [b - a for a, b in pairwise(minutes)]
    assert gaps == sorted(gaps)
    assert max(gaps) < 60
    assert len(told(clock, 24 * 3600)) < 200


def test_a_terminal_has_bars_instead(clock: Clock) -> None:
    assert told(clock, 60, on_a_terminal=True) == []


def test_warnings_are_sentences() -> None:
    code = (
        "import warnings; from hvadam_bench.terminal import plain_warnings\n"
        "with plain_warnings(): warnings.warn('the checkpoint is ignored.')\n"
        "warnings.warn('raw again')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    first, *rest = done.stderr.splitlines()
    assert first == "hvadam: warning: the checkpoint is ignored."
    assert "UserWarning: raw again" in rest[0]


def test_what_shows_warnings_is_put_back() -> None:
    before = warnings.showwarning
    with plain_warnings():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before
