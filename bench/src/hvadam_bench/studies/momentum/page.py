"""The page of the scores and verdicts, and what a terminal shows of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from hvadam_bench.contenders import label
from hvadam_bench.pages.formatting import NOTHING, listed
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.momentum.measure import WITHIN, Momentum, StageScores, Verdict

READING = (
    "Factors of the median final loss to Adam's (beta1 0.9), each at its own best rate, at most 10 "
    "either way; below 1 is better. score: geometric mean over the problems. n: seeds on each."
)


def render(results: Results, out: Path) -> list[Path]:
    """Write the page below a folder; return its path."""
    if "momentum" not in results:
        return []
    found: Momentum = results["momentum"]
    page = out / "docs" / "momentum.md"
    shown = [(stage, standings_table(stage), problems_table(stage)) for stage in found.stages]
    text = render_template(
        Path(__file__).with_name("page.md.j2"),
        found=found,
        shown=shown,
        verdicts=verdicts_table(found.verdicts),
        frozen=label(found.frozen),
    )
    write_atomically(page, text.encode())
    return [page]


def tables(results: Results) -> Iterable[Table]:
    """Return the standings of every stage, and the verdicts if there are any."""
    found: Momentum = results["momentum"]
    return [*map(standings_table, found.stages), *filter(_rows, [verdicts_table(found.verdicts)])]


def standings_table(stage: StageScores) -> Table:
    """Return a table of everyone in a stage, the best score first; who goes on is bold."""
    rows = [
        [
            Cell(label(one.entrant), one.entrant in stage.kept, contender=one.entrant),
            *(_factor(x) for x in (one.score, one.halves.get("smooth"), one.halves.get("noisy"))),
            f"{sum(x < 0 for x in one.factors.values())} of {len(one.factors)}",
            str(stage.seeds),
        ]
        for one in stage.standings
    ]
    heads = ["", "score", "smooth", "noisy", "below 1", "n"]
    left = f"\nnot finished: {listed(stage.unfinished)}." if stage.unfinished else ""
    return Table(heads, rows, f"The {stage.name} stage", READING + left, right=(1, 2, 3))


def problems_table(stage: StageScores) -> Table:
    """Return a table with a row for each problem; a mark says that a rate is at the edge."""
    edges = {(one.entrant, one.problem) for one in stage.endings if one.at_edge}
    names = list(dict.fromkeys(one.problem for one in stage.endings))
    kinds = {one.problem: one.kind for one in stage.endings}
    rows = [
        [
            f"{name.replace('_', ' ')} ({kinds[name]})",
            *(
                f"{_factor(one.factors[name])}{'!' if (one.entrant, name) in edges else ''}"
                for one in stage.standings
            ),
        ]
        for name in names
    ]
    return Table(["", *(label(one.entrant) for one in stage.standings)], rows)


def verdicts_table(verdicts: Sequence[Verdict]) -> Table:
    """Return a table of what the rules say of each candidate."""
    rows = [
        [
            Cell.of(one.entrant),
            f"{len(one.ahead)} ahead, {len(one.behind)} behind: {_word(one.rules['a'])}",
            f"{_factor(one.gap)} ({_factor(one.interval[0])} to {_factor(one.interval[1])}) of "
            f"{label(one.rival)}: {_word(one.rules['b'])}",
            ", ".join(
                f"{half} {_factor(one.half_gaps[half])} of {label(one.half_rivals[half])}"
                for half in WITHIN
            )
            + f": {_word(one.rules['c'])}",
            f"{len(one.ahead_of_all)}",
        ]
        for one in verdicts
    ]
    heads = ["", "(a) versus Adam", "(b) versus the best fixed", "(c) each half", "ahead of all"]
    return Table(heads, rows, "The rules")


def _rows(table: Table) -> bool:
    return bool(table.rows)


def _word(met: bool) -> str:
    return "met" if met else "not met"


def _factor(logarithm: float | None) -> str:
    """Return a logarithm as a factor in three digits."""
    return NOTHING if logarithm is None else f"{math.exp(logarithm):.3g}"
