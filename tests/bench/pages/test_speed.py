"""The tables, notes and charts of step times, and the command that makes them."""

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from made_timings import TINY, made_measurement, made_speed, made_timing
from matplotlib.image import imread
from matplotlib.lines import Line2D
from rich.console import Console

from hvadam import HVAdam
from hvadam_bench.cli import wiring
from hvadam_bench.pages.speed import figures
from hvadam_bench.pages.speed.tables import list_growth, list_notes, tabulate
from hvadam_bench.studies.speed.contenders import EXACT, REFERENCE, Contender
from hvadam_bench.studies.speed.result import Growth, Plan, Skip, Speed
from hvadam_bench.studies.speed.shapes import Shape, equal_parts


def printed(what: object) -> str:
    """Return the text that a terminal of 80 columns shows."""
    console = Console(file=io.StringIO(), width=80)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def test_table_shows_every_number_within_80_columns() -> None:
    measured = made_measurement(TINY, [made_timing("x" * 27, 123.456, TINY)])
    text = printed(tabulate(made_speed(), measured).terminal())
    [row] = [line for line in text.splitlines() if line.startswith(" xxx")]
    assert " ".join(row.split()[1:]) == "123456 123 (92.6 to 185) 1.71 0.0 36.0 12.0"
    assert "…" not in text
    headings = next(line for line in text.splitlines() if "contender" in line)
    assert headings.split() == ["contender", "ms", "ratio", "limit", "GB/s", "temp", "state"]


def test_in_the_cache_there_is_no_limit() -> None:
    measured = made_measurement(TINY, [made_timing("HVAdam loop", 2.0, TINY)])
    assert "1.71" in printed(tabulate(made_speed(cache_bytes=16 * 307 - 1), measured).terminal())
    assert "1.71" not in printed(tabulate(made_speed(cache_bytes=16 * 307), measured).terminal())


def growth() -> Growth:
    def shape(parameters: int, tensors: int) -> Shape:
        return Shape(f"{parameters}", "", tuple(equal_parts(parameters, tensors)))

    sizes = [shape(n * 1_000_000, 1) for n in (1, 10, 100)]
    parts = [shape(2_000_000, tensors) for tensors in (1, 1000)]
    return Growth(
        tuple(
            made_measurement(s, [made_timing("HVAdam native", time * s.parameters, s)])
            for s, time in zip(sizes, (1.0, 2.0, 3.0), strict=True)
        ),
        tuple(
            made_measurement(s, [made_timing("HVAdam native", time, s)])
            for s, time in zip(parts, (1.0, 1.25), strict=True)
        ),
    )


def test_growth_is_stated_per_parameter_from_end_to_end() -> None:
    _, line = list_growth(made_speed(), growth())
    assert line == ("HVAdam native: 100M / 1M parameters: 3.00; 1,000 / 1 tensors: 1.25")
    _, line = list_growth(made_speed(cache_bytes=32 << 20), growth())
    assert "100M / 10M parameters, beyond the cache: 1.50" in line


def test_growth_is_drawn_per_parameter() -> None:
    left, right = figures.draw_growth(made_speed(), growth()).axes
    np.testing.assert_allclose(points(left.lines[0]), [[1e6, 1e9], [1e7, 2e9], [1e8, 3e9]])
    np.testing.assert_allclose(points(right.lines[0]), [[1, 500], [1000, 625]])


def test_chart_shows_ratio_limit_and_bandwidth() -> None:
    rows = [made_timing("HVAdam loop", 3.0, TINY), made_timing("Adam fused", 0.5, TINY)]
    figure = figures.draw_shapes(made_speed([made_measurement(TINY, rows)]))
    above, below = figure.axes
    bars = [bar.get_extents().transformed(above.transData.inverted()) for bar in above.patches]
    np.testing.assert_allclose([bar.intervalx for bar in bars], [[1, 3], [0.5, 1]])
    marks = [points(line)[0] for line in above.lines if line.get_marker() == "|"]
    np.testing.assert_allclose(marks, [[12 / 7, 0], [12 / 7, 1]])
    assert [tick.get_text() for tick in above.get_yticklabels()] == ["HVAdam loop", "Adam fused"]
    bars = [bar.get_extents().transformed(below.transData.inverted()) for bar in below.patches]
    np.testing.assert_allclose([bar.x1 for bar in bars], [row.gb_per_second for row in rows])
    copy, fastest = (points(line)[0, 0] for line in below.lines)
    assert (copy, fastest) == (10, 20)


def test_who_was_skipped_is_noted_once() -> None:
    skip = Skip("refuser", "cannot run here")
    twice = [made_measurement(TINY, [], [skip])] * 2
    assert list_notes(made_speed(twice)).count("skipped refuser: cannot run here") == 1


@pytest.mark.parametrize("grow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_command_prints_tables_and_writes_charts_and_numbers(
    grow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"copy": [10.0], "add": [11.0, 12.0]}
    monkeypatch.setattr("hvadam_bench.studies.speed.benchmark.bandwidth", lambda elements: rates)
    contenders = [
        Contender("HVAdam loop", HVAdam, {"kernel": "loop"}, EXACT, grows=True),
        REFERENCE,
        Contender("HVAdam odd", HVAdam, {"kernel": "odd"}, EXACT),
    ]
    other = dataclasses.replace(TINY, name="other", title="the others")
    larger = Shape("larger", "one tensor", ((10_000,),))
    growing = ([TINY, larger], [TINY, other]) if grow else None
    plan = Plan(rounds=2, group_seconds=0.0)
    console = Console(file=io.StringIO(), width=80)
    threads = torch.get_num_threads()
    wiring.time_steps(
        [TINY, other], contenders, plan, tmp_path, console, threads=threads, growing=growing
    )
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    files = ["speed.json", "speed.png", *(["growth.png"] if grow else [])]
    assert [line for line in text.splitlines() if line.startswith("wrote")] == [
        f"wrote {tmp_path / name}" for name in files
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
    assert text.index("two tensors") < text.index("the others") < text.index("skipped HVAdam odd")
    assert ("1 is linear" in text) == grow
    for name in files[1:]:
        pixels = imread(tmp_path / name)
        assert len({tuple(pixel) for row in pixels[::20] for pixel in row[::20]}) > 5  # not blank
    found = Speed.load(tmp_path / "speed.json")
    assert (found.plan, found.threads) == (plan, threads)
