"""What `hvadam step-rule` writes and prints: the scores, stage by stage."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from hvadam_bench.contenders import label
from hvadam_bench.pages.figures import Mark, blank, plain_ticks, save, tidy
from hvadam_bench.pages.formatting import NOTHING
from hvadam_bench.pages.palette import Hue, ground, look, shade
from hvadam_bench.pages.rendering import render, say
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._results import to_json
from hvadam_bench.studies.step_rule.result import Ending, Stage, Standing, StepRule

FIGURE = "step-rule.png"
SHAPES = "oDs^vPX"


def write(found: StepRule, results: Path, docs: Path) -> list[Path]:
    """Write the numbers, the page and the figure of the last stage; returns what was written."""
    numbers, page = results / "step_rule.json", docs / "step-rule.md"
    write_atomically(numbers, f"{json.dumps(to_json(found), indent=1, allow_nan=False)}\n".encode())
    write_atomically(page, render_page(found).encode())
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    drawn = [save(draw(found.stages[-1]), docs / "figures" / FIGURE)] if found.stages else []
    return [numbers, page, *drawn]


def render_page(found: StepRule) -> str:
    """Return the page: who stands where in each stage, and on which problem."""
    return render(
        "step_rule.md.j2",
        found=found,
        figure=FIGURE,
        shown=[(stage, standings_table(stage), problems_table(stage)) for stage in found.stages],
    )


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
    reading = say("terminal.txt.j2", "step_rule", stage.unfinished)
    return Table(heads, rows, title=title, reading=reading, right=(1, 2, 4, 5))


def problems_table(stage: Stage) -> Table:
    """Return a table of the factors on each problem; bold where all seeds settle it."""
    by_place = {(one.entrant, one.task): one for one in stage.endings}
    tasks = list(stage.references)
    rows: list[list[Cell | str]] = [
        ["loss of the better", *(_reference(stage, task) for task in tasks)],
    ]
    for standing in stage.standings:
        cells = [_told(by_place[standing.entrant, task]) for task in tasks]
        rows.append([Cell.of(standing.entrant), *cells])
    return Table(["", *(task.replace("_", " ") for task in tasks)], rows)


def draw(stage: Stage) -> Figure:
    """Draw the factor of everyone on every problem, the smooth ones above the noisy ones."""
    problems = [one for kind in ("smooth", "noisy") for one in _problems(stage, kind)]
    shown = [one for one in stage.standings if one.entrant not in ("adam", "nadam")]
    marks = {one.entrant: _mark(one, place) for place, one in enumerate(shown)}
    figure = blank(0.5 * len(problems) + 1.6)
    axes = figure.subplots()
    for row, task in enumerate(problems):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color=ground().band, lw=0, zorder=0)
        for place, standing in enumerate(shown):
            mark = marks[standing.entrant]
            one = next(e for e in stage.endings if (e.task, e.entrant) == (task, standing.entrant))
            y = row + 0.7 * ((place + 0.5) / len(shown) - 0.5)
            axes.plot(math.exp(one.ratio), y, **mark.style(shade(mark.hue)))
    axes.axvline(1, color=ground().ink, lw=1)
    smooth = len(_problems(stage, "smooth"))
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
    handles = [mark.handle() for mark in marks.values()]
    for handle in handles:
        handle.set_linestyle("")
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _problems(stage: Stage, kind: str) -> list[str]:
    return list(dict.fromkeys(one.task for one in stage.endings if one.kind == kind))


def _mark(one: Standing, place: int) -> Mark:
    drawn = look(one.entrant)
    hue = Hue(drawn.light, drawn.dark)
    return Mark(drawn.label, SHAPES[place % len(SHAPES)], hue, 5.5)


def _told(one: Ending) -> str:
    return f"{_factor(one.ratio)}{'!' if one.at_edge else ''}"


def _reference(stage: Stage, task: str) -> str:
    name = stage.references[task]
    one = next(e for e in stage.endings if (e.task, e.entrant) == (task, name))
    return f"{math.exp(_mean_log(one.losses)):.2g} ({label(name)})"


def _mean_log(losses: Sequence[float]) -> float:
    return sum(map(math.log, losses)) / len(losses)


def _factor(ratio: float | None) -> str:
    """Return a logarithm as a factor: three digits."""
    return NOTHING if ratio is None else f"{math.exp(ratio):.3g}"
