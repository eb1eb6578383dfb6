"""The pages of the race and of the condition: numbers for their sentences, and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hvadam_bench.pages import figures as shared
from hvadam_bench.pages.formatting import MINUS, fixed, number, share
from hvadam_bench.pages.palette import label
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.valley import figures
from hvadam_bench.studies.valley.functions import FUNCTIONS
from hvadam_bench.studies.valley.paths import draw_triangle, triangle
from hvadam_bench.studies.valley.result import (
    REGIMES,
    Comparison,
    Conditioning,
    Criterion,
    Verdict,
    best_other,
)

CLAIMS: dict[Criterion, str] = {"lowest": "lowest at the end", "first": "first at the target"}


def render(results: Results, out: Path) -> list[Path]:
    """Write the pages and their figures below a folder; return their paths."""
    pages: dict[str, str] = {}
    drawn: dict[str, figures.Figure] = {}
    if "valley" in results:
        pages["valley"] = render_race(results["valley"])
        drawn |= {**figures.draw_race(results["valley"]), "triangle": draw_triangle()}
    if "condition" in results:
        pages["condition"] = render_condition(results["condition"])
        drawn["condition"] = figures.draw_condition(results["condition"])
    written = [out / "docs" / f"{name}.md" for name in pages]
    for path, text in zip(written, pages.values(), strict=True):
        write_atomically(path, text.encode())
    folder = out / "docs" / "figures"
    return written + [
        shared.save(figure, folder / f"valley-{name}.png") for name, figure in drawn.items()
    ]


def render_race(found: Comparison) -> str:
    """Return the page of the race, as Markdown beside a folder ``figures``."""
    return render_template(
        Path(__file__).with_name("page.md.j2"),
        found=found,
        formulas={name: function.formula for name, function in FUNCTIONS.items()},
        claims=CLAIMS,
        criteria={
            "lowest": f"lowest after {found.steps}",
            "late": f"lowest after {found.horizon}",
            "first": f"first to {found.target:g}",
        },
        regimes=REGIMES,
        best_other=best_other,
        strong=strong,
        verdict=_verdict,
        loss=lambda x: "diverged" if x is None else short(x),
        short=short,
        growth=_growth,
        plain=lambda x: f"{round(x, 4):g}".replace("-", MINUS),
        diverged=[
            (name, contender, own.common.diverged)
            for name, function in found.functions.items()
            for contender, own in function.contenders.items()
            if own.common.diverged
        ],
        triangle=triangle(),
    )


def render_condition(found: Conditioning) -> str:
    """Return the page of the condition, as Markdown beside a folder ``figures``."""
    return render_template(Path(__file__).with_name("condition.md.j2"), found=found, fixed=fixed)


def short(x: float | None) -> str:
    """Return a number of two digits, or whole if it is large.

    Example:
        >>> short(0.01234), short(1887.3), short(None)
        ('0.012', '1887', 'none')
    """
    if x is None:
        return "none"
    return number(x, 2) if abs(x) < 100 else f"{x:.0f}"


def strong(word: str) -> str:
    """Return a verdict, in bold if it tells HVAdam and a rival apart."""
    return f"**{word}**" if word in ("ahead", "behind") else word


def _verdict(found: Verdict) -> str:
    """Return the verdict, and of each duel the share and what is not a lead."""
    said = [
        f"{label(name)} {share(won)}" + (f" ({word})" if word != "ahead" else "")
        for name, (won, word) in found.duels.items()
    ]
    return f"{strong(found.word)}: {', '.join(said)}"


def _growth(medians: Sequence[float | None]) -> float | None:
    first, last = medians[0], medians[-1]
    return None if not first or last is None else last / first
