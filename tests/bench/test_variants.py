"""The paired study of low-bit state and the late step, small."""

from __future__ import annotations

import json
import math

import pytest

from hvadam.bench import digits, variants


def test_runs_are_paired_and_repeat() -> None:
    data = digits.load()
    one, again = (variants.train("MLP", "int8 state", 0, 1, data) for _ in range(2))
    assert one == again
    assert one.log_loss < math.log(2.3)


def test_difference_and_interval() -> None:
    runs = [
        variants.Run("MLP", variant, seed, base + gap, 0.5)
        for variant, gap in ((variants.EXACT, 0.0), ("late", 0.2))
        for seed, base in enumerate((1.0, 2.0, 4.0))
    ]
    runs[3] = variants.Run("MLP", "late", 0, 1.5, 0.5)  # gaps 0.5, 0.2, 0.2
    found = variants.difference(runs, "MLP", "late", "log_loss")
    assert found.n == 3
    assert found.mean == pytest.approx(0.3)
    assert found.high - found.mean == pytest.approx(4.3027 * 0.17320508 / math.sqrt(3), rel=1e-4)


def test_table_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        variants.Run(network, variant, seed, -3.0 + 0.1 * seed, 0.9)
        for network in variants.NETWORKS
        for variant in variants.VARIANTS
        for seed in range(3)
    ]
    assert variants.table(runs).row_count == 2 * (len(variants.VARIANTS) - 1)
    content = json.loads(variants.as_json(runs))
    assert len(content["differences"]) == 4 * (len(variants.VARIANTS) - 1)
    assert all(d["mean"] == 0 for d in content["differences"])
