"""The page of the scores, stage by stage, and what a terminal shows of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure

from hvadam_bench.contenders import label
from hvadam_bench.pages.figures import Mark, blank, plain_ticks, save, tidy
from hvadam_bench.pages.formatting import NOTHING, listed
from hvadam_bench.pages.palette import Hue, ground, look, shade
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.step_rule.measure import Ending, Stage, Standing, StepRule, mean_log

FIGURE = "step-rule.png"
SHAPES = "oDs^vPX"
READING = (
    "Factors of the final loss to the better of Adam and NAdam on the same seeds, at most 10 "
    "either way; below 1 is better. score: geometric mean over the problems. n: seeds on each."
)


def render(results: Results, out: Path) -> list[Path]:
    """Write the page and the figure of the last stage below a folder; return their paths."""
    if "step_rule" not in results:
        return []
    found: StepRule = results["step_rule"]
    page = out / "docs" / "step-rule.md"
    shown = [(stage, standings_table(stage), problems_table(stage)) for stage in found.stages]
    text = render_template(
        Path(__file__).with_name("page.md.j2"), found=found, figure=FIGURE, shown=shown
    )
    write_atomically(page, text.encode())
    drawn = [save(draw(stage), page.parent / "figures" / FIGURE) for stage in found.stages[-1:]]
    return [page, *drawn]


def tables(results: Results) -> Iterable[Table]:
    """Return the standings of every stage."""
    return map(standings_table, results["step_rule"].stages)


def standings_table(stage: Stage) -> Table:
    """Return a table of everyone in a stage, the best score first."""
    rows = [
        [
            Cell.of(one.entrant),
            _factor(one.mean),
            _factor(one.median),
            f"{_factor(one.worst)} {one.worst_on}",
            *(_factor(half) for half in (one.smooth, one.noisy)),
            f"{one.ahead} of {one.problems}",
            str(one.seeds),
        ]
        for one in stage.standings
    ]
    heads = ["", "score", "median", "worst", "smooth", "noisy", "ahead", "n"]
    title = f"Stage {stage.name.rpartition('_')[2]}"
    left = f"\nnot finished: {listed(stage.unfinished)}." if stage.unfinished else ""
    return Table(heads, rows, title=title, reading=READING + left, right=(1, 2, 4, 5))


def problems_table(stage: Stage) -> Table:
    """Return a table of the factors on each problem; a mark says that a rate is at the edge."""
    places = {(one.entrant, one.task): one for one in stage.endings}

    def reference(task: str) -> str:
        one = places[stage.references[task], task]
        return f"{math.exp(mean_log(one.losses)):.2g} ({label(one.entrant)})"

    def factor(one: Ending) -> str:
        return f"{_factor(one.ratio)}{'!' if one.at_edge else ''}"

    rows: list[list[Cell | str]] = [["loss of the better", *map(reference, stage.references)]]
    for one in stage.standings:
        cells = [factor(places[one.entrant, task]) for task in stage.references]
        rows.append([Cell.of(one.entrant), *cells])
    return Table(["", *(task.replace("_", " ") for task in stage.references)], rows)


def draw(stage: Stage) -> Figure:
    """Draw the factor of everyone on every problem, the smooth ones above the noisy ones."""
    kinds = {one.task: one.kind for one in stage.endings}
    problems = sorted(kinds, key=lambda task: kinds[task] == "noisy")
    smooth = list(kinds.values()).count("smooth")
    ratios = {(one.entrant, one.task): one.ratio for one in stage.endings}
    shown = [one for one in stage.standings if one.entrant not in ("adam", "nadam")]
    marks = [_mark(one, place) for place, one in enumerate(shown)]
    figure = blank(0.5 * len(problems) + 1.6)
    axes = figure.subplots()
    for row, task in enumerate(problems):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color=ground().band, lw=0, zorder=0)
        for place, (one, mark) in enumerate(zip(shown, marks, strict=True)):
            y = row + 0.7 * ((place + 0.5) / len(shown) - 0.5)
            axes.plot(math.exp(ratios[one.entrant, task]), y, **mark.style(shade(mark.hue)))
    axes.axvline(1, color=ground().ink, lw=1)
    if 0 < smooth < len(problems):
        axes.axhline(smooth - 0.5, color=ground().ink, lw=0.8, ls=":")
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(problems)), [task.replace("_", " ") for task in problems])
    axes.set_ylim(len(problems) - 0.5, -0.5)
    n = stage.standings[0].seeds
    axes.set_xlabel(
        f"← better        worse →\nfinal loss over the better of Adam and NAdam, n = {n}"
    )
    axes.tick_params(axis="y", length=0)
    tidy(axes, "left")
    handles = [mark.handle() for mark in marks]
    for handle in handles:
        handle.set_linestyle("")
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _mark(one: Standing, place: int) -> Mark:
    drawn = look(one.entrant)
    hue = Hue(drawn.light, drawn.dark)
    return Mark(drawn.label, SHAPES[place % len(SHAPES)], hue, 5.5)


def _factor(ratio: float | None) -> str:
    """Return a logarithm as a factor in three digits."""
    return NOTHING if ratio is None else f"{math.exp(ratio):.3g}"
