"""The scores of the candidates for another step, from records that no run made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import write_packed
from hvadam_bench.running.records import PACKED, Point, Record, Role, Status, Store
from hvadam_bench.studies import Place
from hvadam_bench.studies._results import load
from hvadam_bench.studies.step_rule import measure as step_rule
from hvadam_bench.studies.step_rule import page
from hvadam_bench.studies.step_rule.measure import StepRule, score
from hvadam_bench.studies.step_rule.plan import NOISY, SMOOTH, plan
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.sweep import Sweep

ROOT = Path(__file__).parents[4]
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
    for study in plan().stages["step_rule_1"]:
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
    return Store(tmp_path / "runs", tmp_path / "results")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StepRule:
    """The scores of records of the whole first stage."""
    folder = tmp_path_factory.mktemp("step_rule")
    store = Store(folder / "runs", folder / "results")
    fill(store)
    return score(plan(), store)


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
    [stage, *_] = score(plan(), store).stages
    [one] = [s for s in stage.standings if s.entrant == BEST]
    assert one.mean == pytest.approx(math.log(10))


def test_unfinished_problems_are_named_and_left_out(store: Store) -> None:
    fill(store, but="two_spirals")
    [stage, *_] = score(plan(), store).stages
    assert stage.unfinished == ("two_spirals",)
    assert {one.problems for one in stage.standings} == {9}
    assert "two_spirals" in page.standings_table(stage).reading


def test_the_page_reports_the_scores(found: StepRule, tmp_path: Path) -> None:
    written, drawn = page.render({"step_rule": found}, tmp_path)
    text = written.read_text()
    assert "| HVAdam (trial) (c 0.5) | 0.711 |" in text
    assert "0.0014 (Adam)" in text  # the geometric mean of 1e-3 and 2e-3
    assert drawn.stat().st_size > 1000
    assert all(len(line) <= 100 for line in text.splitlines() if line[:1] not in "|!")


def test_only_planned_stages_run_and_all_are_scored(tmp_path: Path) -> None:
    sweeps: list[Sweep] = []
    place = Place(tmp_path, tmp_path / "runs", sweep=lambda own: not sweeps.extend(own))
    fill(Store(place.runs / "step_rule", place.results / "step_rule"))
    found = step_rule.measure(plan(stages=(2,)), place)["step_rule"]
    assert [one.contests[0].trials for one in sweeps] == [3] * 10
    assert [stage.name for stage in found.stages] == ["step_rule_1"]
    sweeps.clear()
    assert step_rule.measure(plan(records_only=True), place)["step_rule"] == found
    assert not sweeps


def test_committed_scores_follow_from_the_committed_records() -> None:
    packed = ROOT / "results" / "step_rule"
    found = score(plan(), Store(ROOT / "none", packed))
    assert found == load(StepRule, packed.with_suffix(".json"))
