"""The table of evaluations says what was timed, and whether to trust it."""

from __future__ import annotations

from made_evaluation_times import made_evaluation_times

from hvadam_bench.pages.evaluation_times import evaluation_times_table


def test_the_reference_stands_first_and_the_others_beside_it() -> None:
    table = evaluation_times_table(made_evaluation_times())
    shown = [[cell.text for cell in row] for row in table.cells]
    assert shown[:3] == [
        ["heat_pinn", "Adam", "2.00", ""],
        ["heat_pinn", "NAdam", "2.00", "1.000 (0.750 to 1.500)"],
        ["heat_pinn", "HVAdam", "3.00", "1.500 (1.125 to 2.250)"],
    ]
    assert [row[0] for row in shown[3:]] == ["matrix_factorization"] * 2 + ["digits_cnn"] * 2


def test_a_machine_that_was_not_quiet_is_told() -> None:
    for alone, told in ((True, False), (None, False), (False, True)):
        table = evaluation_times_table(made_evaluation_times(alone))
        assert ("measure again when it is quiet" in table.reading) == told
        assert "3 rounds" in table.reading
