"""The tables, notes and charts of step times."""

import dataclasses
import io
from pathlib import Path

import numpy as np
from made_timings import TINY, made_measurement, made_speed, made_timing
from matplotlib.image import imread
from matplotlib.lines import Line2D
from rich.console import Console

from hvadam_bench import studies
from hvadam_bench.studies._pairs import Skip
from hvadam_bench.studies.speed import figures
from hvadam_bench.studies.speed.page import (
    list_growth,
    render,
    step_notes,
    step_table,
    tabulate,
)
from hvadam_bench.studies.speed.results import Growth
from hvadam_bench.studies.speed.shapes import Shape, equal_parts

ROOT = Path(__file__).parents[4]


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
    text = printed(step_table(made_speed(), measured).terminal())
    [row] = [line for line in text.splitlines() if line.startswith(" xxx")]
    assert " ".join(row.split()[1:]) == "123456 123 (92.6 to 185) 1.71 0.0 36.0 12.0"
    assert "…" not in text
    headings = next(line for line in text.splitlines() if "contender" in line)
    assert headings.split() == ["contender", "ms", "ratio", "limit", "GB/s", "temp", "state"]


def test_in_the_cache_there_is_no_limit() -> None:
    measured = made_measurement(TINY, [made_timing("HVAdam loop", 2.0, TINY)])
    assert "1.71" in printed(step_table(made_speed(cache_bytes=16 * 307 - 1), measured).terminal())
    assert "1.71" not in printed(step_table(made_speed(cache_bytes=16 * 307), measured).terminal())


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
    assert step_notes(made_speed(twice)).splitlines().count("skipped refuser: cannot run here") == 1


def test_notes_say_what_was_measured_and_what_columns_mean() -> None:
    first, *columns = step_notes(made_speed([made_measurement(TINY, [])])).splitlines()
    assert first == (
        "Rounds: 7, threads: 1. Memory: copying reaches 10.0 GB/s, the fastest simple pass "
        "20.0 GB/s."
    )
    words = [line.partition(":")[0] for line in columns]
    assert words == ["ratio", "limit", "GB/s", "temp", "state"]


def test_tables_come_before_notes_and_charts_are_written(tmp_path: Path) -> None:
    rows = [made_timing("HVAdam loop", 3.0, TINY), made_timing("Adam fused", 0.5, TINY)]
    other = dataclasses.replace(TINY, title="the others")
    measured = [made_measurement(shape, rows) for shape in (TINY, other)]
    found = made_speed(measured, growth())
    *tables, notes = tabulate({"speed": found})
    assert [getattr(table, "title", "") for table in tables] == ["two tensors", "the others"]
    assert "1 is linear" in str(notes)
    folder = tmp_path / "docs" / "figures"
    written = render({"speed": found}, tmp_path)
    assert written == [folder / "speed.png", folder / "growth.png"]
    for path in written:
        pixels = imread(path)
        assert len({tuple(pixel) for row in pixels[::20] for pixel in row[::20]}) > 5  # not blank
    assert render({"speed": made_speed()}, tmp_path) == []


def test_committed_results_are_shown() -> None:
    results = studies.get("speed").read(ROOT)
    assert set(results) == {"speed", "speed-threads", "speed-jax", "training"}
    shown = list(tabulate(results))
    assert sum(not isinstance(one, str) for one in shown) == 4 + 4 + 2 + 4
    text = "\n".join(printed(one if isinstance(one, str) else one.terminal()) for one in shown)
    assert "ResNet-18, 32 images of 64×64: 11,689,512 parameters" in text
    assert "First touch, huge: " in text
