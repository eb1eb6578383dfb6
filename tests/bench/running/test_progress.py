"""A run where there is no terminal: lines now and then, and word that it goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hvadam_bench import terminal
from hvadam_bench.running import progress
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point

CONFIG = RunConfig("digits_mlp", "hvadam", scale="smoke")


def logged(monkeypatch: pytest.MonkeyPatch, first: int) -> list[str]:
    """Return what a log gets of a run from a step to its 1000th, at ten steps a second."""
    now = 0.0
    for module in (terminal, progress):
        monkeypatch.setattr(module, "monotonic", lambda: now)
    file = io.StringIO()
    with Bars(Console(file=file, width=40)) as bars:
        watcher = bars.watch()
        watcher.started(CONFIG, 1000, first, ())
        watcher.evaluated(Point(0, 0, 0.0, None, {"accuracy": 12.5}))
        for step in range(first + 1, 1001):
            now += 0.1
            watcher.stepped(step, 0.25)
    return file.getvalue().splitlines()


def test_a_log_hears_of_a_run_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch, 0)
    assert 10 <= len(lines) <= 20  # in 100 seconds
    label = "digits_mlp hvadam seed 0"
    assert all(line.startswith(f"{label}: step ") for line in lines)
    assert lines[0].endswith(" of 1,000, 10 steps/s, loss 0.25, accuracy 12.5")


def test_a_run_that_goes_on_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch, 990)
    assert lines == ["resuming digits_mlp hvadam seed 0 at step 990 of 1,000"]
