"""The page and the figure of valleys of growing condition numbers: `hvadam valley --condition`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvadam_bench.pages.figures import blank, legend_line, save, tidy
from hvadam_bench.pages.formatting import NOTHING, fixed, number
from hvadam_bench.pages.palette import GREY, line
from hvadam_bench.pages.rendering import render
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.toy_functions.condition import Conditioning, Growth


def write(found: Conditioning, out: Path) -> list[Path]:
    """Write results, page and figure below a directory; return what was written."""
    written = [out / "results" / "condition.json", out / "docs" / "condition.md"]
    found.save(written[0])
    write_atomically(written[1], render_page(found).encode())
    return [*written, save(draw(found), out / "docs" / "figures" / "valley-condition.png")]


def render_page(found: Conditioning) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    return render(
        "condition.md.j2",
        found=found,
        growth={dimension: growth_table(found, dimension) for dimension in found.growth},
        noise=noise_table(found),
    )


def growth_table(found: Conditioning, dimension: str) -> Table:
    """Return the steps of each racer by condition number, and how they grow."""
    racers = found.growth[dimension]
    conditions = [point.condition for point in next(iter(racers.values())).points]
    rows: list[list[Cell | str]] = [
        [Cell.of(name), *_steps(one), NOTHING if one.exponent is None else fixed(one.exponent, 2)]
        for name, one in racers.items()
    ]
    heads = ["condition number", *(number(condition) for condition in conditions), "exponent"]
    return Table(heads, rows, right=range(1, len(heads)))


def noise_table(found: Conditioning) -> Table:
    """Return what is left of the loss by how much noise there is."""
    levels = [response.noise for response in next(iter(found.noise.values()))]
    rows: list[list[Cell | str]] = [
        [Cell.of(name), *(number(response.left, 2) for response in responses)]
        for name, responses in found.noise.items()
    ]
    heads = ["noise, in lengths of the gradient", *map(number, levels)]
    return Table(heads, rows, right=range(1, len(heads)))


def draw(found: Conditioning) -> Figure:
    """Draw steps over condition numbers, a panel a dimension, and what noise leaves of the loss."""
    figure = blank(3.4, width=7.2)
    panels = figure.subplots(1, len(found.growth) + 1)
    for axes, (dimension, racers) in zip(panels, found.growth.items(), strict=False):
        _draw_growth(axes, racers, found.most)
        axes.set_title(f"{dimension} dimensions", fontsize="medium")
    panels[0].set_ylabel(f"steps to {number(found.arrived)} of the start's loss")
    last = panels[-1]
    for name, responses in found.noise.items():
        # None at all has no place on a logarithmic axis: it stands a step before the least.
        places = [response.noise or responses[1].noise / 3 for response in responses]
        last.plot(places, [r.left for r in responses], marker=".", **line(name))
    last.set(xscale="log", yscale="log", xlabel="noise / gradient")
    last.set_title(f"loss left after {found.noisy_steps:,} steps", fontsize="medium")
    for axes in panels:
        axes.tick_params(labelsize=8)
        tidy(axes, grid=True)
    handles = [legend_line(name) for name in found.noise]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_growth(axes: Axes, racers: Mapping[str, Growth], most: int) -> None:
    for name, one in racers.items():
        arrived = [(p.condition, p.steps) for p in one.points if p.steps is not None]
        lost = [p.condition for p in one.points if p.steps is None]
        if arrived:
            axes.plot(*map(list, zip(*arrived, strict=True)), marker=".", **line(name))
        axes.plot(lost, [most] * len(lost), "x", color=line(name)["color"], ms=5)
    axes.axhline(most, color=GREY, lw=0.8, ls=":")
    axes.set(xscale="log", yscale="log", xlabel="condition number")


def _steps(one: Growth) -> list[str]:
    return [NOTHING if point.steps is None else f"{point.steps:,}" for point in one.points]
