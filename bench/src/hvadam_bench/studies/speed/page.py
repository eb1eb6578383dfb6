"""Step times as tables with notes on how to read them, as a chart, and as a page on JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from hvadam_bench.pages import rendering
from hvadam_bench.pages.figures import (
    Mark,
    blank,
    draw_interval,
    label_end,
    plain_ticks,
    save,
    tidy,
)
from hvadam_bench.pages.formatting import counted, fixed, quartiles, three_digits
from hvadam_bench.pages.palette import BLUE, RED
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._pairs import Quartiles, divide
from hvadam_bench.studies._study import Results

TEMPLATE = Path(__file__).with_name("page.md.j2")
# By how much a ratio to fused Adam may grow from the fewest threads to more: the kernel is to gain
# from them as fused Adam does.
MOST_GROWTH = 1.10
INK = "#000000"

Json = Mapping[str, Any]  # a result, one of its shapes, or a row of that


def render(results: Results, out: Path) -> list[Path]:
    """Write the page on JAX and the chart of torch's steps below a folder; return their paths."""
    written: list[Path] = []
    if found := results.get("speed-jax"):
        tables = [table("speed-jax", found, shape) for shape in found["shapes"]]
        written.append(out / "docs" / "speed-jax.md")
        page = rendering.render(TEMPLATE, found=found, tables=tables)
        write_atomically(written[-1], page.encode())
    if found := results.get("speed"):
        written.append(save(draw(found), out / "docs" / "figures" / "speed.png"))
    return written


def tabulate(results: Results) -> Iterator[Table | str]:
    """Yield the tables of results, each kind's with what to know when reading them."""
    for what, found in results.items():
        shapes = found.get("shapes") or found["workloads"]
        yield from (table(what, found, shape) for shape in shapes)
        skipped = dict.fromkeys(
            tuple(skip.values()) for one in shapes for skip in one.get("skipped", ())
        )
        yield rendering.say(TEMPLATE, "notes", what, found, skipped, MOST_GROWTH)


def table(what: str, found: Json, shape: Json) -> Table:
    """Return what was found on one shape, a row per contender."""
    rows: dict[str, list[Json]] = {}
    for row in shape["results"]:
        rows.setdefault(row["contender"], []).append(row)
    cells = {name: COLUMNS[what](found, shape, *own) for name, own in rows.items()}
    first = {"speed-jax": "optimizer", "runner": "seconds"}.get(what, "contender")
    heads = list(dict.fromkeys([first, *chain(*cells.values())]))
    lines = [[name, *own.values()] for name, own in cells.items()]
    return Table(heads, lines, shape["title"], right=range(1, len(heads)))


def _steps(found: Json, shape: Json, row: Json) -> dict[str, Cell | str]:
    held, parameters = row["temporary_bytes"], shape["parameters"]
    moved = row["moved_bytes"] * parameters  # at the least; what moves twice is not counted twice
    return {
        "ms": three_digits(row["milliseconds"]),
        "ratio": _write(_ratio(row)),
        "limit": "-" if fits_cache(found, shape) else f"{row['limit']:.2f}",
        "GB/s": f"{moved / row['milliseconds'] / 1e6:.1f}",
        "temp": "-" if held is None else three_digits(held / parameters),
        "state": three_digits(row["state_bytes"] / parameters),
    }


def _growth(found: Json, shape: Json, row: Json) -> dict[str, Cell | str]:
    each = 1e6 * row["milliseconds"] / shape["parameters"]
    return {**_steps(found, shape, row), "ns": three_digits(each)}


def _threads(found: Json, shape: Json, *rows: Json) -> dict[str, Cell | str]:
    ratios = {row["threads"]: divide(row["seconds"], row["reference_seconds"]) for row in rows}
    fewest, *more = found["counts"]
    grown = {n: Quartiles.of(divide(ratios[n], ratios[fewest])) for n in more}
    over = {n: growth.median > MOST_GROWTH for n, growth in grown.items()}
    return {
        **{f"ratio, {counted(n, 'thread')}": _write(Quartiles.of(ratios[n])) for n in ratios},
        **{
            f"grows {fewest} to {n}": Cell(_write(grown[n]) + " !" * over[n], over[n]) for n in more
        },
    }


def _jax(found: Json, shape: Json, row: Json) -> dict[str, Cell | str]:
    [adam] = [one for one in shape["results"] if one["contender"] == found["reference"]]
    return {
        "ms": three_digits(1e3 * Quartiles.of(row["seconds"]).median),
        "ratio": _write(_ratio(row)),
        "temp": f"{row['temporary_bytes'] / row['parameters']:.2f}",
        "compile": f"{row['compile_seconds']:.1f} s",
        "compile, ratio": f"{row['compile_seconds'] / adam['compile_seconds']:.1f}",
    }


def _training(found: Json, shape: Json, row: Json) -> dict[str, Cell | str]:
    alone = _ratio(row, "optimizer_seconds", "reference_optimizer_seconds")
    share = _ratio(row, "optimizer_seconds", "seconds").median
    return {
        "adds": _write(_ratio(row), lambda x: f"{100 * (x - 1):+.1f}%"),
        "optimizer": _write(alone),
        "share": f"{100 * share:.1f}%",
        "memory": f"{100 * (row['peak_bytes'] / row['reference_peak_bytes'] - 1):+.1f}%",
    }


def _runner(found: Json, shape: Json, row: Json) -> dict[str, Cell | str]:
    return {
        "step by hand": f"{1e3 * Quartiles.of(row['reference_seconds']).median:.2f} ms",
        "ratio": _write(_ratio(row), lambda x: fixed(x, 3)),
        "all": fixed(sum(row["seconds"]) / sum(row["reference_seconds"]), 3),
        "n": str(len(row["seconds"])),
    }


COLUMNS: dict[str, Callable[..., dict[str, Cell | str]]] = {
    **{"speed": _steps, "growth": _growth, "speed-threads": _threads},
    **{"speed-jax": _jax, "training": _training, "runner": _runner},
}


def fits_cache(found: Json, shape: Json) -> bool:
    """Return whether Adam's tensors, the smallest of all contenders', stay in the cache."""
    return 16 * shape["parameters"] <= max(found["machine"]["caches"].values(), default=0)


def _ratio(row: Json, own: str = "seconds", other: str = "reference_seconds") -> Quartiles:
    return Quartiles.of(divide(row[own], row[other]))


def _write(one: Quartiles, write: Callable[[float], str] = three_digits) -> str:
    return quartiles(one.median, one.q1, one.q3, write)


def draw(found: Json) -> Figure:
    """Draw the ratios to fused Adam with their quartiles, and the limits by memory."""
    shapes = found["shapes"]
    names = list(dict.fromkeys(row["contender"] for one in shapes for row in one["results"]))
    figure = blank(2.2 + 0.3 * len(names), width=3.4 + 2.4 * len(shapes))
    panels = figure.subplots(1, len(shapes), squeeze=False, sharey=True, sharex=True)[0]
    for axes, shape in zip(panels, shapes, strict=True):
        limited = not fits_cache(found, shape)
        for row in shape["results"]:
            y, ratio = names.index(row["contender"]), _ratio(row)
            ours = row["contender"].startswith("HVAdam")
            mark = Mark("", "o", RED if ours else BLUE, 5)
            draw_interval(axes, (ratio.median, ratio.q1, ratio.q3), y, mark)
            label_end(axes, f"{ratio.median:.2f}", ratio.q3, y)
            if limited:
                axes.plot(row["limit"], y, color=INK, marker="|", ms=13, mew=2)
        axes.axvline(1, color=INK, lw=0.8)
        axes.set(title=shape["title"], xlabel="time / time of fused Adam", xscale="log")
        tidy(axes, grid=True)
    low, high = panels[0].get_xlim()
    panels[0].set(xlim=(low, 2 * high), yticks=range(len(names)), yticklabels=names)
    panels[0].invert_yaxis()
    plain_ticks(panels[0].xaxis)
    figure.suptitle(
        f"Optimizer steps versus fused Adam\nmedian and quartiles of {found['plan']['rounds']} "
        f"rounds; threads: {found['threads']}; |: limit by memory"
    )
    return figure
