"""What runs should take: by records of like runs, else by how much they train."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_records import made_record

from hvadam_bench.running.config import RunConfig
from hvadam_bench.sweeping.costs import Costs, amount

CONFIG = RunConfig("digits_mlp", "adam")  # 600 epochs


def test_costs_are_those_on_record_where_there_are_any() -> None:
    guess = Costs().of(CONFIG)
    ran = replace(made_record(config=CONFIG), train_seconds=7.0, evaluation_seconds=1.0)
    lost = replace(made_record(config=CONFIG, status="diverged"), train_seconds=0.1)
    costs = Costs([ran, lost])
    assert costs.of(CONFIG) == 8.0
    assert costs.of(replace(CONFIG, contender="sgd")) == 8.0
    short = replace(CONFIG, settings={"epochs": 60})
    assert costs.of(short) == pytest.approx(0.8)
    costs.learn(replace(ran, config=short, train_seconds=1.0))
    assert costs.of(short) == 2.0
    assert costs.of(CONFIG) == 8.0
    assert costs.of(replace(CONFIG, task="digits_cnn")) == guess


def test_short_runs_on_record_tell_of_long_ones() -> None:
    short = replace(CONFIG, settings={"epochs": 60})
    costs = Costs([replace(made_record(config=short), train_seconds=1.0, evaluation_seconds=0.0)])
    assert costs.of(CONFIG) == pytest.approx(10.0)


def test_a_guess_is_in_proportion_to_what_is_trained() -> None:
    lstm = RunConfig("pydoc_lstm", "adam", settings={"tokens": 60_000, "epochs": 2, "width": 16})
    assert amount(lstm) == pytest.approx(60_000 / 300_000 * 2 / 6)
    assert Costs().of(lstm) == pytest.approx(amount(lstm) * Costs().of(replace(lstm, settings={})))


def test_records_of_strange_tasks_are_taken_as_they_are() -> None:
    assert amount(RunConfig("nobodys_task", "adam", settings={"epochs": 3})) == 1.0
    assert amount(replace(CONFIG, scale="huge", settings={"epochs": 3})) == 1.0
