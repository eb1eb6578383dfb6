"""The study of the theorems: its problems, its bounds, its page, and the claims that page makes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hvadam.bench import theory
from hvadam.bench.cli import main
from hvadam.bench.theory import hidden_vector, nonconvex, page, regret
from hvadam.bench.theory.fits import interval, power
from hvadam.bench.theory.nonconvex import SAMPLES, Constants
from hvadam.bench.theory.streams import DIMENSION, STREAMS, Spikes

ROOT = Path(__file__).parents[2]
STUDIES = ("hidden_vector", "regret", "nonconvex")


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    return json.loads((ROOT / "results" / "theory.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_results(committed: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert text == page.render(committed)
    for name in ("hidden-vector", "regret", "nonconvex"):
        assert f"(figures/theory-{name}.png)" in text
        assert (ROOT / "docs" / "figures" / f"theory-{name}.png").stat().st_size < 120_000


def test_the_results_say_what_the_page_says(committed: dict[str, Any]) -> None:
    """Its sentences are typed, though its numbers are not."""
    b, c, d = (committed[name] for name in STUDIES)
    for case in b["cases"]:
        reaches = case["kind"] != "average"
        soon = case["kind"] == "independent" or case["dimension"] == 2
        assert case["within_bound"] == (reaches and soon)
        assert (case["distance"][-1] < 0.05) == reaches
        assert case["exact"] == (reaches and case["dimension"] == 2)
        assert case["norm_claims_broken"] == 0
        if case["kind"] == "independent" and case["dimension"] > 2:
            assert case["slope"]["high"] < -1  # faster than the theorem
            assert case["rate"] == pytest.approx(case["rate_predicted"], rel=0.1)

    assert c["rounds"] == 100_000
    for family in c["families"]:
        constant, decaying, no_maximum = family["variants"]
        for variant in (constant, decaying):
            assert variant["within_sums"]
            assert variant["printed"]["holds"]
            assert variant["corrected"]["holds"]
            assert variant["slope"] < 1
        assert constant["printed"]["total"][-1] > 1000 * constant["trivial"]
        if family["name"] == "signs":
            assert decaying["corrected"]["total"][-1] < decaying["trivial"]
        if family["name"] == "spikes":
            assert min(no_maximum["slope"], c["adam_on_spikes"]["slope"]) > 0.95
            assert max(constant["slope"], decaying["slope"]) < 0.9
        else:
            assert all(0.4 < variant["slope"] < 0.55 for variant in (constant, decaying))
    seen = [v for family in c["families"] for v in family["variants"][:2]]
    assert any(v["hidden_max"] > v["hidden_max_printed"] for v in seen)

    for problem in d["problems"]:
        low, high = problem["extremes"]
        assert problem["least"] <= low
        assert high <= problem["most"]
        fast = [case["mean"][-1] for case in problem["cases"] if case["rate"] == "hundredfold"]
        assert fast == sorted(fast)  # the faster the smaller k
        for case in problem["cases"]:
            if case["rate"] == "allowed":
                assert case["printed_holds"]
                assert case["corrected_holds"]
                assert min(case["printed_useful_from"], case["corrected_useful_from"]) > 12
                assert abs(case["slope"]["value"]) < 0.1
            else:
                assert case["slope"]["high"] < 0
                late = problem["name"] == "committee" and case["k"] == 0.75
                assert (case["slope"]["value"] <= case["k"] - 1) != late


@pytest.mark.parametrize("family", STREAMS)
def test_families_are_convex_and_hindsight_is_best(family: type[Any]) -> None:
    rounds, seeds = 700, 2
    stream, rng = family(rounds, seeds), np.random.default_rng(0)
    best, least = stream.best(rounds)
    others = np.concatenate(
        [rng.uniform(-1, 1, size=(30, seeds, DIMENSION)), best + 0 * best[None]]
    )
    others[:10] = np.clip(best + 0.01 * rng.normal(size=others[:10].shape), -1, 1)
    total = np.zeros(others.shape[:2])
    for t in range(rounds):
        loss, g = stream.play(t, others)
        total += loss
        assert abs(g).max() <= family.steepest
        under = loss + ((np.roll(others, 1, axis=0) - others) * g).sum(-1)
        assert (under <= np.roll(loss, 1, axis=0) + 1e-9).all()
    assert abs(best).max() <= 1
    np.testing.assert_allclose(total[-1], least, rtol=1e-9)
    assert (total >= least - 1e-6 * abs(least)).all()


def test_regret_stays_under_the_sums_and_each_sum_under_its_term() -> None:
    content = regret.study(rounds=400, seeds=2)
    for family in content["families"]:
        for variant in family["variants"][:2]:
            assert variant["within_sums"]
            terms = variant["corrected"]["terms"]
            for name, total in variant["sums"].items():
                assert total <= sum(x for term, x in terms.items() if term[0] == name)
            assert sum(terms.values()) == pytest.approx(variant["corrected"]["total"][-1])
        assert family["variants"][0]["regret"] != family["variants"][1]["regret"]


def test_the_corollary_majorizes_the_sum_it_replaces() -> None:
    t = np.arange(1, 2001)
    for decay in (0.5, 0.9, 0.99):
        total = np.cumsum(np.sqrt(t) * 0.9 * decay ** (t - 1))
        assert (total <= regret.weighted_beta1(t, 0.9, decay)).all()
    np.testing.assert_allclose(regret.weighted_beta1(t, 0.9, 1.0), np.cumsum(0.9 * np.sqrt(t)))


def test_adam_forgets_the_spikes() -> None:
    times = np.array([3000, 12000])
    stream = Spikes(12000, 2)
    paid = regret.play_adam(stream, times, 2)
    gap = paid - [stream.best(int(t))[1] for t in times]
    assert (gap[1] / gap[0] > 3.5).all()  # linear: 4


def _waves(problem: Any, theta: np.ndarray) -> float:
    return float((1 - np.cos(problem.a @ theta + problem.phase)).mean())


def _committee(problem: Any, theta: np.ndarray) -> float:
    output = np.tanh(problem.x @ theta.reshape(3, -1).T).mean(-1)
    return float(((output - problem.y) ** 2).mean() / 2)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [(nonconvex.Waves, _waves), (nonconvex.Committee, _committee)],
    ids=["waves", "committee"],
)
def test_problems_meet_the_assumptions(kind: type[Any], loss: Any) -> None:
    problem, rng = kind(), np.random.default_rng(0)
    points = 3 * rng.normal(size=(50, nonconvex.DIMENSION))
    weights = np.eye(SAMPLES)[rng.integers(SAMPLES, size=50)]
    full, single = problem.gradients(points, weights)
    assert abs(single).max() <= problem.steepest
    np.testing.assert_allclose(problem.gradients(points, np.ones(SAMPLES) / SAMPLES)[1], full)
    for theta, g in zip(points, full, strict=True):
        assert 0 <= loss(problem, theta) <= problem.ceiling
        direction = rng.normal(size=theta.shape)
        ahead, behind = (loss(problem, theta + h * direction) for h in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx(g @ direction, abs=1e-8)
        near = theta + 0.1 * direction
        change = np.linalg.norm(problem.gradients(near, weights[0])[0] - g)
        assert change <= problem.lipschitz * np.linalg.norm(near - theta)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_bound_falls_at_its_rate(corrected: bool) -> None:
    constants = Constants(lipschitz=1.0, steepest=1.0, ceiling=2.0, least=0.5, most=2.0)
    for k in (0.6, 0.75):
        far = [float(nonconvex.bound(10.0**e, k, constants, corrected=corrected)) for e in (60, 62)]
        assert math.log10(far[1] / far[0]) / 2 == pytest.approx(k - 1, abs=0.01)
    scaled = [
        float(nonconvex.bound(10.0**e, 0.5, constants, corrected=corrected)) * 10 ** (e / 2)
        for e in (60, 120, 180)
    ]
    assert scaled[1] - scaled[0] == pytest.approx(scaled[2] - scaled[1])  # linear in log T
    assert scaled[1] > scaled[0]
    start = nonconvex.useful_from(0.5, constants, corrected=corrected)
    values = [
        float(nonconvex.bound(10.0**e, 0.5, constants, corrected=corrected))
        for e in (start - 0.01, start + 0.01)
    ]
    assert values[0] > nonconvex.DIMENSION > values[1]


def test_fits_recover_what_made_the_data() -> None:
    t = np.array([1.0, 10.0, 100.0, 1000.0])
    samples = t**-0.7 * np.random.default_rng(0).uniform(0.5, 1.5, size=(200, 4))
    fit = interval(samples, lambda mean: power(t, mean, t > 0))
    assert fit is not None
    assert fit["low"] < -0.7 < fit["high"]
    assert power(t, np.array([1.0, 0.0, 1.0, 1.0]), t > 0) is None


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RUNS", 20), ("STEPS", 100)):
        monkeypatch.setattr(hidden_vector, name, value)
    monkeypatch.setattr("hvadam.bench.theory.fits.RESAMPLES", 5)


@pytest.mark.usefixtures("small")
def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--rounds", "100", "--out", str(tmp_path)]) == 0
    printed, errors = capsys.readouterr()
    names = ("hidden-vector", "regret", "nonconvex")
    written = [tmp_path / "results" / "theory.json", tmp_path / "docs" / "theory.md"]
    written += [tmp_path / "docs" / "figures" / f"theory-{name}.png" for name in names]
    assert errors == ""
    assert printed.splitlines()[-5:] == [f"wrote {path}" for path in written]
    assert "diverged: 0 of 34" in printed
    content = json.loads(written[0].read_text(encoding="utf-8"))
    assert written[1].read_text(encoding="utf-8") == page.render(content)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written[2:])


@pytest.mark.usefixtures("small")
def test_divergence_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        nonconvex.Waves, "gradients", lambda self, theta, weights: (theta * 1e200,) * 2
    )
    monkeypatch.setattr(Spikes, "steepest", math.inf)
    (tmp_path / "results").mkdir()
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    output = io.StringIO()
    theory.study(20, tmp_path, Console(file=output))
    text = (tmp_path / "docs" / "theory.md").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "results" / "theory.json").read_text(encoding="utf-8"))
    waves, spikes = content["nonconvex"]["problems"][0], content["regret"]["families"][3]
    assert {case["status"] for case in [*waves["cases"], *spikes["variants"]]} == {"diverged"}
    assert "| waves | " in text
    assert "| spikes | theorem | diverged |" in text
    assert not {"nan", "inf"} & set(text.lower().replace("|", " ").split())
    assert "diverged: 10 of 34" in output.getvalue()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--rounds", "0"], ["--rounds", "0"]),
        (["--rounds", "few"], ["--rounds", "few"]),
        (["--out", "file"], ["--out", "file"]),
        (["more"], ["more"]),
    ],
    ids=" ".join,
)
def test_bad_arguments_give_one_line(
    arguments: list[str],
    named: list[str],
    tmp_path: Path,
    refused: Callable[[list[str]], str],
) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused(["theory", *arguments])
    assert all(word in line for word in named), line
