"""The pages of the race and of the condition, and their figures, from the results alone."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvadam_bench.contenders import OURS
from hvadam_bench.pages.figures import blank, legend_line, save, tidy, write_cells
from hvadam_bench.pages.formatting import MINUS, fixed, number, share
from hvadam_bench.pages.palette import GREY, label, line, look
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.valley.functions import FUNCTIONS
from hvadam_bench.studies.valley.paths import draw_triangle, few, triangle
from hvadam_bench.studies.valley.result import (
    CLAIMED,
    NOBODY,
    OTHERS,
    PAPER_FOUR,
    REGIMES,
    TIE,
    Comparison,
    Conditioning,
    Criterion,
    FunctionResult,
    Regime,
    Shares,
    Verdict,
    key,
)

CLAIMS: dict[Criterion, str] = {"lowest": "lowest at the end", "first": "first at the target"}
TITLES: dict[Regime, str] = {"common": "the paper's common rate", "tuned": "each its own best rate"}
VALLEYS = ("f1", "f2", "fig3")
ByRegime = dict[Regime, dict[str, Shares]]  # regime -> function -> contender -> share


def render(results: Results, out: Path) -> list[Path]:
    """Write the pages and their figures below a folder; return their paths."""
    written: list[Path] = []
    for stem, result in results.items():
        write, draw = PAGES[stem]
        written.append(out / "docs" / f"{stem}.md")
        write_atomically(written[-1], write(result).encode())
        for name, figure in draw(result).items():
            written.append(save(figure, out / "docs" / "figures" / f"valley-{name}.png"))
    return written


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
        short=short,
        plain=lambda x: f"{round(x, 4):g}".replace("-", MINUS),
        triangle=triangle(),
    )


def render_condition(found: Conditioning) -> str:
    """Return the page of the condition, as Markdown beside a folder ``figures``."""
    return render_template(Path(__file__).with_name("condition.md.j2"), found=found, fixed=fixed)


def best_other(turn: Mapping[str, Any], regime: Regime, end: int) -> tuple[str, dict[str, Any]]:
    """Return the best of the paper's others at an angle, by its median loss."""
    found = {name: turn[name][regime][end] for name in OTHERS}
    medians = {name: one["loss"][1] for name, one in found.items()}
    best = min(found, key=lambda name: math.inf if medians[name] is None else medians[name])
    return best, found[best]


def short(x: float | None, missing: str = "none") -> str:
    """Return a number of two digits, or whole if it is large.

    Example:
        >>> short(0.01234), short(1887.3), short(None)
        ('0.012', '1887', 'none')
    """
    if x is None:
        return missing
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


def draw_race(found: Comparison) -> dict[str, Figure]:
    """Draw the race: maps of winners, win rates, duels, the angle, Fig. 3's triangle; by name."""

    def shares(of: Callable[[FunctionResult], Mapping[str, Any]]) -> ByRegime:
        return {
            regime: {name: of(one)[key(regime, "lowest")] for name, one in found.functions.items()}
            for regime in REGIMES
        }

    suffixes = {at: "" if at == "2" else f"-{at}d" for at in found.angle}
    return {
        **{f"map-{criterion}": draw_maps(found, criterion) for criterion in CLAIMED},
        "duels": _draw_shares(
            shares(lambda one: {k: duels[OURS] for k, duels in one.duels.items()}),
            "HVAdam against each: % of the starts on which\n"
            f"HVAdam is lower after {found.steps} steps; ties count half",
            is_duel=True,
        ),
        "wins": _draw_shares(
            shares(lambda one: one.wins_of_all or one.wins),
            f"Lowest after {found.steps} steps: % of the starts; ties are split",
        ),
        **{f"angle{suffix}": draw_angle(found, at) for at, suffix in suffixes.items()},
        "triangle": draw_triangle(),
    }


def draw_maps(found: Comparison, criterion: Criterion) -> Figure:
    """Draw who wins where: a row per function, the common rate left, the tuned rates right."""
    figure = blank(2.75 * len(found.functions) + 1.0)
    panels = figure.subplots(len(found.functions), 2, squeeze=False)
    colours = {label(racer): look(racer).light for racer in PAPER_FOUR}
    colours |= {"tie": GREY, "nobody": "#FFFFFF"}
    letters = string.ascii_lowercase[: len(PAPER_FOUR)] + TIE + NOBODY
    across, along = found.grid
    for row, (name, one) in zip(panels, found.functions.items(), strict=True):
        function = FUNCTIONS[name]
        for axes, regime in zip(row, REGIMES, strict=True):
            won = [letters.index(letter) for letter in one.map[key(regime, criterion)]]
            axes.imshow(
                np.reshape(won, (along, across)),
                cmap=ListedColormap(list(colours.values())),
                vmin=-0.5,
                vmax=len(colours) - 0.5,
                origin="lower",
                extent=(*function.window[0], *function.window[1]),
                interpolation="nearest",
            )
            axes.plot(*function.minimiser, marker="x", ms=8, mew=2.5, color="black", ls="")
            axes.tick_params(labelsize="x-small")
            if name in VALLEYS:
                axes.set_xlabel("across", fontsize="small")
        row[0].set_ylabel(f"{name}\nalong the valley" if name in VALLEYS else name)
    for axes, regime in zip(panels[0], REGIMES, strict=True):
        axes.set_title(TITLES[regime], fontsize="medium")
    *handles, nobody = [Patch(color=colour, label=name) for name, colour in colours.items()]
    nobody.set_edgecolor("black")
    handles.append(nobody)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    what = f"Who is lowest after {found.steps} steps, by where it started"
    if criterion == "first":
        what = f"Who first gets to {found.target:g}, within {found.horizon} steps"
    figure.suptitle(what, fontsize="medium")
    return figure


def draw_angle(found: Comparison, dimension: str) -> Figure:
    """Draw the median loss against the valley's angle: lines for few, a table for everyone."""
    turn = found.angle[dimension]
    racers = few(list(turn))
    everyone = len(turn) > len(racers)
    table_height = 0.27 * len(turn)
    figure = blank(4.0 + (table_height + 1.0 if everyone else 0.0), width=7.2)
    ratios = [3.2, table_height + 0.8] if everyone else [1]
    panels = figure.subplots(len(ratios), 2, squeeze=False, height_ratios=ratios)
    for axes, regime in zip(panels[0], REGIMES, strict=True):
        for name in racers:
            shown = [(one["angle"], *one["loss"]) for one in turn[name][regime]]
            angles, low, median, high = np.array(shown, dtype=float).T  # None becomes NaN
            axes.plot(angles, median, marker="o", ms=3.5, label=label(name), **line(name))
            axes.fill_between(angles, low, high, color=look(name).light, alpha=0.13, lw=0)
        axes.set(yscale="log", xlabel="angle of the valley, degrees")
        axes.set_title(TITLES[regime], fontsize="medium")
        tidy(axes, grid=True)
    panels[0][0].set_ylabel("loss: median and quartiles")
    low, high = zip(*(axes.get_ylim() for axes in panels[0]), strict=True)
    for axes in panels[0]:
        axes.set_ylim(min(low), max(high))
    panels[0][1].legend(frameon=False, fontsize="small")
    if everyone:
        for axes, regime in zip(panels[1], REGIMES, strict=True):
            _draw_medians(axes, turn, regime)
        panels[1][1].set_yticklabels([])
    where = f"in {dimension} dimensions" if dimension != "2" else "in the plane"
    figure.suptitle(
        f"f2 as the valley turns, {where}: loss after {found.steps} steps", fontsize="medium"
    )
    return figure


def _draw_medians(axes: Axes, turn: Mapping[str, Any], regime: Regime) -> None:
    """Draw log10 of the median loss, everyone at every angle."""
    rows = [own[regime] for own in turn.values()]
    medians = np.array([[one["loss"][1] for one in row] for row in rows], dtype=float)
    values = np.log10(np.maximum(medians, 1e-16))
    axes.imshow(values, cmap="cividis_r", vmin=-5, vmax=0.5, aspect="auto")
    write_cells(
        axes,
        values,
        lambda x: "div." if np.isnan(x) else f"{x:.1f}",
        lambda x: x > -1.6,
        fontsize="x-small",
    )
    axes.set_xticks(range(len(rows[0])), [f"{one['angle']:g}" for one in rows[0]], fontsize="small")
    axes.set_yticks(range(len(turn)), [label(name) for name in turn], fontsize="x-small")
    axes.set_xlabel("log10 of the median loss, by angle", fontsize="small")


def _draw_shares(tables: ByRegime, title: str, is_duel: bool = False) -> Figure:
    """Draw shares as numbers on colours: contenders down, functions across, regimes as panels."""
    first = tables["common"]
    names = list(dict.fromkeys(name for column in first.values() for name in column))
    figure = blank(0.27 * len(names) + 1.5, width=7.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (regime, columns) in zip(panels, tables.items(), strict=True):
        shares = np.array(
            [[column.get(name, np.nan) for column in columns.values()] for name in names]
        )
        axes.imshow(shares, cmap="PuOr_r" if is_duel else "Blues", vmin=0, vmax=1, aspect="auto")
        write_cells(
            axes,
            shares,
            lambda x: "–" if np.isnan(x) else f"{100 * x:.0f}",
            lambda x: abs(x - 0.5) > 0.3 if is_duel else x > 0.6,
        )
        axes.set_xticks(range(len(columns)), list(columns), fontsize="small")
        axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize="small")
        axes.set_title(TITLES[regime], fontsize="medium")
    figure.suptitle(title, fontsize="medium")
    return figure


def draw_condition(found: Conditioning) -> dict[str, Figure]:
    """Draw steps over condition numbers, a panel a dimension, and what noise leaves of the loss."""
    figure = blank(3.4, width=7.2)
    panels: Sequence[Axes] = figure.subplots(1, len(found.growth) + 1)
    for axes, (dimension, racers) in zip(panels, found.growth.items(), strict=False):
        for name, one in racers.items():
            converged = [(p["condition"], p["steps"]) for p in one["points"] if p["steps"]]
            lost = [p["condition"] for p in one["points"] if p["steps"] is None]
            if converged:
                axes.plot(*map(list, zip(*converged, strict=True)), marker=".", **line(name))
            axes.plot(lost, [found.most] * len(lost), "x", color=line(name)["color"], ms=5)
        axes.axhline(found.most, color=GREY, lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log", xlabel="condition number")
        axes.set_title(f"{dimension} dimensions", fontsize="medium")
    panels[0].set_ylabel(f"steps to {number(found.arrived)} of the start's loss")
    last = panels[-1]
    for name, responses in found.noise.items():
        # None at all has no place on a logarithmic axis: it stands a step before the least.
        places = [one["noise"] or responses[1]["noise"] / 3 for one in responses]
        last.plot(places, [one["left"] for one in responses], marker=".", **line(name))
    last.set(xscale="log", yscale="log", xlabel="noise / gradient")
    last.set_title(f"loss left after {found.noisy_steps:,} steps", fontsize="medium")
    for axes in panels:
        axes.tick_params(labelsize=8)
        tidy(axes, grid=True)
    handles = [legend_line(name) for name in found.noise]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return {"condition": figure}


PAGES: dict[str, tuple[Callable[[Any], str], Callable[[Any], dict[str, Figure]]]] = {
    "valley": (render_race, draw_race),
    "condition": (render_condition, draw_condition),
}
