"""The scores of the candidates for another step, from records that no run made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench.pages import step_rule as page
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import write_packed
from hvadam_bench.running.records import PACKED, Point, Record, Role, Status, Store
from hvadam_bench.studies._results import from_json
from hvadam_bench.studies.step_rule import result as step_rule
from hvadam_bench.studies.step_rule.result import StepRule
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.recipes.step_rule import NOISY, SMOOTH

FIRST = "step_rule_1"
BEST = "hvadam_trial (c 0.5)"


def loss_of(config: RunConfig) -> float:
    """Return losses by which c = 0.5 halves Adam's on smooth problems and adds 1% on noisy ones.

    NAdam is the better reference on the noisy ones; AdEMAMix is far beyond the clip.
    """
    base = 1e-3 * (1 + config.seed % 10)
    smooth = config.task in SMOOTH
    if config.entrant == BEST:
        return base * (0.5 if smooth else 0.9 * 1.01)
    if config.contender == "nadam":
        return base * (2.0 if smooth else 0.9)
    return base * (1e3 if config.contender == "ademamix" else 1.0)


def fill(store: Store, loss: Callable[[RunConfig], float] = loss_of, but: str = "") -> None:
    """Pack records of all that the first stage asks for, except the judged ones of one problem."""
    assert store.packed is not None
    for study in recipes.get(FIRST).studies:
        runs: list[Record] = []
        for arm in study.arms():
            planned = arm.needed(Ledger(store))
            # The first rate tried is the best.
            runs += [made(p.config, 1.0 + 0.1 * i, "tuning") for i, p in enumerate(planned)]
            if study.task != but:
                judged = arm.judging(arm.trials[0].options)
                runs += [made(config, loss(config), "judged") for config in judged]
        lines = [run.to_line() for run in runs]
        write_packed(store.packed / f"{study.task}{PACKED}", lines)


def made(config: RunConfig, value: float, role: Role) -> Record:
    status: Status = "diverged" if math.isinf(value) else "done"
    point = Point(10, 320, 2.0, None, {"loss": value})
    return replace(
        made_record(value, config=config, metric="loss", status=status),
        role=role,
        curve=(point,) if status == "done" else (),
        environment={"versions": {"torch": "2"}},
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return step_rule.store_of(tmp_path / "runs", tmp_path / "results")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StepRule:
    """The scores of records of the whole first stage."""
    folder = tmp_path_factory.mktemp("step_rule")
    store = step_rule.store_of(folder / "runs", folder / "results")
    fill(store)
    return step_rule.measure(store)


def test_the_reference_is_the_better_of_adam_and_nadam_problem_by_problem(found: StepRule) -> None:
    [stage, *_] = found.stages
    assert {stage.references[task] for task in SMOOTH} == {"adam"}
    assert {stage.references[task] for task in NOISY} == {"nadam"}
    assert not stage.unfinished


def test_scores_are_means_of_clipped_log_ratios(found: StepRule) -> None:
    [stage, *_] = found.stages
    best, worst = stage.standings[0], stage.standings[-1]
    assert best.entrant == BEST
    assert best.smooth == pytest.approx(math.log(0.5))
    assert best.noisy == pytest.approx(math.log(1.01))
    assert best.mean == pytest.approx((math.log(0.5) + math.log(1.01)) / 2)
    assert best.worst == pytest.approx(math.log(1.01))
    assert best.worst_on in NOISY
    assert (best.ahead, best.problems, best.seeds) == (5, 10, 2)
    assert worst.entrant == "ademamix"
    assert worst.mean == pytest.approx(math.log(10))


def test_geometric_means_over_seeds_and_diverged_runs() -> None:
    assert step_rule.log_ratio([1e-6, 1e-2], [1e-4, 1e-4]) == pytest.approx(0)
    assert step_rule.log_ratio([1e-9, 1e-9], [1.0, 1.0]) == -step_rule.CLIP
    assert step_rule.log_ratio([math.inf, 1e-9], [1.0, 1.0]) == step_rule.CLIP
    assert step_rule.log_ratio([0.0], [1.0]) == -step_rule.CLIP


def test_diverged_runs_count_as_ten_times_the_loss(store: Store) -> None:
    def loss(config: RunConfig) -> float:
        return math.inf if config.entrant == BEST and config.seed == 1 else loss_of(config)

    fill(store, loss)
    [stage, *_] = step_rule.measure(store).stages
    [one] = [s for s in stage.standings if s.entrant == BEST]
    assert one.mean == pytest.approx(math.log(10))


def test_unfinished_problems_are_named_and_left_out(store: Store) -> None:
    fill(store, but="two_spirals")
    [stage, *_] = step_rule.measure(store).stages
    assert stage.unfinished == ("two_spirals",)
    assert {one.problems for one in stage.standings} == {9}
    assert "two_spirals" in page.standings_table(stage).reading


def test_the_result_round_trips_and_is_told(found: StepRule, tmp_path: Path) -> None:
    numbers, told, drawn = page.write(found, tmp_path / "results", tmp_path / "docs")
    assert from_json(StepRule, json.loads(numbers.read_text())) == found
    text = told.read_text()
    assert "| HVAdam (trial) (c 0.5) | 0.711 |" in text
    assert "0.0014 (Adam)" in text  # the geometric mean of 1e-3 and 2e-3
    assert drawn.stat().st_size > 1000
    assert all(len(line) <= 100 for line in text.splitlines() if line[:1] not in "|!")
