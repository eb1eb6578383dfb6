"""Losses by learning rate, from records that no run made."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench.publishing import high_rates as page
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import write_packed
from hvadam_bench.running.records import PACKED, Record, Store
from hvadam_bench.studies import high_rates
from hvadam_bench.studies.high_rates import HighRates
from hvadam_bench.studies.json_form import from_json
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.recipes.high_rates import ENTRANTS, RATES, TASKS


def loss_of(config: RunConfig) -> float:
    """Return losses whose best rate is 0.01; Adam's grow ten times as fast, and diverge at last."""
    above = math.log10(config.options["lr"] / 0.01)
    steep = 10.0 if config.contender == "adam" else 1.0
    return math.inf if steep * above > 10 else 1.0 + steep * abs(above) + 1e-3 * config.seed


def fill(store: Store, but: str = "") -> None:
    """Pack records of all that the study asks for, except those of one task."""
    assert store.packed is not None
    for study in recipes.get("high_rates").studies:
        runs: list[Record] = []
        for arm in study.arms():
            for config in arm.judging(arm.trials[0].options):
                value = loss_of(config)
                status = "diverged" if math.isinf(value) else "done"
                runs.append(made_record(value, config=config, metric="loss", status=status))
        if study.task != but:
            lines = [replace(run, role="judged").to_line() for run in runs]
            write_packed(store.packed / f"{study.task}{PACKED}", lines)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return high_rates.store_of(tmp_path / "runs", tmp_path / "results")


def test_everyone_runs_every_rate_and_nobody_tunes(store: Store) -> None:
    [sweep, *_] = high_rates.plan(store)
    arms = [arm for study in sweep.studies for arm in study.arms()]
    assert len(arms) == len(ENTRANTS) * len(RATES)
    assert {arm.runs for arm in arms} == {5}


def test_losses_are_found_by_rate_and_page_shows_them(store: Store, tmp_path: Path) -> None:
    fill(store)
    found = high_rates.measure(store)
    assert [one.task for one in found.tasks] == list(TASKS)
    points = found.tasks[0].entrants["hvadam"]
    assert [point.lr for point in points] == list(RATES)
    assert high_rates.best(points).lr == 0.01
    assert high_rates.best(points).median == pytest.approx(1.002)
    assert high_rates.excess(points, 10) == pytest.approx(2.002 / 1.002)
    adam = found.tasks[0].entrants["adam"]
    assert adam[-1].median == math.inf
    assert high_rates.excess(adam, 30) == math.inf
    assert high_rates.excess(adam, 100) is None

    written = page.write(found, tmp_path / "results", tmp_path / "docs")
    assert all(path.stat().st_size > 100 for path in written)
    text = written[1].read_text(encoding="utf-8")
    assert "**1.002**" in text
    assert "diverged" in text
    again = from_json(HighRates, json.loads(written[0].read_text(encoding="utf-8")))
    assert again == found


def test_unfinished_tasks_are_named_and_left_out(store: Store) -> None:
    fill(store, but=TASKS[1])
    found = high_rates.measure(store)
    assert found.unfinished == (TASKS[1],)
    assert [one.task for one in found.tasks] == [TASKS[0], TASKS[2]]
    assert f"Not finished: {TASKS[1]}" in page.render_page(found)


def test_without_records_there_is_no_page(store: Store, tmp_path: Path) -> None:
    found = high_rates.measure(store)
    assert found.unfinished == TASKS
    assert [path.name for path in page.write(found, tmp_path, tmp_path)] == ["high_rates.json"]
