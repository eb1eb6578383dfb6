"""Whether a run knows that it had company."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupted import KilledError, Killer
from rich.console import Console
from toys import Builder, config

from hvadam_bench import terminal
from hvadam_bench.running import machine, progress
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.machine import Company
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.running.runner import run

BUSY = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


class Clock:
    """A machine on which others use a share of a core."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.share: float | None = 0.0
        self.now = self.used = 0.0
        monkeypatch.setattr(machine, "monotonic", self.tick)
        monkeypatch.setattr(machine, "others_seconds", self.others)

    def tick(self) -> float:
        self.now += 1.0
        self.used += self.share or 0.0
        return self.now

    def others(self) -> float | None:
        return None if self.share is None else self.used


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(("share", "alone"), [(0.05, True), (0.5, False), (None, None)])
def test_a_record_says_whether_the_run_was_alone(
    share: float | None, alone: bool | None, clock: Clock, toys: Builder, store: Store
) -> None:
    clock.share = share
    assert run(config(), store).alone is alone
    kept = store.get(config())
    assert kept is not None
    assert kept.alone is alone
    assert ("alone" in kept.to_json()) is (alone is not None)


def test_company_before_a_kill_is_not_forgotten(clock: Clock, toys: Builder, store: Store) -> None:
    clock.share = 0.9
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(18))
    clock.share = 0.0
    assert run(config(), store).alone is False


def test_records_of_before_do_not_know(toys: Builder, store: Store) -> None:
    plain = run(config(), store).to_json()
    plain.pop("alone", None)
    assert Record.from_json(plain).alone is None
    assert Record.from_json(plain).to_json() == plain  # and are written as they were


@pytest.mark.skipif(not machine.STAT.exists(), reason="needs Linux")
def test_a_busy_process_is_company() -> None:
    company = Company()
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        while company.is_absent():  # until it has used more than the share that anyone may
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()


def test_where_nobody_counts_it_stays_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (None, "", "cpu one two"):
        path = tmp_path / "stat"
        if content is not None:
            path.write_text(content)
        monkeypatch.setattr(machine, "STAT", path)
        assert machine.others_seconds() is None
        assert Company().is_absent() is None


# A run where there is no terminal: lines now and then, and word that it goes on.
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
