"""The valley: exact gradients, starts that do not touch each other, and honest bookkeeping."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hvadam_bench.contenders import create, get, names
from hvadam_bench.studies import _results
from hvadam_bench.studies._results import load
from hvadam_bench.studies._study import ignore_progress
from hvadam_bench.studies.valley import page, race, result
from hvadam_bench.studies.valley.functions import FIELDS, FUNCTIONS, Array, Problem
from hvadam_bench.studies.valley.measure import ANGLES, Quadratics, run_heat
from hvadam_bench.studies.valley.page import best_other
from hvadam_bench.studies.valley.paths import follow
from hvadam_bench.studies.valley.race import RACERS, RATES, Point
from hvadam_bench.studies.valley.result import (
    OTHERS,
    REGIMES,
    Comparison,
    Conditioning,
    FunctionResult,
    Heat,
    Regime,
    judge_duels,
)

ROOT = Path(__file__).parents[4]


def beale(x: Tensor, y: Tensor) -> Tensor:
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


# As the paper writes them, for autograd.
PAPER = {
    "f1": lambda x, y: 4 * math.sqrt(2) * x.abs() + math.sqrt(2) / 10 * y.abs(),
    "f2": lambda x, y: 4 * (x - y).abs() + ((x + y) / 10).abs(),
    "f3": lambda x, y: torch.log(1 + beale(x, y)) / 10,
    "f4": lambda x, y: (1 - x) ** 2 + 100 * (y - x**2) ** 2,
    "fig3": lambda x, y: 4 * (x - y).abs() + (x + y).abs(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_the_papers_and_gradients_are_autograds(name: str) -> None:
    problem = Problem(name)
    points = problem.starts("sample")
    x = torch.from_numpy(points.copy()).requires_grad_()
    expected = PAPER[name](x[:, 0], x[:, 1])
    expected.sum().backward()
    loss, gradient = problem.evaluate(points)
    assert x.grad is not None
    np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-10, atol=1e-12)
    assert problem.evaluate(problem.minimiser[None])[0][0] == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("turned", "dimension"), [(17.0, 2), (0.0, 6), (-40.0, 6)])
def test_turned_functions_have_the_gradients_of_differences(
    name: str, turned: float, dimension: int
) -> None:
    problem = Problem(name, (turned,), dimension)
    points = problem.starts("sample")[:20]
    _, gradient = problem.evaluate(points)
    for i in range(dimension):
        step = np.zeros(dimension)
        step[i] = 1e-6
        difference = problem.evaluate(points + step)[0] - problem.evaluate(points - step)[0]
        np.testing.assert_allclose(difference / 2e-6, gradient[:, i], rtol=1e-4, atol=1e-4)
    assert problem.evaluate(problem.minimiser[None])[0][0] == pytest.approx(0, abs=1e-12)


def test_kinks_have_slope_zero_and_fig_3_its_two_gradients() -> None:
    corner = np.array([[0.7, 0.7], [0.0, 0.0]])
    _, gradient = Problem("f2").evaluate(corner)
    np.testing.assert_allclose(gradient, [[0.1, 0.1], [0.0, 0.0]], atol=1e-15)
    _, gradient = Problem("fig3").evaluate(np.array([[2.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_allclose(gradient, [[5, -3], [-3, 5]], rtol=1e-14)


def single_run(problem: Problem, name: str, lr: float, start: Array, steps: int) -> list[Array]:
    """What the contender's own optimizer does from one start, a plain vector; up to divergence."""
    spec = get(name)
    theta = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = create(name, [theta], **race.options_of(name, steps), lr=lr)
    path = []
    for _ in range(steps + 1):
        here = theta.detach().numpy().copy()
        loss, gradient = problem.evaluate(here[None])
        with spec.evaluation(optimizer):
            shown = theta.detach().numpy().copy()
        if not (loss[0] <= race.HUGE and problem.evaluate(shown[None])[0][0] <= race.HUGE):
            break
        path.append(shown)
        theta.grad = torch.from_numpy(gradient[0])
        optimizer.step()
    return path


def assert_rows_are_single_runs(problem: Problem, name: str, lr: float, rtol: float) -> int:
    steps, points = 40, problem.starts("grid")[::90]
    batch = [
        (x.copy(), loss.copy())
        for x, loss in islice(race.walk(problem, name, lr, points, steps), steps + 1)
    ]
    fallen = 0
    for i, start in enumerate(points):
        single = single_run(problem, name, lr, start, steps)
        for (x, _), alone in zip(batch, single, strict=False):
            np.testing.assert_allclose(x[i], alone, rtol=rtol, atol=0)
        after = [loss[i] for _, loss in batch[len(single) :]]
        assert np.isinf(after).all()
        fallen += bool(after)
    return fallen


@pytest.mark.parametrize("name", [name for name in names() if not get(name).closure])
def test_each_start_is_a_run_of_its_own(name: str) -> None:
    """Bit for bit in the plane; sums of six numbers may be added in another order."""
    assert_rows_are_single_runs(Problem("f2", (20.0,)), name, 1e-2, rtol=0)
    assert_rows_are_single_runs(Problem("f3", (20.0,), 6), name, 1e-2, rtol=1e-10)


@pytest.mark.parametrize(("name", "lr"), [("sgd", 1e-3), ("adai", 3e-3), ("swa", 1e-3)])
def test_a_start_that_diverges_stops_and_leaves_the_others_alone(name: str, lr: float) -> None:
    problem = Problem("f4")
    fallen = assert_rows_are_single_runs(problem, name, lr, rtol=0)
    outcome = race.run(problem, name, lr, problem.starts("grid")[::90], 40, 40)
    assert np.isinf(outcome.loss).sum() == (outcome.diverged >= 0).sum() == fallen
    assert not np.isnan(outcome.loss).any()
    assert 0 < fallen < len(outcome.loss)


def test_the_loss_at_the_end_does_not_depend_on_the_phase_of_a_cycle() -> None:
    """RMSprop hops from wall to wall of f2 through the minimum: every other loss is next to 0."""
    problem, start = Problem("f2"), np.array([[0.53, 1.17]])
    losses = follow(problem, "rmsprop", 0.3, start[0], 300)[:, 2]
    assert losses[-10:].min() < 1e-4 < 1 < losses[-10:].max()
    outcome = race.run(problem, "rmsprop", 0.3, start, 299, 300)
    np.testing.assert_allclose(outcome.loss, losses[290:300].mean(), rtol=1e-12)
    np.testing.assert_allclose(outcome.late_loss, losses[291:301].mean(), rtol=1e-12)
    assert race.run(problem, "rmsprop", 0.3, start, 1, 2).loss == pytest.approx(losses[:2].mean())


@pytest.mark.parametrize("name", ["adai", "fromage", "hvadam", "hvadam1", "hvadam2"])
def test_a_shared_statistic_would_be_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = dataclasses.replace(get(name), elementwise=True)
    monkeypatch.delitem(race.FORMS, name)
    monkeypatch.setattr(race, "get", lambda asked: shared)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_rows_are_single_runs(Problem("f4"), name, 1e-4, rtol=1e-9)


@pytest.mark.parametrize("dimension", [2, 10])
def test_many_angles_at_once_are_each_alone_and_averaged_momentum_does_not_see_them(
    dimension: int,
) -> None:
    fan = Problem("f2", ANGLES, dimension)
    every = race.run(fan, "sgd_ema", 1e-2, fan.starts("sample"), 100, 100).loss
    first = every[: len(every) // len(ANGLES)]
    for angle, losses in zip(ANGLES, np.split(every, len(ANGLES)), strict=True):
        part = Problem("f2", (angle,), dimension)
        alone = race.run(part, "sgd_ema", 1e-2, part.starts("sample"), 100, 100)
        np.testing.assert_allclose(losses, alone.loss, rtol=1e-9)
        np.testing.assert_allclose(losses, first, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_starts_to_choose_by_are_not_starts_to_report(name: str) -> None:
    problem = Problem(name)
    fields = [problem.starts(field) for field in FIELDS]
    assert len(fields[0]) >= 400
    everything = np.concatenate(fields)
    assert len(np.unique(everything, axis=0)) == len(everything)
    if name in ("f1", "f2", "fig3"):
        assert (np.abs(problem.evaluate(everything)[1]) > 1e-3).any(1).all()  # none on a kink


@pytest.mark.parametrize(
    ("best", "tried"),
    [(3e-3, (1e-4, 1e-1)), (3e-1, (1e-4, 1.0)), (1e-5, (3e-6, 1e-1)), (1e9, (1e-4, 1e4))],
)
def test_the_grid_of_rates_grows_until_the_best_is_inside(
    best: float, tried: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(problem: Any, name: str, lr: float, at: Array, steps: int, horizon: int) -> Any:
        loss = np.full(len(at), abs(math.log(lr / best)))
        never = np.full(len(at), -1)
        return race.Outcome(loss, loss, never, never)

    monkeypatch.setattr(race, "run", run)
    [found] = run_heat(Problem("f1"), "adam", "grid", 10, tmp_path)
    rates = list(found.tuning)
    assert (rates[0], rates[-1]) == tried
    assert found.lrs == {"common": 1e-3, "tuned": min(best, 1e4)}


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    real = race.run

    def run(*args: Any) -> Any:
        calls.append(args[2])
        return real(*args)

    monkeypatch.setattr(race, "run", run)
    problem = Problem("f4")
    [first] = run_heat(problem, "sgd", "sample", 20, tmp_path)
    assert len(calls) >= 8  # some of these rates diverge, and that is kept too
    assert min(first.tuning.values()) < math.inf == max(first.tuning.values())
    done = len(calls)
    [again] = run_heat(problem, "sgd", "sample", 20, tmp_path)
    assert len(calls) == done
    assert result.turn([again]) == result.turn([first])
    assert again.tuning == first.tuning

    kept = sorted(tmp_path.rglob("*.npz"))
    assert len(kept) == done
    kept[0].unlink()
    run_heat(problem, "sgd", "sample", 20, tmp_path)
    assert len(calls) == done + 1
    run_heat(problem, "sgd", "sample", 19, tmp_path)  # other settings
    assert len(calls) >= done + 1 + 8


def test_summaries_count_ties_failures_and_divergence() -> None:
    inf, nobody = math.inf, [-1, -1, -1, -1]
    losses = {
        "sgd_ema": [inf, inf, inf, inf],
        "adam": [1.0, 1e-13, inf, 2.0],
        "adabelief": [inf, inf, inf, inf],
        "hvadam": [0.5, 1e-15, inf, inf],
    }
    heats: dict[str, Heat] = {}
    for name, values in losses.items():
        diverged = [1 if x == inf else -1 for x in values]
        outcome = race.Outcome(*map(np.array, (values, values, nobody, diverged)))
        both: dict[Regime, race.Outcome] = {regime: outcome for regime in REGIMES}
        lrs: dict[Regime, float] = {regime: 1e-3 for regime in REGIMES}
        heats[name] = Heat(0.0, {1e-3: inf}, lrs, both)
    found = result.summarize(Problem("f1"), heats)
    last = {"sgd_ema": 0.0, "adabelief": 0.0}
    assert found.wins["common lowest"] == {"adam": 0.375, "hvadam": 0.375, **last}
    assert found.wins["tuned first"] == {"adam": 0.0, "hvadam": 0.0, **last}
    assert found.wins_of_all == {}
    assert found.duels["common lowest"]["hvadam"]["adam"] == 0.5
    assert found.contenders["hvadam"]["tuned"]["diverged"] == 2
    assert found.contenders["hvadam"]["tuned"]["loss"] == [1e-15, 0.5, None]
    assert found.map["common lowest"] == "d=-b"
    text = json.dumps(_results.to_json(found), allow_nan=False)
    assert _results.from_json(FunctionResult, json.loads(text)) == found


@pytest.mark.parametrize(
    ("adam", "sgd", "word"),
    [
        (0.9, 0.7, "ahead"),
        (0.9, 0.5, "equal"),
        (0.9, 0.46, "undecided"),
        (0.9, 0.3, "behind"),
        (0.5, 0.3, "behind"),
        (0.501, 0.499, "equal"),
    ],
)
def test_verdicts_are_those_of_the_sign_flips(adam: float, sgd: float, word: str) -> None:
    found = judge_duels((("adam", adam), ("sgd_ema", sgd)), 440)
    assert found.word == word
    assert {name: share for name, (share, _) in found.duels.items()} == {
        "adam": adam,
        "sgd_ema": sgd,
    }


def test_equal_racers_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(4)
    wins = rng.binomial(200, 0.5, (300, 3)) / 200
    said = [judge_duels(tuple(zip("abc", row, strict=True)), 200).duels.values() for row in wins]
    wrong = sum(any(word in ("ahead", "behind") for _, word in row) for row in said)
    assert wrong / len(wins) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(wins))


@pytest.fixture(scope="module")
def committed() -> Comparison:
    return _results.load(Comparison, ROOT / "results" / "valley.json")


def test_functions_are_sorted_by_verdict_and_rivals_by_how_often(committed: Comparison) -> None:
    found = committed.functions_by_verdict("common", "lowest")
    assert sorted(name for names in found.values() for name in names) == sorted(FUNCTIONS)
    for word, labels in found.items():
        assert all(
            committed.functions[one].verdict("common", "lowest").word == word for one in labels
        )
    ahead = committed.functions["f3"].ahead_of_ours("common")
    assert [share for _, share in ahead] == sorted((share for _, share in ahead), reverse=True)
    assert min(share for _, share in ahead) > 0.5


@pytest.mark.parametrize("end", [0, -1])
def test_the_best_other_of_the_paper_has_the_lowest_median(committed: Comparison, end: int) -> None:
    turn = committed.angle["2"]
    medians = {name: turn[name]["common"][end]["loss"][1] for name in OTHERS}
    name, found = best_other(turn, "common", end)
    assert found["loss"][1] == medians[name] == min(x for x in medians.values() if x is not None)


def test_a_full_disk_leaves_no_draft_of_a_heat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left on device") as full:
        run_heat(Problem("f2"), "adam", "grid", 3, tmp_path)
    assert str(full.value.filename).endswith(".npz")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# Valleys of growing condition numbers: the problems, rates side by side, convergence, fits.


def point(condition: float, steps: int | None, rate: float | None) -> Point:
    return {"condition": condition, "steps": steps, "rate": rate}


def test_valleys_have_their_condition_and_the_same_loss_along_every_axis() -> None:
    matrices, starts = race.valleys(1e4, 6)
    for matrix, start in zip(matrices, starts, strict=True):
        eigenvalues, axes = torch.linalg.eigh(matrix)
        assert (eigenvalues[-1] / eigenvalues[0]).item() == pytest.approx(1e4)
        along = axes.T @ start
        torch.testing.assert_close(eigenvalues * along**2, torch.ones_like(along))
        assert (matrix - matrix.diag().diag()).abs().max() > 1e-3  # turned


@pytest.mark.parametrize("racer", ["sgd", "adam", "nadam", "adabelief", "hvadam"])
def test_a_row_is_a_run_of_its_own_at_its_rate(racer: str) -> None:
    """All rates side by side are what one optimizer on one valley does at one of them."""
    matrices, starts = race.valleys(100.0, 4)
    seed, place = 2, RATES.index(1e-2)
    options: dict[str, Any] = {"eps": 1e-12} if racer == "adabelief" else {}
    x = torch.nn.Parameter(starts[seed].clone())
    optimizer = create(racer, [x], lr=1e-2, **options)
    expected = []
    for _ in range(30):
        x.grad = matrices[seed] @ x.detach()
        expected.append((x.detach() @ x.grad / 2).item())
        optimizer.step()
    found = [
        losses[seed, place].item() for losses in islice(race.walk_quadratics(racer, 100.0, 4), 30)
    ]
    assert found == pytest.approx([loss / expected[0] for loss in expected], rel=1e-9)


def test_steps_are_those_of_the_first_rate_at_which_most_valleys_converge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def walk(*_: object) -> list[Tensor]:
        losses = torch.ones(race.SEEDS, len(RATES))
        early, most = losses.clone(), losses.clone()
        early[:2, 3] = 0.0  # two of five are not most
        most[:3, 7] = race.CONVERGED
        return [losses, early, losses, most, losses]

    monkeypatch.setattr(race, "walk_quadratics", walk)
    assert race.converge("adam", 10.0, 4, most=9) == point(10.0, 3, RATES[7])
    assert race.converge("adam", 10.0, 4, most=2) == point(10.0, None, None)


def test_the_exponent_is_the_slope_of_what_converged() -> None:
    points = [point(10.0**k, round(7 * 10 ** (k / 2)), 0.1) for k in (2, 4, 6)]
    assert race.fit_exponent(points) == pytest.approx(0.5, abs=1e-6)
    assert race.fit_exponent([*points, point(1e7, None, None)]) == pytest.approx(0.5, abs=1e-6)
    assert race.fit_exponent(points[:2]) is None


def test_noise_leaves_more_of_the_loss() -> None:
    clean, noisy = (race.respond("adam", noise, 60)["left"] for noise in (0.0, 10.0))
    assert clean < noisy < 1
    assert math.isfinite(noisy)


def test_a_small_study_has_a_page_and_a_figure(tmp_path: Path) -> None:
    small = Quadratics((10.0, 100.0), (3,), most=300, noisy_steps=5)
    found = race.race_quadratics(small, ignore_progress, ["sgd", "hvadam"])
    text, figure = page.render({"condition": found}, tmp_path)
    assert "| HVAdam |" in text.read_text(encoding="utf-8")
    assert figure.stat().st_size > 1000


def test_the_committed_study_has_every_racer() -> None:
    found = load(Conditioning, ROOT / "results" / "condition.json")
    assert set(found.noise) == set(RACERS)
