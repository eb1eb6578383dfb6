"""Tries the installed packages, from wherever it is run: that they are there, whole, and work.

    python smoke.py library
    python smoke.py bench

It fails if they come from a source tree. Nothing but the packages and torch is needed.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def try_library() -> None:
    """Train with every kernel that works here, and hold them to the reference."""
    import torch

    import hvadam

    assert "site-packages" in str(hvadam.__file__), hvadam.__file__
    assert version("hvadam") == hvadam.__version__
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = x @ torch.randn(8, 1)
    model = torch.nn.Linear(8, 1)
    optimizer = hvadam.HVAdam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10, losses[-1]
    for command in ("info", "check"):
        say(command)


def try_bench() -> None:
    """List what there is, and run a contender on a task."""
    import hvadam_bench

    folder = Path(str(hvadam_bench.__file__)).parent
    assert "site-packages" in str(folder), folder
    assert (folder / "explorer" / "index.html").is_file()
    assert "digits_mlp" in say("tasks")
    assert "adabelief" in say("contenders")
    assert "done" in say("run", "digits_mlp", "hvadam", "--scale", "smoke")
    say("report")


def say(*words: str) -> str:
    """Return what a command prints; it must end well."""
    command = [sys.executable, "-m", "hvadam", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"$ hvadam {' '.join(words)}\n{done.stdout}{done.stderr}")
    assert done.returncode == 0, words
    return done.stdout


if __name__ == "__main__":
    trials = {"library": try_library, "bench": try_bench}
    if len(sys.argv) != 2 or sys.argv[1] not in trials:
        sys.exit(__doc__)
    trials[sys.argv[1]]()
