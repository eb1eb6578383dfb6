"""Data made by formulas."""

from __future__ import annotations

import math

import pytest
import torch

from hvadam_bench.problems.made_functions import low_rank_matrix, seen_entries, spirals, waves


def test_spirals_are_each_others_reflection() -> None:
    points, labels = spirals(20, 1.5)
    torch.testing.assert_close(points[:10], -points[10:])
    assert labels.tolist() == [0.0] * 10 + [1.0] * 10
    assert points.norm(dim=1).max() == pytest.approx(1)


def test_waves_add_up() -> None:
    x, y = waves(5, [1, 2])
    expected = [math.sin(math.pi * a) + math.sin(2 * math.pi * a) / 2 for a in x.flatten()]
    assert y.flatten().tolist() == pytest.approx(expected)


def test_matrices_have_the_rank_and_condition_asked_for() -> None:
    values = torch.linalg.svdvals(low_rank_matrix(12, 3, 100.0))
    assert values[:3].tolist() == pytest.approx([1.0, 0.1, 0.01])
    assert values[3:].max() < 1e-14


def test_entries_are_seen_all_over_the_matrix_and_always_the_same() -> None:
    seen = seen_entries(50, 0.3)
    assert torch.equal(seen, seen_entries(50, 0.3))
    assert seen.sum() == 750
    assert seen.sum(0).min() > 4
    assert seen.sum(1).min() > 4
