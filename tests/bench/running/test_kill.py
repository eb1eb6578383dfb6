"""Runs as processes: killed and started again, or two at one run, nobody can tell afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from interrupted import artifacts, essence

from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import FINAL, MEASURED, REFERENCE_NOTE, Store

# Tasks, and settings by which a run at smoke scale is long enough to be killed in the middle.
LONG = {
    "wgan_gp": {"epochs": 20},
    "sngan": {"iterations": 60},
    "diffusion": {"iterations": 60, "evaluations": 10},
}


def command(task: str, settings: Mapping[str, int], store: Store) -> list[str]:
    words = [sys.executable, "-m", "hvadam", "run", task, "hvadam", "--scale", "smoke"]
    words += ["--lr", "0.001", "--store", str(store.folder)]
    return words + [f"--set=task.{name}={value}" for name, value in settings.items()]


def kill(words: list[str], after: float, checkpoint: Path | None = None) -> None:
    """Start a process, and kill it so long after it wrote a checkpoint, or after its start."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    if checkpoint is not None:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
            assert process.poll() is None
            time.sleep(0.005)
    time.sleep(after)
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("task", LONG)
def test_the_same_command_after_kill_9_ends_the_same(task: str, tmp_path: Path) -> None:
    asked = RunConfig(task, "hvadam", "smoke", options={"lr": 0.001}, settings=LONG[task])
    whole, killed = (Store(tmp_path / name) for name in ("whole", "killed"))
    subprocess.run(command(task, LONG[task], whole), check=True, stdout=subprocess.DEVNULL)

    words = command(task, LONG[task], killed)
    moments = random.Random(task)
    kill(words, after=moments.uniform(0, 4))  # wherever that is
    path = killed.checkpoint_path(asked)
    kill(words, after=0.0, checkpoint=path)
    kill(words, after=moments.uniform(0, 0.2), checkpoint=path)
    assert killed.get(asked) is None
    assert path.exists()
    last = subprocess.run(words, check=True, capture_output=True, text=True)
    assert last.stderr == ""  # no checkpoint was refused
    one, other = (store.get(asked) for store in (whole, killed))
    assert one is not None
    assert other is not None
    assert one.status in MEASURED
    assert essence(other) == essence(one)
    assert artifacts(killed, asked) == artifacts(whole, asked)
    assert not path.exists()


@pytest.mark.slow
def test_two_processes_at_one_run_leave_the_record_of_one(tmp_path: Path) -> None:
    settings = {"epochs": 60}
    asked = RunConfig("digits_mlp", "hvadam", "smoke", options={"lr": 0.001}, settings=settings)
    store = Store(tmp_path / "runs")
    words = command("digits_mlp", settings, store)
    path = store.checkpoint_path(asked)
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while not path.exists():
        assert first.poll() is None
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)  # at its run, however slow the other one is
    second = subprocess.run(words, capture_output=True, text=True)
    assert second.returncode == 2
    assert f"digits_mlp hvadam seed 0 is being made by process {first.pid} on" in second.stderr
    assert store.get(asked) is None
    first.kill()
    first.wait()
    assert checkpoints.lock_path(path).exists()  # which the kill gave back
    third = subprocess.run(words, check=True, capture_output=True, text=True)
    assert (third.stderr, third.stdout[:8]) == ("", "resuming")
    assert [one.name for one in path.parent.iterdir()] == [store.path(asked).name]


@pytest.mark.slow
def test_two_sweeps_on_one_store_share_the_runs(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hvadam", "sweep", "digits_mlp", "--scale", "smoke"]
    words += ["--seeds", "1", "--workers", "1", "--store", str(tmp_path / "runs")]
    pair = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in pair]
    assert [process.returncode for process in pair] == [0, 0]
    tables = [text[text.index("test:") :] for text in said]
    assert tables[0] == tables[1]
    assert all(record.status in FINAL for record in Store(tmp_path / "runs"))
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in left if path.suffix != ".json"} == {REFERENCE_NOTE}
