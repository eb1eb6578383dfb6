"""The example for JAX learns to predict a text, as its first lines say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_example_learns(tmp_path: Path) -> None:
    text = tmp_path / "input.txt"
    text.write_text((ROOT / "docs" / "method.md").read_text(encoding="utf-8"), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "train_jax.py", text, "--steps", "61"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", ran.stdout)]
    assert len(losses) == 4
    assert losses[0] > 4.0  # log of some hundred characters
    assert losses[-1] < 3.5
