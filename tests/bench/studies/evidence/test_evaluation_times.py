"""Quartiles of what was timed, and the one JSON form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_evaluation_times import made_evaluation_times, made_time

from hvadam_bench.studies.evidence.evaluation_times import EvaluationTimes

COMMITTED = Path(__file__).parents[4] / "results" / "evaluation-times.json"


def test_ratios_are_those_of_pairs_and_the_reference_has_all_its_groups() -> None:
    one = made_time(3e-3)
    assert one.milliseconds.median == pytest.approx(3.0)
    # Of 1.5, 3 and 0.75 times; the ratio of the medians would hide how far they lie apart.
    ratio = one.ratio
    assert (ratio.q1, ratio.median, ratio.q3) == pytest.approx((1.125, 1.5, 2.25))
    task = made_evaluation_times().tasks["heat_pinn"]
    assert task.reference_milliseconds.median == pytest.approx(2.0)


def test_the_result_comes_back_from_its_form_and_others_can_read_it(tmp_path: Path) -> None:
    found = made_evaluation_times()
    found.save(tmp_path / "times.json")
    assert EvaluationTimes.load(tmp_path / "times.json") == found
    plain = json.loads((tmp_path / "times.json").read_text())
    assert plain["tasks"]["heat_pinn"]["contenders"]["hvadam"]["ratio"]["median"] == 1.5


def test_the_committed_times_are_of_every_smooth_task_and_of_a_quiet_machine() -> None:
    found = EvaluationTimes.load(COMMITTED)
    assert sum(task.part == "smooth" for task in found.tasks.values()) == 8
    assert all("hvadam" in task.contenders for task in found.tasks.values())
    assert found.alone
    assert found.threads == 1
