"""Whether a run knows that it had company."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interrupted import KilledError, Killer
from rich.console import Console
from toys import Builder, config

from hvadam_bench import terminal
from hvadam_bench.running import files, machine, progress
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import BusyError, locked, write_atomically
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


# Files that several processes write: drafts of the living, locks that a kill gives back.
HOLDER = """
import sys
from pathlib import Path
from hvadam_bench.running.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Enter a context in which another process holds a lock, until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_drafts_of_the_killed_are_cleared_away_and_those_of_the_living_are_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.json"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    living = [
        tmp_path / f".a.json.{files.HOST}.{os.getppid()}",
        tmp_path / ".a.json.another.machine.7",
        tmp_path / ".a.json.8",  # of nobody knows which machine
        tmp_path / f".b.json.{files.HOST}.{dead.pid}",
    ]
    killed = [tmp_path / f".a.json.{files.HOST}.{dead.pid}", tmp_path / ".a.json.elsewhere.9"]
    for draft in (*living, *killed):
        draft.write_bytes(b"half")
    os.utime(killed[-1], (0, 0))
    write_atomically(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([*living, path])


def test_a_full_disk_is_named_with_the_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        write_atomically(tmp_path / "a", b"")
    assert str(caught.value) == f"[Errno 28] No space left on device: '{tmp_path / 'a'}'"


def test_a_lock_names_who_holds_it_and_a_kill_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one.lock"
    with holder(path) as other:
        for _ in range(2):  # the one who is refused takes nothing away
            said = f"process {other.pid} on {files.HOST}"
            with pytest.raises(BusyError, match=said), locked(path):
                pass
    assert path.exists()  # left by the kill
    with locked(path), pytest.raises(BusyError, match=f"process {os.getpid()} "), locked(path):
        pass
    assert not path.exists()


@pytest.mark.parametrize("system", ["Windows", "no locks"])
def test_where_there_are_no_locks_nobody_is_kept_out(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if system == "Windows":
        monkeypatch.setattr(files, "fcntl", None)
    else:
        monkeypatch.setattr(files.fcntl, "flock", refuse)
    with locked(tmp_path / "lock"), locked(tmp_path / "lock"):
        assert list(tmp_path.iterdir()) == []
