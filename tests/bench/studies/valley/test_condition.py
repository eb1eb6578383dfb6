"""Valleys of growing condition numbers: the problems, rates side by side, convergence, fits."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hvadam_bench.contenders import create
from hvadam_bench.studies._results import load
from hvadam_bench.studies._study import ignore_progress
from hvadam_bench.studies.valley import page, race
from hvadam_bench.studies.valley.measure import Quadratics
from hvadam_bench.studies.valley.race import RACERS, RATES, Point
from hvadam_bench.studies.valley.result import Conditioning

ROOT = Path(__file__).parents[4]


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
