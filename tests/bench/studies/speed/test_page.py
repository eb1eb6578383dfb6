"""The tables, notes and charts of step times."""

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from made_timings import made_result, made_row
from matplotlib.image import imread
from matplotlib.lines import Line2D
from rich.console import Console

from hvadam_bench import studies
from hvadam_bench.studies._pairs import Quartiles
from hvadam_bench.studies.speed.page import draw, render, table, tabulate

ROOT = Path(__file__).parents[4]


def printed(what: object) -> str:
    """Return the text that a terminal of 80 columns shows."""
    console = Console(file=io.StringIO(), width=80)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def notes(what: str, found: dict[str, Any]) -> list[str]:
    """Return the lines below the tables of a result."""
    return str(list(tabulate({what: found}))[-1]).splitlines()


def test_table_shows_every_number_within_80_columns() -> None:
    found = made_result(made_row("x" * 27, 123.456))
    text = printed(table("speed", found, found["shapes"][0]).terminal())
    [row] = [line for line in text.splitlines() if line.startswith(" xxx")]
    assert " ".join(row.split()[1:]) == "123456 123 (92.6 to 185) 1.71 0.0 36.0 12.0"
    assert "…" not in text
    headings = next(line for line in text.splitlines() if "contender" in line)
    assert headings.split() == ["contender", "ms", "ratio", "limit", "GB/s", "temp", "state"]


def test_in_the_cache_there_is_no_limit() -> None:
    for cache, limit in ((16 * 307 - 1, "1.71"), (16 * 307, "-")):
        found = made_result(made_row("HVAdam loop", 2.0), cache_bytes=cache)
        assert table("speed", found, found["shapes"][0]).rows[0][3] == limit


def test_growth_is_in_nanoseconds_per_parameter() -> None:
    found = made_result(made_row("HVAdam native", 307e-9 * 5))
    assert table("growth", found, found["shapes"][0]).rows[0][-1] == "5.00"
    assert any(note.startswith("ns: nanoseconds") for note in notes("growth", found))


def test_the_table_of_threads_marks_what_grows_too_much() -> None:
    even = dict.fromkeys((1, 2, 4), 2.0)
    uneven = {1: 3.0, 2: 4.0, 4: 6.0}
    rows = [
        made_row(name, seconds, threads=n, reference_seconds=[1.0] * 3)
        for name, times in (("even", even), ("uneven", uneven))
        for n, seconds in times.items()
    ]
    found = made_result(*rows) | {"counts": [1, 2, 4], "alone": True}
    shown = table("speed-threads", found, found["shapes"][0])
    assert list(shown.heads) == [
        *("contender", "ratio, 1 thread", "ratio, 2 threads", "ratio, 4 threads"),
        *("grows 1 to 2", "grows 1 to 4"),
    ]
    shares, alone = ([cell.text for cell in row] for row in shown.cells)
    assert shares[1:] == ["2.00 (2.00 to 2.00)"] * 3 + ["1.00 (1.00 to 1.00)"] * 2
    assert alone[4:] == ["1.33 (1.33 to 1.33) !", "2.00 (2.00 to 2.00) !"]
    assert not any("quiet" in note for note in notes("speed-threads", found))
    busy = notes("speed-threads", found | {"alone": False})
    assert any("when it is quiet" in note for note in busy)


def test_the_table_and_the_page_on_jax(tmp_path: Path) -> None:
    adam = made_row("Adam", 1.0, compile_seconds=2.0)
    found = made_result(made_row("HVAdam", 3.0, compile_seconds=6.0), adam)
    shown = table("speed-jax", found, found["shapes"][0])
    assert shown.rows[0] == ["HVAdam", "3000", "3.00 (2.25 to 4.50)", "36.00", "6.0 s", "3.0"]
    [path] = render({"speed-jax": found}, tmp_path)
    assert path == tmp_path / "docs" / "speed-jax.md"
    page = path.read_text(encoding="utf-8")
    assert "## two tensors\n\n| optimizer | ms |" in page
    assert "a processor" in page


def test_the_chart_shows_ratios_with_their_quartiles_and_limits(tmp_path: Path) -> None:
    found = made_result(made_row("HVAdam loop", 3.0), made_row("Adam fused", 0.5))
    [axes] = draw(found).axes
    dots = [points(line)[0] for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, [[3, 0], [0.5, 1]])
    spans = [points(line)[:, 0] for line in axes.lines if len(points(line)) == 2]
    np.testing.assert_allclose(spans[:2], [[2.25, 4.5], [0.375, 0.75]])
    marks = [points(line)[0] for line in axes.lines if line.get_marker() == "|"]
    np.testing.assert_allclose(marks, [[12 / 7, 0], [12 / 7, 1]])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["HVAdam loop", "Adam fused"]
    [path] = render({"speed": found}, tmp_path)
    assert path == tmp_path / "docs" / "figures" / "speed.png"
    pixels = imread(path)
    assert len({tuple(pixel) for row in pixels[::20] for pixel in row[::20]}) > 5  # not blank


def test_who_was_skipped_is_noted_once() -> None:
    found = made_result(skipped=[{"contender": "refuser", "reason": "cannot run here"}])
    found["shapes"] *= 2
    assert notes("speed", found).count("skipped refuser: cannot run here") == 1


def test_notes_say_what_was_measured_and_what_columns_mean() -> None:
    first, *columns = notes("speed", made_result())
    assert first == (
        "Rounds: 7, threads: 1. Memory: copying reaches 10.0 GB/s, the fastest simple pass "
        "20.0 GB/s."
    )
    words = [line.partition(":")[0] for line in columns]
    assert words == ["ratio", "limit", "GB/s", "temp", "state"]


def test_committed_results_are_shown() -> None:
    results = studies.get("speed").read(ROOT)
    assert set(results) == {"speed", "speed-threads", "speed-jax", "training"}
    shown = list(tabulate(results))
    assert sum(not isinstance(one, str) for one in shown) == 4 + 4 + 2 + 4
    text = "\n".join(printed(one if isinstance(one, str) else one.terminal()) for one in shown)
    assert "ResNet-18, 32 images of 64×64" in text


def test_committed_quartiles_are_those_of_the_rounds() -> None:
    """What follows from the times is written too, for readers of the files alone."""
    for found in studies.get("speed").read(ROOT).values():
        for row in (row for one in found.get("shapes", ()) for row in one["results"]):
            pairs = zip(row["seconds"], row["reference_seconds"], strict=True)
            assert row["ratio"] == asdict(Quartiles.of([a / b for a, b in pairs]))
