"""The worked example beside what the speed study counts."""

from __future__ import annotations

import pytest

from hvadam_bench.studies.scaling import page as scaling
from hvadam_bench.studies.speed.contenders import ADAM, EXACT


def test_the_worked_example_moves_what_the_speed_study_counts() -> None:
    worked = {one.name: one for one in scaling.WORKED}
    for name, streams in (("AdamW", ADAM), ("HVAdam", EXACT)):
        assert worked[name].moved() == streams.bytes(worked[name].state)
    assert worked["HVAdam, bfloat16 state"].moved() == EXACT.bytes(6)
    seconds = worked["AdamW"].seconds(scaling.BANDWIDTH / 28)
    assert seconds == pytest.approx(1.0)
