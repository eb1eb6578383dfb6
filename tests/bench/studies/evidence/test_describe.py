"""A finished task or dose as numbers: those of the records, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_evidence import ALIGNMENT, GOOD, fill, minibatch, noise, smooth, told

from hvadam_bench.analysis.statistics import median
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record
from hvadam_bench.studies.evidence.describe import LOOKED_AT, Plain, best_rule
from hvadam_bench.studies.evidence.measure import store_of
from hvadam_bench.studies.evidence.plan import CONTROL
from hvadam_bench.sweeping.search import TUNING_SEED


def test_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    studies = {"smooth": [smooth()]}
    fill(tmp_path, studies)
    [task] = told(tmp_path, studies)["smooth"]["tasks"]
    ours = task["contenders"]["hvadam"]
    judged = [
        run
        for run in store_of(tmp_path, "smooth")
        if run.config.entrant == "hvadam" and run.role == "judged"
    ]
    ends = {run.config.seed: run.test["loss"] for run in judged}
    assert ours["values"] == [float(f"{ends[seed]:.6g}") for seed in range(10)]
    assert ours["median"] == pytest.approx(median(ends.values()), rel=1e-5)
    assert ours["options"]["lr"] == 3e-3
    assert min(ours["rates"], key=lambda lr: ours["rates"][lr] or math.inf) == "0.003"
    assert not ours["at_edge"]
    assert ours["arrived"] == 1
    assert ours["others"] == {"error": 0.01}
    assert ours["decay"] == "none"
    assert ours["evaluations"] == task["steps"] == judged[0].curve[-1].step
    # Who reuses a rate has Adam's, and tried none.
    reused = task["contenders"]["sgd"]
    assert reused["options"]["lr"] == task["contenders"]["adam"]["options"]["lr"]
    assert (reused["tuned"], reused["rate_of"], reused["rates"]) == (False, "adam", {})


def test_effects_are_the_factors_that_the_losses_were_made_with(tmp_path: Path) -> None:
    studies = {"smooth": [smooth()], "minibatch": [minibatch()]}
    fill(tmp_path, studies)
    evidence = told(tmp_path, studies)
    [task] = evidence["smooth"]["tasks"]
    for rival, factor in (("adam", GOOD["hvadam"]), (CONTROL, GOOD["hvadam"] / GOOD[CONTROL])):
        found = task["duels"][rival]
        assert found["verdict"] == "ahead"
        assert math.exp(found["amount"]) == pytest.approx(factor, rel=0.03)
        assert found["low"] <= found["amount"] <= found["high"]
    # The same pair, seen from the other side.
    behind = task["contenders"]["hvadam"]["against_reference"]
    assert behind["amount"] == task["duels"]["adam"]["amount"]
    assert (task["best"], task["family_best"]) == ("hvadam", CONTROL)
    assert math.exp(task["momentum"]["amount"]) == pytest.approx(1.5, rel=0.03)
    [images] = evidence["minibatch"]["tasks"]
    assert images["unit"] == "points"
    assert images["duels"]["adamw"]["amount"] == pytest.approx(4, abs=0.1)
    # The noise of the test set is in the interval: ten seeds that agree do not make it a point.
    assert images["duels"]["adamw"]["high"] - images["duels"]["adamw"]["low"] > 1


def test_the_worse_is_behind_and_noise_is_undecided_or_equal(tmp_path: Path) -> None:
    studies = {"smooth": [smooth("heat_pinn"), smooth("two_spirals")]}

    def scattered(config: RunConfig, record: Record) -> Record:
        if config.task == "heat_pinn" or config.seed >= TUNING_SEED:
            return record
        swing = math.exp((-1) ** config.seed * (config.contender == "hvadam"))
        return replace(record, test={**record.test, "loss": 1e-3 * swing})

    fill(tmp_path, studies, {"hvadam": 0.25}, scattered)
    behind, noisy = told(tmp_path, studies)["smooth"]["tasks"]
    assert {one["verdict"] for one in behind["duels"].values()} == {"behind"}
    assert noisy["duels"]["adam"]["verdict"] == "undecided"
    # Without any difference the others are equal, which is a finding.
    nadam = noisy["contenders"]["nadam"]["against_reference"]
    assert nadam["verdict"] == "equal"


def test_who_never_ends_or_arrives_has_no_number(tmp_path: Path) -> None:
    studies = {"smooth": [smooth("heat_pinn"), smooth("two_spirals")]}

    def lost(config: RunConfig, record: Record) -> Record:
        if config.contender == "nadam" and config.seed not in (0, TUNING_SEED):
            return replace(record, status="diverged", test={}, curve=record.curve[:2])
        stuck = config.task == "two_spirals"
        return replace(record, test={**record.test, "arrived": 0.0}) if stuck else record

    fill(tmp_path, studies, fate=lost)
    evidence = told(tmp_path, studies)
    solved, unsolved = evidence["smooth"]["tasks"]
    nadam = solved["contenders"]["nadam"]
    assert (nadam["median"], nadam["values"].count(None), nadam["to_target"]) == (None, 9, None)
    assert nadam["arrived"] == pytest.approx(0.1)
    assert solved["duels"]["nadam"]["verdict"] == "ahead"
    # Where nobody arrives, losses compare failures: no verdict, and no part in any count.
    assert (solved["solved"], unsolved["solved"]) == (True, False)
    assert {one["verdict"] for one in unsolved["duels"].values()} == {"undecided"}
    assert sum(evidence["smooth"]["standings"]["reference"].values()) == 1
    assert evidence["smooth"]["best"] == {"hvadam": 1}


def test_doses_are_read_with_what_the_hidden_vector_did(tmp_path: Path) -> None:
    studies = {"noise": noise()}
    fill(tmp_path, studies)
    found = told(tmp_path, studies)["noise"]
    assert [dose["batch"] for dose in found["doses"]] == [64, 16, 4]
    assert [dose["share"] for dose in found["doses"]] == [1, 1 / 4, 1 / 16]
    assert [dose["alignment"] for dose in found["doses"]] == list(ALIGNMENT.values())
    assert {dose["hidden_share"] for dose in found["doses"]} == {0.4}
    assert {dose["hidden_most"] for dose in found["doses"]} == {0.4}
    for dose in found["doses"]:
        assert dose["amount"] == pytest.approx(math.log(math.sqrt(dose["batch"] / 15)), abs=0.02)
        assert dose["seen"] >= LOOKED_AT
        assert dose["n"] == 5
        assert dose["low"] <= dose["amount"] <= dose["high"]
        assert dose["rates"] == {"hvadam": 3e-3, "adam": 3e-3}


def test_a_dose_without_the_full_batch_has_no_share(tmp_path: Path) -> None:
    studies = {"noise": noise()}
    fill(tmp_path, studies)
    store = store_of(tmp_path, "noise")
    for run in list(store):
        if run.config.settings["batch"] is None:
            store.path(run.config).unlink()
    found = told(tmp_path, studies)["noise"]
    assert [dose["share"] for dose in found["doses"]] == [None, None]
    assert [(one["task"], one["about"]) for one in found["unfinished"]] == [
        ("pinn_burgers", "batch of all")
    ]


def made_dose(amount: float, alignment: float | None, share: float | None = None) -> Plain:
    return {"amount": amount, "alignment": alignment, "hidden_share": share}


def test_the_rule_parts_the_doses_and_says_what_guessing_does() -> None:
    doses = [made_dose(x, alignment) for x, alignment in ((-1, 0.1), (-1, 0.3), (1, 0.5), (2, 0.9))]
    rule = best_rule(doses)
    right = {"right": 4, "of": 4, "guess": 2}
    assert rule == {"diagnostic": "alignment", "threshold": 0.4, **right}


def test_a_diagnostic_that_does_not_tell_is_no_rule() -> None:
    mixed = [made_dose((-1) ** i, 0.1 * i, 0.5) for i in range(8)]
    rule = best_rule(mixed)
    assert rule is not None
    assert rule["right"] < rule["of"]
    always = best_rule([made_dose(1, 0.1), made_dose(1, 0.9)])
    assert always is not None
    assert always["right"] <= always["guess"]
    assert best_rule([made_dose(1, None)]) is None
