"""Valleys of growing condition numbers: the problems, the rates side by side, arrivals and fits."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hvadam_bench.contenders import create
from hvadam_bench.pages.toy_functions import condition as page
from hvadam_bench.studies.toy_functions import condition
from hvadam_bench.studies.toy_functions.condition import RACERS, RATES, Conditioning, Point

REPOSITORY = Path(__file__).parents[3]


def test_valleys_have_their_condition_and_the_same_loss_along_every_axis() -> None:
    matrices, starts = condition.valleys(1e4, 6)
    for matrix, start in zip(matrices, starts, strict=True):
        eigenvalues, axes = torch.linalg.eigh(matrix)
        assert (eigenvalues[-1] / eigenvalues[0]).item() == pytest.approx(1e4)
        along = axes.T @ start
        torch.testing.assert_close(eigenvalues * along**2, torch.ones_like(along))
        assert (matrix - matrix.diag().diag()).abs().max() > 1e-3  # turned


@pytest.mark.parametrize("racer", ["sgd", "adam", "nadam", "adabelief", "hvadam"])
def test_a_row_is_a_run_of_its_own_at_its_rate(racer: str) -> None:
    """All rates side by side are what one optimizer on one valley does at one of them."""
    matrices, starts = condition.valleys(100.0, 4)
    seed, place = 2, RATES.index(1e-2)
    options: dict[str, Any] = {"eps": 1e-12} if racer == "adabelief" else {}
    x = torch.nn.Parameter(starts[seed].clone())
    optimizer = create(racer, [x], lr=1e-2, **options)
    expected = []
    for _ in range(30):
        x.grad = matrices[seed] @ x.detach()
        expected.append((x.detach() @ x.grad / 2).item())
        optimizer.step()
    found = [losses[seed, place].item() for losses in islice(condition._walk(racer, 100.0, 4), 30)]
    assert found == pytest.approx([loss / expected[0] for loss in expected], rel=1e-9)


def test_arrivals_are_those_of_the_first_rate_that_most_valleys_arrive_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def walk(*_: object) -> list[Tensor]:
        losses = torch.ones(condition.SEEDS, len(RATES))
        early, most = losses.clone(), losses.clone()
        early[:2, 3] = 0.0  # two of five are not most
        most[:3, 7] = condition.ARRIVED
        return [losses, early, losses, most, losses]

    monkeypatch.setattr(condition, "_walk", walk)
    assert condition.arrive("adam", 10.0, 4, most=9) == Point(10.0, 3, RATES[7])
    assert condition.arrive("adam", 10.0, 4, most=2) == Point(10.0, None, None)


def test_the_exponent_is_the_slope_of_what_arrived() -> None:
    points = [Point(10.0**k, round(7 * 10 ** (k / 2)), 0.1) for k in (2, 4, 6)]
    assert condition._exponent(points) == pytest.approx(0.5, abs=1e-6)
    assert condition._exponent([*points, Point(1e7, None, None)]) == pytest.approx(0.5, abs=1e-6)
    assert condition._exponent(points[:2]) is None


def test_noise_leaves_more_of_the_loss() -> None:
    clean, noisy = (condition.respond("adam", noise, 60) for noise in (0.0, 10.0))
    assert clean.left < noisy.left < 1
    assert math.isfinite(noisy.left)


def test_a_small_study_round_trips_and_is_told(tmp_path: Path) -> None:
    found = condition.measure(["sgd", "hvadam"], (10.0, 100.0), (3,), most=300, noisy_steps=5)
    for folder in ("results", "docs/figures"):
        (tmp_path / folder).mkdir(parents=True)
    results, text, figure = page.write(found, tmp_path)
    assert Conditioning.load(results) == found
    assert "| HVAdam |" in text.read_text(encoding="utf-8")
    assert figure.stat().st_size > 1000


def test_the_page_is_up_to_date() -> None:
    found = Conditioning.load(REPOSITORY / "results" / "condition.json")
    committed = (REPOSITORY / "docs" / "condition.md").read_text(encoding="utf-8")
    assert page.render_page(found) == committed
    assert set(found.noise) == set(RACERS)
