"""Doses of noise: what they did, and what the diagnostics said of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_evidence import ALIGNMENT, fill, noise, told

from hvadam_bench.studies.evidence.describe import LOOKED_AT, best_rule
from hvadam_bench.studies.evidence.measure import store_of
from hvadam_bench.studies.evidence.result import Dose


def test_doses_are_read_with_what_the_hidden_vector_did(tmp_path: Path) -> None:
    studies = {"noise": noise()}
    fill(tmp_path, studies)
    found = told(tmp_path, studies).noise
    assert [dose.batch for dose in found.doses] == [64, 16, 4]
    assert [dose.share for dose in found.doses] == [1, 1 / 4, 1 / 16]
    assert [dose.alignment for dose in found.doses] == list(ALIGNMENT.values())
    assert {dose.hidden_share for dose in found.doses} == {0.4}
    assert {dose.hidden_most for dose in found.doses} == {found.hidden_most} == {0.4}
    for dose in found.doses:
        assert dose.amount == pytest.approx(math.log(math.sqrt(dose.batch / 15)), abs=0.02)
        assert dose.seen >= LOOKED_AT
        assert dose.n == 5
        low, high = dose.low or math.nan, dose.high or math.nan
        assert -math.inf < low <= (dose.amount or 0) <= high < math.inf
        assert dose.rates == {"hvadam": 3e-3, "adam": 3e-3}


def test_a_dose_without_the_full_batch_has_no_share(tmp_path: Path) -> None:
    studies = {"noise": noise()}
    fill(tmp_path, studies)
    store = store_of(tmp_path, "noise")
    for run in list(store):
        if run.config.settings["batch"] is None:
            store.path(run.config).unlink()
    found = told(tmp_path, studies).noise
    assert [dose.share for dose in found.doses] == [None, None]
    assert [(one.task, one.about) for one in found.unfinished] == [("pinn_burgers", "full batch")]


def made_dose(amount: float, alignment: float | None, share: float | None = None) -> Dose:
    low, high = amount - 1, amount + 1
    return Dose("t", "t", 8, 1.0, 900, 5, amount, low, high, alignment, share, share, 300, {})


def test_the_rule_parts_the_doses_and_says_what_guessing_does() -> None:
    doses = [made_dose(x, alignment) for x, alignment in ((-1, 0.1), (-1, 0.3), (1, 0.5), (2, 0.9))]
    rule = best_rule(doses)
    assert rule is not None
    assert (rule.diagnostic, rule.threshold) == ("alignment", 0.4)
    assert (rule.right, rule.of, rule.guess) == (4, 4, 2)
    assert rule.useful


def test_a_diagnostic_that_does_not_tell_is_no_rule() -> None:
    mixed = [made_dose((-1) ** i, 0.1 * i, 0.5) for i in range(8)]
    rule = best_rule(mixed)
    assert rule is not None
    assert rule.right < rule.of
    always = best_rule([made_dose(1, 0.1), made_dose(1, 0.9)])
    assert always is not None
    assert not always.useful
    assert best_rule([made_dose(1, None)]) is None
