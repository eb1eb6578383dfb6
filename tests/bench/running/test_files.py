"""Files that several processes write: drafts of the living, locks that a kill gives back."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hvadam_bench.running import files
from hvadam_bench.running.files import BusyError, locked, write_atomically

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
