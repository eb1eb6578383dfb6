"""Starting real processes, and reading the programs that the how-to pages print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]

Launch = Callable[..., str]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Runs a script, offline and on CPUs, and returns what it printed; with ranks by torchrun."""

    def run(script: Path, *arguments: object, ranks: int | None = None) -> str:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [sys.executable, *(torchrun if ranks else []), script, *arguments]
        return _output([str(part) for part in command], tmp_path)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the first Python program of a how-to page to a file."""

    def extract(page: str) -> Path:
        text = (ROOT / "docs" / "howto" / page).read_text()
        found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        assert found, f"{page} shows no program"
        path = tmp_path / "train.py"  # not the name of the package that it imports
        path.write_text(found[1])
        return path

    return extract


@pytest.fixture
def assert_same() -> Callable[[Any, Any], None]:
    """Compares nested checkpoints bit for bit, in values and dtypes."""

    def compare(left: Any, right: Any) -> None:
        ours, theirs = dict(_leaves(left)), dict(_leaves(right))
        assert list(ours) == list(theirs)
        for path, x in ours.items():
            y = theirs[path]
            if isinstance(x, torch.Tensor):
                torch.testing.assert_close(x, y, rtol=0, atol=0, msg=f"{path}: {{}}".format)
            else:
                assert x == y, path

    return compare


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict | list | tuple):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            yield from _leaves(value, f"{path}[{key!r}]")
    else:
        yield path, tree


def _output(command: list[str], folder: Path) -> str:
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    with subprocess.Popen(
        command,
        cwd=folder,  # what a script leaves behind goes there
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=600)
        finally:
            if process.poll() is None:  # a rank may wait for another for ever
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{' '.join(command)}\n{output}\n{errors}"
    return output
