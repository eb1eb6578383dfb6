"""The terminal and the page say the same of a sweep, in every cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_records import made_record

from hvadam_bench.analysis.grouping import group
from hvadam_bench.analysis.judging import judge_against
from hvadam_bench.pages.standings import ablation, results, standings
from hvadam_bench.pages.tables import Table
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping.contest_results import ContestResults, read_contest
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Contest, Entry

# Of five seeds each: some ends that a binary rounding would show another way.
ENDS = {
    "adam": [90.05, 91.15, 92.25, 90.35, 91.45],
    "sgd": [89.0, 90.1, 91.2, 89.3, 90.4],  # always behind, by 1.05
    "hvadam": [92.0, 91.0, 93.0, 90.0, 92.0],
    "lion": [90.0, 91.0, 92.0, 90.0, 91.0],
}


def told(store: Store, contenders: dict[str, list[float]], seeds: int) -> ContestResults:
    study = Contest("digits_mlp", [Entry(name) for name in contenders], trials=1, seeds=seeds)
    study = replace(study, reference=next(iter(contenders)))
    for arm in study.arms():
        for config in arm.judging(arm.trials[0].options):
            ends = contenders[config.contender]
            store.put(made_record(ends[config.seed % len(ends)], config=config))
    return read_contest(study, Ledger(store))


def columns(table: Table, *heads: str) -> dict[str, list[str]]:
    places = [next(i for i, h in enumerate(table.heads) if h.startswith(head)) for head in heads]
    return {row[0].contender: [row[place].text for place in places] for row in table.cells}


@pytest.mark.parametrize("seeds", [1, 2, 3, 5, 10])
def test_the_terminal_and_the_page_say_the_same(store: Store, seeds: int) -> None:
    reading = told(store, ENDS, seeds)
    [task] = group(store)
    heads = ("test accuracy, %", "against Adam", "n", "lr chosen")
    terminal, page = (columns(table, *heads) for table in (standings(reading), results(task)))
    assert terminal == page
    assert terminal["adam"][1] == "reference"
    if seeds == 1:
        assert terminal["adam"][0] == "90.05"
        assert terminal["sgd"][1] == "−1.05 undecided"
    if seeds == 2:
        assert terminal["sgd"][1] == "−1.1 undecided (8 more seeds)"
    if seeds == 5:
        assert terminal["sgd"][:2] == ["90.1 [89.0, 91.2]", "−1.1 leans behind (5 more seeds)"]
    if seeds == 10:
        assert terminal["sgd"][1] == "−1.1 [−1.1, −1.1] behind"
        assert terminal["hvadam"][1].endswith(" undecided (19 more seeds)")


def test_the_ablation_is_corrected_for_its_levels_on_both(store: Store) -> None:
    names: list[str] = ["hvadam0", "hvadam1", "hvadam2", "hvadam"]
    levels = dict(zip(names, ENDS.values(), strict=True))
    reading = told(store, levels, 5)
    [task] = group(store)
    page = ablation(task)
    heads = ("test accuracy, %", "against", "n")
    shown = columns(page, *heads)
    assert columns(standings(reading), *heads) == {
        name: [value, "reference" if name == "hvadam0" else against, n]
        for name, (value, against, n) in shown.items()
    }
    assert judge_against(task, "hvadam0")["hvadam"].comparisons == 3


def test_one_run_has_no_interval(store: Store) -> None:
    store.put(made_record(90.05, config=RunConfig("digits_mlp", "adam")))
    [task] = group(store)
    assert columns(results(task), "test accuracy, %") == {"adam": ["90.05"]}


def test_a_diverged_contender_is_named_with_the_verdict(store: Store) -> None:
    for name in ("adam", "sgd"):
        for seed in range(10):
            config = RunConfig("digits_mlp", name, seed=seed)
            status = "done" if name == "adam" else "diverged"
            store.put(made_record(90.0 + seed / 10, config=config, status=status))
    [task] = group(store)
    assert columns(results(task), "against Adam")["sgd"] == ["diverged, behind"]
    other = replace(task, compared_with="sgd")
    assert columns(results(other), "against SGD")["adam"] == ["SGD diverged, ahead"]


def test_losses_are_told_by_ratios_and_negative_ones_by_differences(store: Store) -> None:
    def told(*ends: float) -> str:
        for name, end in zip(("adam", "sgd"), ends, strict=True):
            for seed in range(10):
                config = RunConfig("digits_mlp", name, seed=seed)
                store.put(made_record(end - 0.01 * seed, config=config, metric="nats"))
        [task] = group(store)
        return columns(results(task), "against Adam")["sgd"][0]

    assert told(2.0, 1.0) == "−51% [−52, −51] ahead"
    assert told(-1.0, -2.0) == "−1.000 [−1.000, −1.000] ahead"
