"""The page on what many ranks cost is what its command writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hvadam_bench.studies import scaling
from hvadam_bench.studies.speed.contenders import ADAM, EXACT

PAGE = Path(__file__).parents[3] / "docs" / "scaling.md"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    """In a process of its own: it joins a process group, a fake one."""
    target = tmp_path / "scaling.md"
    command = [sys.executable, "-m", "hvadam", "scaling", "--out", str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert target.read_text() == PAGE.read_text()
    assert "| HVAdam | 64 | 1 | 40 B |" in target.read_text()


def test_the_worked_example_moves_what_the_speed_study_counts() -> None:
    worked = {one.name: one for one in scaling.WORKED}
    for name, streams in (("AdamW", ADAM), ("HVAdam", EXACT)):
        assert worked[name].moved() == streams.bytes(worked[name].state)
    assert worked["HVAdam, bfloat16 state"].moved() == EXACT.bytes(6)
    seconds = worked["AdamW"].seconds(scaling.BANDWIDTH / 28)
    assert seconds == pytest.approx(1.0)
