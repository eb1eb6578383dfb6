"""Generators that are killed and started again, as processes: nobody can tell from the results."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from interrupted import artifacts, essence

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import MEASURED, Store

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
