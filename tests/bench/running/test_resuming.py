"""Runs that are killed, interrupted or out of room go on to the same bits."""

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from interrupted import KilledError, Killer, essence
from toys import Builder, config

from hvadam_bench import contenders
from hvadam_bench.running import checkpoints, files, runner, training
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import HOST, BusyError, locked
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.runner import Watcher, run
from hvadam_bench.running.training import Training

SEARCHING = [name for name in contenders.names() if contenders.get(name).closure]


@pytest.mark.parametrize("contender", SEARCHING)
def test_line_searches_resume_too(contender: str, tmp_path: Path) -> None:
    asked = RunConfig("matrix_factorization", contender, "smoke")
    whole = run(asked, Store(tmp_path / "whole"))
    assert whole.status == "done"
    store = Store(tmp_path / "killed")
    killer = Killer(12, 24, 36, 60)  # before there is a checkpoint, before the switch, after it
    for _ in range(4):
        with pytest.raises(KilledError):
            run(asked, store, watcher=killer, checkpoint_seconds=0)
    again = run(asked, store, watcher=killer, checkpoint_seconds=0)
    assert essence(again) == essence(whole)
    assert again.gradient_evaluations == whole.gradient_evaluations


@pytest.mark.parametrize("contender", [n for n in contenders.names() if n not in SEARCHING])
def test_killed_and_resumed_is_never_killed(contender: str, toys: Builder, tmp_path: Path) -> None:
    asked = config(contender)
    whole = run(asked, Store(tmp_path / "whole"))
    assert whole.status == "done"

    store = Store(tmp_path / "killed")
    killer = Killer(1, 8, 24)  # before there is a checkpoint, after an evaluation, at the end
    for _ in range(3):
        with pytest.raises(KilledError):
            run(asked, store, watcher=killer, checkpoint_seconds=0)
        assert store.get(asked) is None
    assert essence(run(asked, store, watcher=killer, checkpoint_seconds=0)) == essence(whole)
    assert [path.name for path in store.path(asked).parent.iterdir() if path.is_file()] == [
        store.path(asked).name
    ]


def test_a_recorded_run_is_not_run_again(toys: Builder, store: Store) -> None:
    first = run(config(), store)
    toys.before_step = lambda step: pytest.fail("trained")
    assert run(config(), store) == Record.from_json(first.to_json())


def test_a_record_of_other_settings_or_defaults_is_not_taken_for_this_run(
    toys: Builder, store: Store
) -> None:
    first = run(config(), store)
    for part, changed in (("settings", {"steps": 12}), ("options", {"lr": 0.5})):
        old = {**first.basis, part: {**first.basis[part], **changed}}
        store.put(replace(first, basis=old, train_seconds=-1.0))
        again = run(config(), store)
        assert essence(again) == essence(first)
        assert again.basis == first.basis
        assert again.train_seconds > 0


def test_a_run_that_another_process_makes_is_refused_by_name(toys: Builder, store: Store) -> None:
    lock = checkpoints.lock_path(store.checkpoint_path(config()))
    with locked(lock), pytest.raises(BusyError) as caught:
        run(config(), store)
    assert str(caught.value) == (
        f"toy adam seed 0 is being made by process {os.getpid()} on {HOST}; "
        "wait for it, or stop it."
    )
    assert list(store) == []
    lock.write_text("process 7 on a machine that lost its power")
    assert run(config(), store).status == "done"
    assert not lock.exists()


def test_a_run_that_another_process_ends_just_now_is_not_made_again(
    toys: Builder, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = run(config(), Store(tmp_path / "theirs"))
    toys.before_step = lambda step: pytest.fail("trained")
    build = Training.__init__

    def slow(self: Training, asked: RunConfig) -> None:
        build(self, asked)
        store.put(theirs)

    monkeypatch.setattr(Training, "__init__", slow)
    assert run(config(), store) == Record.from_json(theirs.to_json())


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_a_damaged_checkpoint_is_ignored_with_a_warning(
    damage: str, toys: Builder, tmp_path: Path
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "damaged")
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(10))
    path = store.checkpoint_path(config())
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"cut": content[:-100], "flipped": content, "foreign": b"hello"}[damage])
    with pytest.warns(UserWarning, match="checksum is wrong: the run starts over"):
        record = run(config(), store)
    assert essence(record) == essence(whole)


def test_a_checkpoint_of_other_versions_is_not_gone_on_with(toys: Builder, tmp_path: Path) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "other")
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(10))
    path = store.checkpoint_path(config())
    content = checkpoints.load(path)
    assert content is not None
    checkpoints.save(path, {**content, "made_with": {"torch": "0.4"}})
    with pytest.warns(UserWarning, match="0.4.*starts over"):
        assert essence(run(config(), store)) == essence(whole)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 1}, r"seed 1, not 0\)"),
        ({"options": {"lr": 0.5}}, r"options {'lr': 0\.5}, not {}"),
        ({"settings": {"steps": 24}}, r"settings {'steps': 24}, not {}"),
    ],
)
def test_a_checkpoint_of_another_run_is_not_gone_on_with(
    changed: dict[str, Any], said: str, toys: Builder, tmp_path: Path
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "other")
    other = config(**changed)
    with pytest.raises(KilledError):
        run(other, store, watcher=Killer(10))
    store.checkpoint_path(other).rename(store.checkpoint_path(config()))
    with pytest.warns(UserWarning, match=rf"is of another run \({said}.*: the run starts over"):
        assert essence(run(config(), store)) == essence(whole)


def test_a_checkpoint_of_other_defaults_is_not_gone_on_with(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(10))
    basis = runner.basis_of
    monkeypatch.setattr(runner, "basis_of", lambda asked: {**basis(asked), "options": {"lr": 0.5}})
    with pytest.warns(UserWarning, match=r"options .*, not {.lr.: 0\.5}.*starts over"):
        run(config(), store)


def test_a_kill_after_the_record_is_written_leaves_no_checkpoint(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "remove", killed)
        with pytest.raises(KilledError):
            run(config(), store)
    path = store.checkpoint_path(config())
    assert path.exists()
    toys.before_step = lambda step: pytest.fail("trained")
    run(config(), store)
    assert not path.exists()


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError(), "out_of_memory", "MemoryError"),
        (torch.OutOfMemoryError("CUDA"), "out_of_memory", "OutOfMemoryError: CUDA"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), "out_of_memory", "9"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", "No space left"),
        (KeyError("two\nlines"), "failed", "KeyError: 'two"),
    ],
)
def test_a_run_that_cannot_go_on_says_why_and_resumes(
    error: Exception, status: str, reason: str, toys: Builder, tmp_path: Path
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "failed")

    def fail(step: int) -> None:
        if step == 15:
            raise error

    toys.before_step = fail
    record = run(config(), store)
    assert (record.status, record.test, len(record.curve)) == (status, {}, 3)
    assert reason in record.reason
    assert "\n" not in record.reason
    assert store.get(config()) == Record.from_json(record.to_json())

    steps: list[int] = []
    toys.before_step = steps.append
    assert essence(run(config(), store)) == essence(whole)
    assert steps == list(range(12, 24))  # from the last evaluation on


@pytest.mark.parametrize(
    "content",
    [[1, 2], torch.ones(3), "text", 5, {"config": 5}, {"config": {"seed": torch.ones(2)}}],
)
def test_a_checkpoint_of_something_else_is_not_gone_on_with(
    content: Any, toys: Builder, store: Store
) -> None:
    checkpoints.save(store.checkpoint_path(config()), content)
    with pytest.warns(UserWarning, match=r"checkpoint does not fit \(.*\): the run starts over"):
        assert run(config(), store).status == "done"


def test_a_full_disk_keeps_the_last_checkpoint(
    toys: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "full")
    real, calls = os.fsync, []

    def fsync(file: int) -> None:
        calls.append(file)
        if 3 <= len(calls) <= last:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(files.os, "fsync", fsync)
    last = 3  # the checkpoint does not fit, the record does
    record = run(config(), store, checkpoint_seconds=0)
    assert (record.status, len(calls) > 3) == ("disk_full", True)
    calls.clear()
    last = 1000  # nothing fits
    with pytest.raises(OSError, match=r"cannot write .*No space left.*Make room") as caught:
        run(config(), store, checkpoint_seconds=0)
    assert caught.value.errno == errno.ENOSPC
    last = 0  # there is room again
    assert essence(run(config(), store)) == essence(whole)


def test_an_interrupt_saves_and_passes_through(toys: Builder, tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "interrupted")

    class Hand(Watcher):
        def stepped(self, step: int, loss: float) -> None:
            if step == 9:
                signal.raise_signal(signal.SIGINT)
            assert step <= 9

    with pytest.raises(KeyboardInterrupt):
        run(config(), store, watcher=Hand())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    begun: list[tuple[int, int]] = []

    class Eye(Watcher):
        def started(self, config: RunConfig, steps: int, step: int, curve: Any) -> None:
            begun.append((step, len(curve)))

    assert essence(run(config(), store, watcher=Eye())) == essence(whole)
    assert begun == [(9, 2)]


def test_seconds_go_on_after_a_kill(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr(training, "perf_counter", lambda: float(next(ticks)))
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(18))
    record = run(config(), store)
    assert [point.seconds for point in record.curve] == [0.0, 6.0, 12.0, 18.0, 24.0]
    assert (record.train_seconds, record.evaluation_seconds) == (24.0, 6.0)


DRIVER = """
import os, random, signal, sys, tempfile, time
from pathlib import Path
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import Watcher, run

class Starts(Watcher):
    def started(self, config, steps, step, curve):
        os.write(1, f"{step}\\n".encode())  # whole, or not at all

config = RunConfig("digits_cnn", "hvadam", scale="smoke", settings={"epochs": 4})
with tempfile.TemporaryDirectory() as folder:  # what a first run loads, children need not
    run(config, Store(Path(folder)))
    started = time.monotonic()
    run(config, Store(Path(folder, "again")))
    pace = (time.monotonic() - started) / 3
random.seed(0)
kills = 0
while True:
    child = os.fork()
    if child == 0:
        run(config, Store(Path(sys.argv[1])), watcher=Starts(), checkpoint_seconds=0)
        os._exit(0)
    if kills < 8:
        # From before the first checkpoint to many after it, whatever the machine's pace.
        while kills % 2 and not list(Path(sys.argv[1]).rglob("*.checkpoint")):
            time.sleep(0.001)
        time.sleep(random.uniform(0, pace))
        os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] == 0:
        break
    kills += 1
"""


def test_kill_9_at_any_moment(tmp_path: Path) -> None:
    asked = RunConfig("digits_cnn", "hvadam", scale="smoke", settings={"epochs": 4})
    whole = run(asked, Store(tmp_path / "whole"))
    store = Store(tmp_path / "killed")
    driver = [sys.executable, "-c", DRIVER, str(store.folder)]
    done = subprocess.run(driver, capture_output=True, text=True, check=True, timeout=300)
    starts = [int(step) for step in done.stdout.split()]
    assert starts == sorted(starts)
    assert starts[-1] > 0
    assert done.stderr == ""  # no checkpoint was ever refused
    record = store.get(asked)
    assert record is not None
    assert essence(record) == essence(Record.from_json(whole.to_json()))
    assert [path.name for path in store.path(asked).parent.iterdir()] == [store.path(asked).name]


@pytest.mark.slow
def test_the_same_command_after_kill_9_resumes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hvadam", "run", "digits_cnn", "hvadam"]
    command += ["--lr", "0.001", "--set", "task.epochs=30", "--store", str(tmp_path / "killed")]
    options, settings = {"lr": 0.001}, {"epochs": 30}
    asked = RunConfig("digits_cnn", "hvadam", options=options, settings=settings)
    store = Store(tmp_path / "killed")
    path = store.checkpoint_path(asked)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before = path.stat().st_mtime_ns if path.exists() else 0
        while not (path.exists() and path.stat().st_mtime_ns > before):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert store.get(asked) is None
    last = subprocess.run(command, check=True, capture_output=True, text=True)
    assert last.stderr == ""  # no checkpoint was refused
    record = store.get(asked)
    assert record is not None
    whole = run(asked, Store(tmp_path / "whole"))
    assert essence(record) == essence(Record.from_json(whole.to_json()))
