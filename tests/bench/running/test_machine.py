"""Whether a run knows that it had company."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupted import KilledError, Killer
from toys import Builder, config

from hvadam_bench.running import machine
from hvadam_bench.running.machine import Company
from hvadam_bench.running.records import Record, Store
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
