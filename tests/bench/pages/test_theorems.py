"""The page and the figures of the theorems, and the command that makes them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hvadam_bench.cli import main
from hvadam_bench.cli.wiring import measure_theorems
from hvadam_bench.pages.theorems import figures, page
from hvadam_bench.studies.theorems import hidden_vector, nonconvex
from hvadam_bench.studies.theorems.result import Theory
from hvadam_bench.studies.theorems.streams import Spikes

ROOT = Path(__file__).parents[3]
FIGURES = ("hidden-vector", "regret", "nonconvex")


@pytest.fixture(scope="module")
def committed() -> Theory:
    return Theory.load(ROOT / "results" / "theory.json")


def test_the_page_shows_the_results(committed: Theory) -> None:
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert text == page.render(committed)
    for name in FIGURES:
        assert f"(figures/theory-{name}.png)" in text
        assert (ROOT / "docs" / "figures" / f"theory-{name}.png").stat().st_size < 120_000


def test_the_page_is_prose_of_at_most_100_signs(committed: Theory) -> None:
    lines = page.render(committed).splitlines()
    assert all(len(line) <= 100 for line in lines if not line.startswith("|"))
    assert not any("{{" in line or "{%" in line for line in lines)


def test_a_bound_that_was_broken_is_marked(committed: Theory) -> None:
    case = committed.nonconvex.cases[0]
    assert case.printed
    assert case.curve
    broken = page._bound(nonconvex.NonconvexBound(case.printed.values, False, 1.0))
    assert broken == f"{page._bound(case.printed)} **broken**"


def test_the_regret_of_every_variant_is_drawn(committed: Theory) -> None:
    drawn = figures.draw_regret(committed.regret)
    for axes, family in zip(drawn.axes, committed.regret.families, strict=True):
        curves = [np.asarray(line.get_ydata()) for line in axes.lines]
        for variant in family.variants:
            assert variant.curve
            assert any(np.array_equal(curve, variant.curve.mean) for curve in curves)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RUNS", 20), ("STEPS", 100)):
        monkeypatch.setattr(hidden_vector, name, value)
    monkeypatch.setattr("hvadam_bench.studies.theorems.fits.RESAMPLES", 5)


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
    assert written[1].read_text(encoding="utf-8") == page.render(Theory.load(written[0]))
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
    measure_theorems(20, tmp_path, Console(file=output))
    text = (tmp_path / "docs" / "theory.md").read_text(encoding="utf-8")
    found = Theory.load(tmp_path / "results" / "theory.json")
    waves, spikes = found.nonconvex.problems[0], found.regret.family("spikes")
    assert {case.curve for case in (*waves.cases, *spikes.variants)} == {None}
    assert {case.corrected for case in waves.cases} == {None}
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
