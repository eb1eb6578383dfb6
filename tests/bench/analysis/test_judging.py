from __future__ import annotations

import math
from dataclasses import replace

import pytest
from made_records import made_record

from hvadam_bench import tasks
from hvadam_bench.analysis import judging
from hvadam_bench.analysis.effects import Judgement, Scale
from hvadam_bench.analysis.grouping import TaskResults, group
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record
from hvadam_bench.studies.evidence import plan as evidence
from hvadam_bench.studies.momentum.plan import PROBLEMS

SEEDS = range(10)
SMOOTH = Scale("factor", 1.25)


def runs(
    contender: str, factor: float, *, variant: str = "", arrived: bool | None = None, n: int = 10
) -> list[Record]:
    """Return runs whose losses spread widely over seeds, times a factor."""
    found = []
    for seed in range(n):
        config = RunConfig("digits_mlp", contender, "smoke", seed, {}, variant=variant)
        record = made_record(factor * 2.0 ** (seed % 5), config=config, metric="loss")
        told = {} if arrived is None else {"arrived": float(arrived)}
        found.append(replace(record, test={**record.test, **told}))
    return found


def results(*contenders: list[Record]) -> TaskResults:
    return group([record for own in contenders for record in own])[0]


def test_verdicts_are_paired_by_seed_and_corrected_for_the_field() -> None:
    task = results(runs("adam", 1.0), runs("hvadam", 0.5), runs("nadam", 1.01), runs("sgd", 3.0))
    found = judging.judge_against(task, "adam", SMOOTH)
    assert {name: one.verdict for name, one in found.items()} == {
        **{"hvadam": "ahead", "nadam": "equal", "sgd": "behind"},
    }
    ahead = found["hvadam"]
    assert ahead.effect.scale.told(ahead.effect.estimate) == pytest.approx(2)
    assert ahead.p == pytest.approx(3 * 2 / 2**10)
    assert found["sgd"].effect.estimate == pytest.approx(-math.log(3))
    assert judging.judge_against(task, "hvadam", SMOOTH)["adam"].verdict == "behind"
    # What is equal among smooth losses is a lead among mini-batches.
    assert judging.judge_against(task, "adam")["nadam"].verdict == "behind"


def test_a_task_says_what_matters_or_its_kind_does() -> None:
    assert judging.scale_of(results(runs("adam", 1.0))) == Scale("factor", 1.005)
    for smooth in (*evidence.SMOOTH, *(one.task_name for one in PROBLEMS if one.kind == "smooth")):
        own = [replace(one, config=replace(one.config, task=smooth)) for one in runs("adam", 1.0)]
        assert judging.scale_of(results(own)) == SMOOTH
    for minibatch in evidence.MINIBATCH:
        assert tasks.get(minibatch).smallest is None
    accuracies = [made_record(0.9 + seed / 100, seed=seed) for seed in range(5)]
    assert judging.scale_of(group(accuracies)[0]).margin == pytest.approx(0.003)
    own = [
        replace(one, config=replace(one.config, task="a_users_own")) for one in runs("adam", 1.0)
    ]
    assert judging.scale_of(results(own)).smallest == 1.005


def test_leaders_are_ahead_or_else_not_behind() -> None:
    def led(**factors: float) -> set[str]:
        task = results(*(runs(name, factor) for name, factor in factors.items()))
        return judging.leaders(task, "adam", judging.judge_against(task, "adam"))

    assert led(adam=1.0, nadam=0.5, sgd=2.0, radam=1.0) == {"nadam"}
    assert led(adam=1.0, sgd=2.0, radam=1.0) == {"adam", "radam"}
    assert led(adam=1.0, radam=1.0) == set()


def test_steps_of_the_ablation_are_judged_among_themselves() -> None:
    task = results(*(runs(name, 1.0) for name in ("adam", "sgd", "hvadam0", "hvadam1", "hvadam")))
    assert list(judging.judge_against(task, "hvadam0")) == ["hvadam1", "hvadam"]
    assert list(judging.judge_against(task, "adam")) == ["hvadam", "sgd"]


def test_few_seeds_decide_nothing() -> None:
    found = judging.judge_against(
        results(runs("adam", 1.0), runs("hvadam", 0.5, n=9)), "adam", SMOOTH
    )
    assert (found["hvadam"].verdict, found["hvadam"].reason) == ("undecided", "n < 10")


def test_a_task_that_nobody_solves_has_no_verdict() -> None:
    lost, won = (
        [runs("adam", 1.0, arrived=end), runs("hvadam", 0.5, arrived=end)] for end in (False, True)
    )
    assert judging.judge_against(results(*won), "adam", SMOOTH)["hvadam"].verdict == "ahead"
    found = judging.judge_against(results(*lost), "adam", SMOOTH)["hvadam"]
    assert (found.verdict, found.reason) == ("undecided", judging.UNSOLVED)


def test_who_is_not_finished_is_left_out() -> None:
    broken = [replace(one, status="failed") for one in runs("nadam", 1.0)[:1]]
    task = results(runs("adam", 1.0), runs("hvadam", 0.5), broken + runs("nadam", 0.1)[1:])
    assert set(judging.judge_against(task, "adam", SMOOTH)) == {"hvadam"}
    assert judging.judge_against(task, "nadam", SMOOTH) == {}
    assert judging.judge_against(task, "adamw", SMOOTH) == {}
    assert judging.best_of_family(task) == "adam"
    assert judging.best_of_all(task) == "hvadam"


def test_the_family_counts_its_variants_and_nobody_else() -> None:
    task = results(
        *(runs("adam", 1.0), runs("adam", 0.8, variant="beta1 0.95"), runs("nadam", 0.9)),
        *(runs("hvadam", 0.5), runs("muon", 0.3)),
    )
    assert judging.best_of_family(task) == "adam (beta1 0.95)"
    assert judging.best_of_all(task) == "muon"
    assert judging.best_of_family(results(runs("muon", 1.0))) is None


def test_the_noise_of_the_test_set_joins_accuracies() -> None:
    def accuracies(contender: str, value: float, *parts: float) -> list[Record]:
        configs = [RunConfig("digits_mlp", contender, "smoke", seed, {}) for seed in SEEDS]
        made = [made_record(value, config=config) for config in configs]
        return [replace(one, test_parts=parts) for one in made]

    def judged(*parts: float) -> Judgement:
        task = results(accuracies("adamw", 91.0, *[91.0] * len(parts)), ours(*parts))
        return judging.judge_against(task, "adamw")["hvadam"]

    def ours(*parts: float) -> list[Record]:
        return accuracies("hvadam", 91.5, *parts)

    assert judged().verdict == judged(91.5, 91.5).verdict == "ahead"
    told = judged(91.0, 92.0)  # all of it is in one half of the test set
    assert told.verdict == "undecided"
    assert told.effect.noise == pytest.approx(0.5)


def arriving(contender: str, seed: int, arrived: bool | None) -> Record:
    """Return a run that arrived, did not, or (None) diverged."""
    config = RunConfig("digits_mlp", contender, "smoke", seed, {})
    if arrived is None:
        return made_record(config=config, metric="loss", status="diverged")
    record = made_record(config=config, metric="loss")
    return replace(record, test={**record.test, "arrived": float(arrived)})


def arrival_results(**ends: list[bool | None]) -> TaskResults:
    runs = [arriving(name, seed, end) for name, own in ends.items() for seed, end in enumerate(own)]
    return group(runs)[0]


def test_runs_without_an_end_have_not_arrived() -> None:
    found = judging.arrivals(arrival_results(adam=[True, True, False, None], hvadam=[None, None]))
    assert found == {"adam": 0.5, "hvadam": 0.0}


def test_a_task_is_solved_if_someone_arrives_in_half_of_the_runs() -> None:
    assert judging.is_solved(arrival_results(adam=[True, False], hvadam=[False, False]))
    assert not judging.is_solved(
        arrival_results(adam=[True, False, False], hvadam=[None, False, False])
    )


def test_a_task_without_a_solution_counts_as_solved() -> None:
    results = group([made_record(0.5, metric="loss", seed=seed) for seed in range(3)])[0]
    assert judging.arrivals(results) == {}
    assert judging.is_solved(results)
