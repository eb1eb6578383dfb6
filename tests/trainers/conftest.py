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
from snippets import python_on

ROOT = Path(__file__).parents[2]
# What a run should not say: warnings, and what transformers logs; but for other packages' own.
COMPLAINT = re.compile(r"^(?!.*site-packages).*(\bwarn|Warning|deprecated|\[transformers\])", re.M)

Launch = Callable[..., str]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Return a command that runs a script offline on CPUs, with ranks by torchrun."""

    def run(script: Path, *arguments: object, ranks: int | None = None) -> str:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [sys.executable, *(torchrun if ranks else []), script, *arguments]
        return _output([str(part) for part in command], tmp_path)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Return a command that writes the Python of a how-to page, one after the other, to a file."""

    def extract(page: str) -> Path:
        path = tmp_path / "train.py"  # not the name of the package that it imports
        path.write_text("\n\n".join(python_on(ROOT / "docs" / "howto" / page)))
        return path

    return extract


@pytest.fixture
def assert_same() -> Callable[[Any, Any], None]:
    """Return a comparison of nested checkpoints, bit for bit in values and dtypes."""

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
    assert not COMPLAINT.search(errors), errors
    return output
