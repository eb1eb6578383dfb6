"""The page and the figures of the race on the toy functions, and the command that makes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from hvadam_bench import contenders
from hvadam_bench.cli import main
from hvadam_bench.pages.figures import encode_svg, save
from hvadam_bench.studies._results import load
from hvadam_bench.studies.valley import page, paths
from hvadam_bench.studies.valley.functions import Problem
from hvadam_bench.studies.valley.measure import plan
from hvadam_bench.studies.valley.result import PAPER_FOUR, Comparison

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def committed() -> Comparison:
    return load(Comparison, ROOT / "results" / "valley.json")


@pytest.fixture(scope="module")
def shown(committed: Comparison) -> str:
    return page.render_race(committed)


def test_the_page_links_every_figure(committed: Comparison, shown: str) -> None:
    assert "nan" not in shown
    linked = re.findall(r"\]\((figures/[^)]+)\)", shown)
    assert len(linked) >= 10
    for figure in linked:
        assert (ROOT / "docs" / figure).stat().st_size < 150_000
    drawn = {f"figures/valley-{name}.png" for name in page.draw_race(committed)}
    assert drawn <= set(linked)


def test_the_page_is_prose_of_at_most_100_signs(shown: str) -> None:
    lines = shown.splitlines()
    assert all(len(line) <= 100 for line in lines if not line.startswith(("|", "![")))
    assert not any(a == b == "" for a, b in pairwise(lines))
    heads = [above for above, line in pairwise(lines) if line.startswith("|--")]
    assert len(heads) == len([line for line in lines if line.startswith("|--")]) >= 7
    assert not any(line.endswith(" ") for line in lines)


def test_labels_on_the_page_are_those_for_people(shown: str) -> None:
    assert "| AdamW | common rate |" in shown
    assert not re.search(r"\b(adamw|rmsprop|sgd_ema|hvadam[012])\b", shown)


def test_the_table_of_verdicts_shows_shares(committed: Comparison, shown: str) -> None:
    rows = [line for line in shown.splitlines() if "| lowest at" in line]
    assert len(rows) == len(committed.functions)
    assert rows[0] == (
        "| f1 | lowest at the end | equal: SGD-EMA 100%, Adam 71%, AdaBelief 50% (equal) "
        "| **ahead**: SGD-EMA 96%, Adam 87%, AdaBelief 78% |"
    )


def test_maps_are_titled_by_rate_and_show_every_start(committed: Comparison) -> None:
    drawn = page.draw_maps(committed, "lowest")
    assert [axes.get_title() for axes in drawn.axes[:2]] == list(page.TITLES.values())
    across, along = committed.grid
    for axes in drawn.axes:
        [image] = axes.get_images()
        values = image.get_array()
        assert values is not None
        assert values.shape == (along, across)


def test_paths_end_where_the_runs_end() -> None:
    problem, start = Problem("f2"), np.array([0.5, 1.0])
    found = {name: paths.follow(problem, name, 1e-3, start, 30) for name in ("adam", "hvadam")}
    plane = paths.draw_paths(problem, found, 30).axes[0]
    ends = [line.get_xydata() for line in plane.lines if line.get_marker() == "s"]
    for end, path in zip(ends, found.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(end)[-1], path[-1, :2])


def test_all_are_everyone_but_the_trials_and_line_searches() -> None:
    searching = {name for name in contenders.names() if contenders.get(name).closure}
    everyone = plan(all=True)
    assert set(contenders.names()) - set(everyone.contenders) == {contenders.TRIAL, *searching}
    assert everyone.turned == (2, 10)
    assert plan().contenders == PAPER_FOUR
    assert plan(contenders=("sgd",), functions=("f1",)).contenders == ("sgd", *PAPER_FOUR)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--functions", "f1,f9"], ["function", "'f9'", "f1"]),
        (["--contenders", "adam,adamm"], ["contender", "'adamm'", "adam"]),
        (["--contenders", "lbfgs"], ["contender", "'lbfgs'"]),
        (["--contenders", "adam", "--all"], ["--all", "--contenders"]),
        (["--start", "1"], ["start", "two finite numbers", "got 1."]),
        (["--start", "nan,1"], ["start", "finite", "nan,1"]),
        (["--start", "1,inf"], ["start", "finite", "1,inf"]),
        (["--start", "1e3,1"], ["f4", "1e+09", "1e3,1"]),
        (["--steps", "0"], ["--steps", "got 0"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_arguments_give_one_line_and_write_nothing(
    arguments: list[str], named: list[str], refused: Callable[[list[str]], str]
) -> None:
    line = refused(["valley", *arguments])
    assert all(word in line for word in named), line


def test_paths_from_a_start_that_diverges_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heavy-ball from far out on Rosenbrock leaves at once."""
    texts: list[str] = []

    def save_and_read(figure: Figure, path: Path) -> Path:
        texts.append(encode_svg(figure, path.stem).decode())
        return save(figure, path)

    monkeypatch.setattr(paths, "save", save_and_read)
    options = ["--functions", "f4", "--contenders", "sgd", "--steps", "20"]
    assert main(["valley", *options, "--start", "-4,-4", "--out", str(tmp_path)]) == 0
    figure = tmp_path / "docs" / "figures" / "valley-f4.png"
    assert figure.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "SGD (diverged)" in texts[0]


@pytest.mark.slow
def test_a_small_study_from_the_command_line_resumes(tmp_path: Path) -> None:
    runs_at = tmp_path / "runs"
    arguments = ["valley", "--steps", "20", "--functions", "f1,f2", "--contenders", "fromage"]
    arguments += ["--out", str(tmp_path), "--runs", str(runs_at)]
    assert main(arguments) == 0
    results, shown = tmp_path / "results" / "valley.json", tmp_path / "docs" / "valley.md"
    before = results.read_bytes(), shown.read_bytes()
    runs = sorted(runs_at.rglob("*.npz"))
    times = [run.stat().st_mtime_ns for run in runs]
    runs[0].unlink()
    assert main(arguments) == 0
    assert (results.read_bytes(), shown.read_bytes()) == before
    assert sorted(runs_at.rglob("*.npz")) == runs
    assert [run.stat().st_mtime_ns for run in runs[1:]] == times[1:]
    linked = set(re.findall(r"\]\((figures/[^)]+)\)", shown.read_text(encoding="utf-8")))
    drawn = {f"figures/{path.name}" for path in (tmp_path / "docs" / "figures").iterdir()}
    assert linked <= drawn
