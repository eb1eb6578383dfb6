"""The page and the figures of the theorems, and the command that makes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hvadam_bench.cli import main
from hvadam_bench.studies import Place
from hvadam_bench.studies._results import load
from hvadam_bench.studies.theory import figures, fits, measure, nonconvex, page
from hvadam_bench.studies.theory.plan import plan
from hvadam_bench.studies.theory.result import Theory
from hvadam_bench.studies.theory.streams import Spikes

ROOT = Path(__file__).parents[4]
FIGURES = ("hidden-vector", "regret", "nonconvex")


@pytest.fixture(scope="module")
def committed() -> Theory:
    return load(Theory, ROOT / "results" / "theory.json")


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
    [first, *others] = committed.nonconvex.problems
    assert first.cases[0].printed
    printed = replace(first.cases[0].printed, holds=False)
    cases = (replace(first.cases[0], printed=printed), *first.cases[1:])
    broken = replace(
        committed,
        nonconvex=replace(committed.nonconvex, problems=(replace(first, cases=cases), *others)),
    )
    [row] = [line for line in page.render_page(broken).splitlines() if "**broken**" in line]
    assert row.startswith(f"| {first.name} | ")
    assert row.count("**broken**") == 1


def test_the_regret_of_every_variant_is_drawn(committed: Theory) -> None:
    drawn = figures.draw_regret(committed.regret)
    for axes, family in zip(drawn.axes, committed.regret.families, strict=True):
        curves = [np.asarray(line.get_ydata()) for line in axes.lines]
        for variant in family.variants:
            assert variant.curve
            assert any(np.array_equal(curve, variant.curve.mean) for curve in curves)


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "RESAMPLES", 5)


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
    monkeypatch.setattr(Spikes, "steepest", math.inf)
    [found] = measure.measure(plan(smoke=True), Place(tmp_path, tmp_path)).values()
    page.render({"theory": found}, tmp_path)
    text = (tmp_path / "docs" / "theory.md").read_text(encoding="utf-8")
    waves, spikes = found.nonconvex.problems[0], found.regret.family("spikes")
    assert {case.curve for case in (*waves.cases, *spikes.variants)} == {None}
    assert {case.corrected for case in waves.cases} == {None}
    assert "| waves | " in text
    assert "| spikes | theorem | diverged |" in text
    assert not {"nan", "inf"} & set(text.lower().replace("|", " ").split())
    assert "diverged: 10 of 34" in page.summarize({"theory": found})


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
