"""The page and the figures of the race on the toy functions, and the command that makes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hvadam_bench import contenders
from hvadam_bench.cli import main, wiring
from hvadam_bench.pages.toy_functions import figures, page, paths
from hvadam_bench.studies.toy_functions.functions import Problem
from hvadam_bench.studies.toy_functions.paths import follow
from hvadam_bench.studies.toy_functions.result import Comparison

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def committed() -> Comparison:
    return Comparison.load(ROOT / "results" / "valley.json")


def test_the_page_is_what_the_results_say(committed: Comparison) -> None:
    shown = (ROOT / "docs" / "valley.md").read_text(encoding="utf-8")
    assert shown == page.render(committed)
    assert "nan" not in shown
    linked = re.findall(r"\]\((figures/[^)]+)\)", shown)
    assert len(linked) >= 10
    for figure in linked:
        assert (ROOT / "docs" / figure).stat().st_size < 150_000
    drawn = {f"figures/valley-{name}.png" for name in figures.draw_all(committed)}
    assert drawn <= set(linked)


def test_the_page_is_prose_of_at_most_100_signs(committed: Comparison) -> None:
    lines = page.render(committed).splitlines()
    assert all(len(line) <= 100 for line in lines if not line.startswith(("|", "![")))
    assert not any(a == b == "" for a, b in pairwise(lines))


def test_labels_on_the_page_are_those_for_people(committed: Comparison) -> None:
    shown = page.render(committed)
    assert "| AdamW | common rate |" in shown
    assert not re.search(r"\b(adamw|rmsprop|sgd_ema|hvadam[012])\b", shown)


def test_the_table_of_verdicts_shows_shares(committed: Comparison) -> None:
    rows = [[cell.text for cell in row] for row in page.tabulate_verdicts(committed).cells]
    assert len(rows) == 2 * len(committed.functions)
    assert rows[0][2] == "equal: SGD-EMA 100%, Adam 71%, AdaBelief 50% (equal)"
    assert rows[1][2] == "**ahead**: SGD-EMA >99%, Adam 98%, AdaBelief 99%"


def test_what_did_not_run_is_not_on_the_page(committed: Comparison) -> None:
    """A race of two in space: no maps, no angle, no verdicts on HVAdam."""
    f1 = committed.functions["f1"]
    two = ("sgd_ema", "adam")
    wins = {key: {name: shares[name] for name in two} for key, shares in f1.wins.items()}
    alone = replace(
        *(f1,),
        racers=two,
        dimension=3,
        map={},
        wins=wins,
        wins_of_all={},
        duels={},
        contenders={name: f1.contenders[name] for name in two},
    )
    found = replace(committed, functions={"f1-3d": alone}, angle={})
    shown = page.render(found)
    for heading in ("Does the claim hold", "Who wins where", "The angle", "contenders", "Figs. 1"):
        assert f"## {heading}" not in shown
    assert "| f1-3d | SGD-EMA | common rate |" in shown
    assert list(figures.draw_all(found)) == ["wins"]


def test_maps_are_titled_by_rate_and_show_every_start(committed: Comparison) -> None:
    drawn = figures.draw_maps(committed, "lowest")
    assert [axes.get_title() for axes in drawn.axes[:2]] == list(figures.TITLES.values())
    across, along = committed.grid
    for axes in drawn.axes:
        [image] = axes.get_images()
        values = image.get_array()
        assert values is not None
        assert values.shape == (along, across)


def test_paths_end_where_the_runs_end() -> None:
    found = follow(Problem.of("f2"), ["adam", "hvadam"], 30)
    plane = paths.draw(found).axes[0]
    ends = [line.get_xydata() for line in plane.lines if line.get_marker() == "s"]
    for end, one in zip(ends, found.traces.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(end)[-1], one.path[-1])


def test_everyone_races_but_the_trials_and_line_searches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raced: list[str] = []
    monkeypatch.setattr(wiring, "race", lambda problems, racers, *rest: raced.extend(racers))
    assert main(["valley", "--all", "--out", str(tmp_path)]) == 0
    searching = {name for name in contenders.names() if contenders.get(name).closure}
    assert set(contenders.names()) - set(raced) == {contenders.TRIAL, *searching}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--functions", "f1,f9"], ["--functions", "'f9'", "fig3"]),
        (["--contenders", "adam,adamm"], ["--contenders", "'adamm'", "hvadam"]),
        (["--contenders", "adam", "--all"], ["--all", "--contenders"]),
        (["--start", "1"], ["start", "two finite numbers", "got 1."]),
        (["--start", "nan,1"], ["start", "finite", "nan,1"]),
        (["--start", "1,inf"], ["start", "finite", "1,inf"]),
        (["--start", "1e3,1"], ["f4", "1e+09", "1e3,1"]),
        (["--start", "1,1", "--dimension", "3", "--functions", "f1"], ["plane"]),
        (["--angle", "nan"], ["angle", "nan"]),
        (["--angle", "400"], ["angle", "360", "400"]),
        (["--angle", "steep"], ["--angle", "steep"]),
        (["--dimension", "1"], ["dimension", "at least 2", "got 1"]),
        (["--dimension", "3"], ["f3", "even", "got 3"]),
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Heavy-ball from far out on Rosenbrock leaves at once."""
    options = ["--functions", "f4", "--contenders", "sgd,hvadam", "--steps", "20"]
    assert main(["valley", *options, "--start", "-4,-4", "--out", str(tmp_path)]) == 0
    figure = tmp_path / "docs" / "figures" / "valley-f4.png"
    assert figure.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {figure}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra",
    [[], ["--functions", "f1,f2", "--dimension", "4", "--contenders", "sgd,fromage,hvadam"]],
    ids=["paper", "4-D"],
)
def test_a_small_study_from_the_command_line_resumes(extra: list[str], tmp_path: Path) -> None:
    arguments = ["valley", "--steps", "20", "--out", str(tmp_path), *extra]
    assert main(arguments) == 0
    results, shown = tmp_path / "results" / "valley.json", tmp_path / "docs" / "valley.md"
    before = results.read_bytes(), shown.read_bytes()
    runs = sorted((tmp_path / "valley-runs").rglob("*.json"))
    times = [run.stat().st_mtime_ns for run in runs]
    runs[0].unlink()
    assert main(arguments) == 0
    assert (results.read_bytes(), shown.read_bytes()) == before
    assert sorted((tmp_path / "valley-runs").rglob("*.json")) == runs
    assert [run.stat().st_mtime_ns for run in runs[1:]] == times[1:]
    assert shown.read_text(encoding="utf-8") == page.render(Comparison.load(results))
    linked = set(re.findall(r"\]\((figures/[^)]+)\)", shown.read_text(encoding="utf-8")))
    drawn = {f"figures/{path.name}" for path in (tmp_path / "docs" / "figures").iterdir()}
    assert linked <= drawn
