"""The workflows run commands that there are, and the makefile installs no more than they need."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import prepare
import pytest
import yaml

WORKFLOWS = sorted((prepare.ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_the_makefile(path: Path) -> None:
    """So that what they do can be done by hand, and no command is written twice."""
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    targets = re.findall(r"^([a-z-]+):", (prepare.ROOT / "Makefile").read_text(), re.M)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands
    for command in commands:
        program, target = command.split()
        assert program == "make"
        assert target in targets


def test_the_site_is_built_by_make(tmp_path: Path) -> None:
    """In a clone where everything is to be done: what it would do, in order."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).write_bytes((prepare.ROOT / name).read_bytes())
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "pyproject.toml").touch()
    command = ["make", "--dry-run", "docs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "-e '.[docs]'" in done.stdout
    assert "[dev]" not in done.stdout
    assert done.stdout.index("website/prepare.py") < done.stdout.index("-m mkdocs build")
