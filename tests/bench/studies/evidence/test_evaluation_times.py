"""Times of evaluations: their quartiles, their table, and whether to trust them."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_evaluation_times import made_evaluation_times, made_time

from hvadam_bench.studies._results import load, to_json
from hvadam_bench.studies.evidence.result import EvaluationTimes
from hvadam_bench.studies.evidence.tables import evaluation_times

COMMITTED = Path(__file__).parents[4] / "results" / "evaluation-times.json"


def test_ratios_are_those_of_pairs_and_the_reference_has_all_its_groups() -> None:
    one = made_time(3e-3)
    assert one.milliseconds.median == pytest.approx(3.0)
    # The ratios are 1.5, 3 and 0.75; the ratio of the medians would hide how far they lie apart.
    ratio = one.ratio
    assert (ratio.q1, ratio.median, ratio.q3) == pytest.approx((1.125, 1.5, 2.25))
    task = made_evaluation_times().tasks["heat_pinn"]
    assert task.reference_milliseconds.median == pytest.approx(2.0)


def test_others_can_read_the_quartiles() -> None:
    plain = to_json(made_evaluation_times())
    assert plain["tasks"]["heat_pinn"]["contenders"]["hvadam"]["ratio"]["median"] == 1.5


def test_the_committed_times_are_of_every_smooth_task_and_of_a_quiet_machine() -> None:
    found = load(EvaluationTimes, COMMITTED)
    assert sum(task.part == "smooth" for task in found.tasks.values()) == 8
    assert all("hvadam" in task.contenders for task in found.tasks.values())
    assert found.alone
    assert found.threads == 1


def test_the_reference_stands_first_and_the_others_next_to_it() -> None:
    table = evaluation_times(made_evaluation_times())
    shown = [[cell.text for cell in row] for row in table.cells]
    assert shown[:3] == [
        ["heat_pinn", "Adam", "2.00", ""],
        ["heat_pinn", "NAdam", "2.00", "1.000 (0.750 to 1.500)"],
        ["heat_pinn", "HVAdam", "3.00", "1.500 (1.125 to 2.250)"],
    ]
    assert [row[0] for row in shown[3:]] == ["matrix_factorization"] * 2 + ["digits_cnn"] * 2


def test_a_machine_that_was_not_quiet_is_reported() -> None:
    for alone, told in ((True, False), (None, False), (False, True)):
        table = evaluation_times(made_evaluation_times(alone))
        assert ("measure again when it is quiet" in table.reading) == told
        assert "3 rounds" in table.reading
