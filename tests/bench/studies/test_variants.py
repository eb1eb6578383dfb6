"""The paired study of low-bit state and the late step, from records that no run made."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench.publishing.variants import variants_table
from hvadam_bench.running.records import Store
from hvadam_bench.studies import variants
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.search import Study

REPOSITORY = Path(__file__).parents[3]
STUDIES: list[Study] = list(recipes.get(variants.RECIPE).studies)
# The late step loses a tenth of the loss and half a point everywhere; the others do nothing.
LATE = {"loss": 1.1, "accuracy": -0.5}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Records of everything that the study asks for."""
    store = variants.store_of(tmp_path / "runs", tmp_path / "results")
    for study in STUDIES:
        for arm in study.arms():
            for config in arm.judging(arm.trials[0].options):
                late = config.variant == "late"
                loss = 0.1 * (1 + config.seed) * (LATE["loss"] if late else 1)
                accuracy = 95 + config.seed / 10 + (LATE["accuracy"] if late else 0)
                record = made_record(accuracy, config=config)
                store.put(replace(record, test={"accuracy": accuracy, "loss": loss}))
    return store


def test_differences_are_paired_by_seed(store: Store) -> None:
    found = variants.compare(store)
    assert len(found.differences) == 2 * 4 * 2  # tasks, variants, measures
    for one in found.differences:
        assert one.n == 10
        if one.variant != "late":
            same = 1.0 if one.measure == "loss" else 0.0
            assert (one.mean, one.low, one.high, one.verdict) == (same, same, same, "equal")
        else:
            ends = [one.low, one.mean, one.high]
            assert ends == pytest.approx([LATE[one.measure]] * 3)
            assert one.verdict == "behind"
            assert one.p == pytest.approx(4 * 2 / 2**10)


def test_the_result_round_trips_and_is_told(store: Store, tmp_path: Path) -> None:
    found = variants.compare(store)
    found.save(tmp_path / "variants.json")
    assert variants.Variants.load(tmp_path / "variants.json") == found
    table = variants_table(found)
    assert len(table.rows) == 2 * 4
    said = {cell.text for row in table.cells for cell in row}
    assert "1.100 [1.100, 1.100] behind" in said
    assert "−0.50 [−0.50, −0.50] behind" in said


def test_the_guide_shows_the_published_table() -> None:
    published = variants.Variants.load(REPOSITORY / "results" / "variants.json")
    guide = REPOSITORY / "docs" / "howto" / "save-memory-and-time.md"
    assert variants_table(published).markdown() in guide.read_text(encoding="utf-8")


def test_the_published_table_is_of_the_packed_records(tmp_path: Path) -> None:
    store = variants.store_of(tmp_path, REPOSITORY / "results")
    assert variants.compare(store) == variants.Variants.load(
        REPOSITORY / "results" / "variants.json"
    )


def test_missing_runs_are_named(store: Store) -> None:
    arm = STUDIES[1].arms()[2]
    store.path(arm.judging(arm.trials[0].options)[3]).unlink()
    with pytest.raises(ValueError, match="digits_cnn is not finished; run `hvadam variants`"):
        variants.compare(store)


def test_all_variants_start_and_see_the_same(tmp_path: Path) -> None:
    """The exact one and the others differ in what they vary alone."""
    for study in STUDIES:
        exact, *others = study.arms()
        assert exact.entry.entrant == variants.EXACT
        for arm in others:
            ours, theirs = (a.judging(a.trials[0].options) for a in (arm, exact))
            for a, b in zip(ours, theirs, strict=True):
                assert replace(a, options=b.options, variant="") == b
                changed = dict(a.options.items() - b.options.items())
                assert changed
                assert set(changed) <= {"state_dtype", "hidden_step"}
    assert math.isclose(STUDIES[0].arms()[0].trials[0].options["lr"], 1e-3)
