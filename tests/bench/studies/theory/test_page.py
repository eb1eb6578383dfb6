"""The page and the figures of the theorems, what its sentences claim, and its command."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hvadam_bench.cli import main
from hvadam_bench.studies import Place
from hvadam_bench.studies._results import load, to_json
from hvadam_bench.studies.theory import measure, nonconvex, page, regret, result, rounded
from hvadam_bench.studies.theory.plan import plan
from hvadam_bench.studies.theory.result import Theory

ROOT = Path(__file__).parents[4]
FIGURES = ("hidden-vector", "regret", "nonconvex")


@pytest.fixture(scope="module")
def committed() -> Theory:
    return load(Theory, ROOT / "results" / "theory.json")


def test_the_committed_numbers_are_rounded(committed: Theory) -> None:
    assert rounded(to_json(committed)) == to_json(committed)


def test_the_summary_counts_what_holds(committed: Theory) -> None:
    assert list(page.summarize({"theory": committed})) == [
        "Hidden vector (appendix B): holds in part; 4 of 9 within √(2π)σ/T",
        "Regret (appendix C): vacuous in part; 8 of 8 within the corrected bound",
        "Non-convex rate (appendix D): vacuous; 6 of 6 within the corrected bound",
        "diverged: 0 of 34",
    ]


def test_the_hidden_vector_is_what_the_page_says(committed: Theory) -> None:
    """The page's sentences are typed, though its numbers are not."""
    for case in committed.hidden_vector["cases"]:
        found, kind, dimension = case["measured"], case["kind"], case["dimension"]
        reaches = kind != "average"
        soon = kind == "independent" or dimension == 2
        assert found["within_bound"] == (reaches and soon)
        assert (found["distance"][-1] < 0.05) == reaches
        assert found["exact"] == (reaches and dimension == 2)
        assert found["norm_claims_broken"] == 0
        if kind == "independent" and dimension > 2:
            assert found["slope"]["high"] < -1  # faster than the theorem
            assert found["rate"] == pytest.approx(found["rate_predicted"], rel=0.1)


def test_regret_is_what_the_page_says(committed: Theory) -> None:
    study = committed.regret
    assert study["rounds"] == 100_000
    for family in study["families"]:
        constant, decaying, no_maximum = (one["curve"]["slope"] for one in family["variants"])
        empty, loose, _ = family["variants"]
        for proof in (empty["proof"], loose["proof"]):
            assert proof["within_sums"]
            assert proof["printed"]["holds"]
            assert proof["corrected"]["holds"]
        assert max(constant, decaying) < 1
        assert empty["proof"]["printed"]["total"][-1] > 1000 * empty["constants"]["trivial"]
        if family["name"] == "signs":
            assert loose["proof"]["corrected"]["total"][-1] < loose["constants"]["trivial"]
        if family["name"] == "spikes":
            assert min(no_maximum, study["adam_on_spikes"]["slope"]) > 0.95
            assert max(constant, decaying) < 0.9
        else:
            assert all(0.4 < slope < 0.55 for slope in (constant, decaying))
    seen = [one["constants"] for family in study["families"] for one in family["variants"][:2]]
    assert any(one["hidden_max"] > one["hidden_max_printed"] for one in seen)


def test_nonconvex_problems_are_what_the_page_says(committed: Theory) -> None:
    for problem in committed.nonconvex["problems"]:
        low, high = problem["extremes"]
        assert problem["least"] <= low
        assert high <= problem["most"]
        fast = [one["curve"]["mean"][-1] for one in problem["cases"] if not one["printed"]]
        assert fast == sorted(fast)  # the faster the smaller k
        assert len(fast) == 3
        for case in problem["cases"]:
            slope, bounds = case["curve"]["slope"], (case["printed"], case["corrected"])
            assert (case["printed"] is not None) == (case["rate"] == "allowed")
            if all(bounds):
                assert all(one["holds"] and one["useful_from"] > 12 for one in bounds)
                assert abs(slope["value"]) < 0.1
            else:
                assert slope["high"] < 0
                late = problem["name"] == "committee" and case["k"] == 0.75
                assert (slope["value"] <= case["k"] - 1) != late


def test_the_page_shows_every_figure(committed: Theory) -> None:
    text = page.render_page(committed)
    for name in FIGURES:
        assert f"(figures/theory-{name}.png)" in text
        assert (ROOT / "docs" / "figures" / f"theory-{name}.png").stat().st_size < 120_000


def test_the_page_is_prose_of_at_most_100_signs(committed: Theory) -> None:
    lines = page.render_page(committed).splitlines()
    assert all(len(line) <= 100 for line in lines if not line.startswith("|"))
    assert not any("{{" in line or "{%" in line or line.endswith(" ") for line in lines)
    tables = [above for above, line in pairwise(lines) if line.startswith("|--")]
    assert len(tables) == 7


def test_a_bound_that_was_broken_is_marked(committed: Theory) -> None:
    assert "**broken**" not in page.render_page(committed)
    broken: Any = copy.deepcopy(committed)
    first = broken.nonconvex["problems"][0]
    first["cases"][0]["printed"]["holds"] = False
    [row] = [line for line in page.render_page(broken).splitlines() if "**broken**" in line]
    assert row.startswith(f"| {first['name']} | ")
    assert row.count("**broken**") == 1


def test_the_regret_of_every_variant_is_drawn(committed: Theory) -> None:
    drawn = page.draw_regret(committed.regret)
    for axes, family in zip(drawn.axes, committed.regret["families"], strict=True):
        curves = [np.asarray(line.get_ydata()) for line in axes.lines]
        for variant in family["variants"]:
            assert any(np.array_equal(curve, variant["curve"]["mean"]) for curve in curves)


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result, "RESAMPLES", 5)


@pytest.mark.usefixtures("few_resamples")
def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--smoke", "--out", str(tmp_path)]) == 0
    printed, errors = capsys.readouterr()
    written = [tmp_path / "results" / "theory.json", tmp_path / "docs" / "theory.md"]
    written += [tmp_path / "docs" / "figures" / f"theory-{name}.png" for name in FIGURES]
    assert errors == ""
    assert printed.splitlines()[-5:] == [f"wrote {path}" for path in written]
    assert "diverged: 0 of 34" in printed
    assert written[1].read_text(encoding="utf-8") == page.render_page(load(Theory, written[0]))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written[2:])


@pytest.mark.usefixtures("few_resamples")
def test_divergence_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        nonconvex.Waves, "gradients", lambda self, theta, weights: (theta * 1e200,) * 2
    )
    monkeypatch.setattr(regret, "SPIKE", math.inf)
    [found] = measure(plan(smoke=True), Place(tmp_path, tmp_path)).values()
    page.render({"theory": found}, tmp_path)
    text = (tmp_path / "docs" / "theory.md").read_text(encoding="utf-8")
    waves, spikes = found.nonconvex["problems"][0]["cases"], found.regret["families"][-1]
    assert not any(one["curve"] for one in (*waves, *spikes["variants"]))
    assert not any(one["corrected"] for one in waves)
    assert "| waves | " in text
    assert "| spikes | theorem | diverged |" in text
    assert not {"nan", "inf"} & set(text.lower().replace("|", " ").split())
    assert "diverged: 10 of 34" in page.summarize({"theory": found})
