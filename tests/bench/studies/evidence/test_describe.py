"""A finished task as numbers: those of the records, and verdicts that follow from them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_evidence import GOOD, fill, minibatch, smooth, told

from hvadam_bench.analysis.statistics import median
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record
from hvadam_bench.studies.evidence.measure import store_of
from hvadam_bench.studies.evidence.plan import CONTROL
from hvadam_bench.sweeping.search import TUNING_SEED


def test_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    studies = {"smooth": [smooth()]}
    fill(tmp_path, studies)
    [task] = told(tmp_path, studies).smooth.tasks
    ours = task.contenders["hvadam"]
    judged = [
        run
        for run in store_of(tmp_path, "smooth")
        if run.config.entrant == "hvadam" and run.role == "judged"
    ]
    ends = {run.config.seed: run.test["loss"] for run in judged}
    assert ours.values == tuple(float(f"{ends[seed]:.6g}") for seed in range(10))
    assert ours.median == pytest.approx(median(ends.values()), rel=1e-5)
    assert ours.options["lr"] == 3e-3
    assert min(ours.rates, key=lambda lr: ours.rates[lr] or math.inf) == "0.003"
    assert not ours.at_edge
    assert ours.arrived == 1
    assert ours.others == {"error": 0.01}
    assert ours.decay == "none"
    assert ours.evaluations == task.steps == judged[0].curve[-1].step
    # Who reuses a rate has Adam's, and tried none.
    reused = task.contenders["sgd"]
    assert reused.options["lr"] == task.contenders["adam"].options["lr"]
    assert (reused.tuned, reused.rate_of, reused.rates) == (False, "adam", {})


def test_effects_are_the_factors_that_the_losses_were_made_with(tmp_path: Path) -> None:
    studies = {"smooth": [smooth()], "minibatch": [minibatch()]}
    fill(tmp_path, studies)
    evidence = told(tmp_path, studies)
    [task] = evidence.smooth.tasks
    for rival, factor in (("adam", GOOD["hvadam"]), (CONTROL, GOOD["hvadam"] / GOOD[CONTROL])):
        found = task.duels[rival]
        assert found.verdict == "ahead"
        assert math.exp(found.amount or 0) == pytest.approx(factor, rel=0.03)
        assert (found.low or 0) <= (found.amount or 0) <= (found.high or 0)
    # The same pair, seen from the other side.
    behind = task.contenders["hvadam"].against_reference
    assert behind is not None
    assert behind.amount == task.duels["adam"].amount
    assert (task.best, task.family_best) == ("hvadam", CONTROL)
    assert task.momentum is not None
    assert math.exp(task.momentum.amount or 0) == pytest.approx(1.5, rel=0.03)
    [images] = evidence.minibatch.tasks
    assert images.unit == "points"
    assert images.duels["adamw"].amount == pytest.approx(4, abs=0.1)
    # The noise of the test set is in the interval: ten seeds that agree do not make it a point.
    low, high = images.duels["adamw"].low, images.duels["adamw"].high
    assert high is not None
    assert low is not None
    assert high - low > 1


def test_the_worse_is_behind_and_noise_is_undecided_or_equal(tmp_path: Path) -> None:
    studies = {"smooth": [smooth("heat_pinn"), smooth("two_spirals")]}

    def scattered(config: RunConfig, record: Record) -> Record:
        if config.task == "heat_pinn" or config.seed >= TUNING_SEED:
            return record
        swing = math.exp((-1) ** config.seed * (config.contender == "hvadam"))
        return replace(record, test={**record.test, "loss": 1e-3 * swing})

    fill(tmp_path, studies, {"hvadam": 0.25}, scattered)
    behind, noisy = told(tmp_path, studies).smooth.tasks
    assert {one.verdict for one in behind.duels.values()} == {"behind"}
    assert noisy.duels["adam"].verdict == "undecided"
    # Without any difference the others are equal, which is a finding.
    nadam = noisy.contenders["nadam"].against_reference
    assert nadam is not None
    assert nadam.verdict == "equal"


def test_who_never_ends_or_arrives_has_no_number(tmp_path: Path) -> None:
    studies = {"smooth": [smooth("heat_pinn"), smooth("two_spirals")]}

    def lost(config: RunConfig, record: Record) -> Record:
        if config.contender == "nadam" and config.seed not in (0, TUNING_SEED):
            return replace(record, status="diverged", test={}, curve=record.curve[:2])
        stuck = config.task == "two_spirals"
        return replace(record, test={**record.test, "arrived": 0.0}) if stuck else record

    fill(tmp_path, studies, fate=lost)
    evidence = told(tmp_path, studies)
    solved, unsolved = evidence.smooth.tasks
    nadam = solved.contenders["nadam"]
    assert (nadam.median, nadam.diverged, nadam.to_target) == (None, 9, None)
    assert nadam.arrived == pytest.approx(0.1)
    assert solved.duels["nadam"].verdict == "ahead"
    # Where nobody arrives, losses compare failures: no verdict, and no part in any count.
    assert (solved.solved, unsolved.solved) == (True, False)
    assert {one.verdict for one in unsolved.duels.values()} == {"undecided"}
    assert sum(evidence.smooth.standings["reference"].values()) == 1
    assert evidence.smooth.best == {"hvadam": 1}
