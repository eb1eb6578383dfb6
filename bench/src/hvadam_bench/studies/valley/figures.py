"""Figures of the race and of the condition, drawn from their results alone."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvadam_bench.contenders import OURS
from hvadam_bench.pages.figures import blank, legend_line, tidy, write_cells
from hvadam_bench.pages.formatting import number
from hvadam_bench.pages.palette import GREY, label, line, look
from hvadam_bench.studies.valley.functions import FUNCTIONS
from hvadam_bench.studies.valley.paths import few
from hvadam_bench.studies.valley.result import (
    CLAIMED,
    NOBODY,
    PAPER_FOUR,
    REGIMES,
    TIE,
    Comparison,
    Conditioning,
    Criterion,
    Regime,
    Shares,
    Turn,
    key,
)

TITLES: dict[Regime, str] = {"common": "the paper's common rate", "tuned": "each its own best rate"}
VALLEYS = ("f1", "f2", "fig3")


def draw_race(found: Comparison) -> dict[str, Figure]:
    """Draw the race: maps of winners, win rates, duels, the angle; by name."""
    drawn = {f"map-{criterion}": draw_maps(found, criterion) for criterion in CLAIMED}
    functions = found.functions.items()
    drawn["duels"] = _draw_shares(
        {
            regime: {name: one.duels[key(regime, "lowest")][OURS] for name, one in functions}
            for regime in REGIMES
        },
        "HVAdam against each: % of the starts on which\n"
        f"HVAdam is lower after {found.steps} steps; ties count half",
        "PuOr_r",
    )
    drawn["wins"] = _draw_shares(
        {
            regime: {
                name: (one.wins_of_all or one.wins)[key(regime, "lowest")]
                for name, one in functions
            }
            for regime in REGIMES
        },
        f"Lowest after {found.steps} steps: % of the starts; ties are split",
        "Blues",
    )
    for dimension in found.angle:
        name = "angle" if dimension == "2" else f"angle-{dimension}d"
        drawn[name] = draw_angle(found, dimension)
    return drawn


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
            shown = [(one.angle, *one.loss) for one in getattr(turn[name], regime)]
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


def _draw_medians(axes: Axes, turn: Turn, regime: Regime) -> None:
    """Draw log10 of the median loss, everyone at every angle."""
    rows = [getattr(own, regime) for own in turn.values()]
    medians = np.array([[one.loss[1] for one in row] for row in rows], dtype=float)
    values = np.log10(np.maximum(medians, 1e-16))
    axes.imshow(values, cmap="cividis_r", vmin=-5, vmax=0.5, aspect="auto")
    write_cells(
        axes,
        values,
        lambda x: "div." if np.isnan(x) else f"{x:.1f}",
        lambda x: x > -1.6,
        fontsize="x-small",
    )
    axes.set_xticks(range(len(rows[0])), [f"{one.angle:g}" for one in rows[0]], fontsize="small")
    axes.set_yticks(range(len(turn)), [label(name) for name in turn], fontsize="x-small")
    axes.set_xlabel("log10 of the median loss, by angle", fontsize="small")


def _draw_shares(tables: Mapping[Regime, Mapping[str, Shares]], title: str, cmap: str) -> Figure:
    """Draw shares as numbers on colours: contenders down, functions across, regimes as panels."""
    first = tables["common"]
    names = list(dict.fromkeys(name for column in first.values() for name in column))
    figure = blank(0.27 * len(names) + 1.5, width=7.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (regime, columns) in zip(panels, tables.items(), strict=True):
        shares = np.array(
            [[column.get(name, np.nan) for column in columns.values()] for name in names]
        )
        axes.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        write_cells(
            axes,
            shares,
            lambda x: "–" if np.isnan(x) else f"{100 * x:.0f}",
            lambda x: x > 0.6 if cmap == "Blues" else abs(x - 0.5) > 0.3,
        )
        axes.set_xticks(range(len(columns)), list(columns), fontsize="small")
        axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize="small")
        axes.set_title(TITLES[regime], fontsize="medium")
    figure.suptitle(title, fontsize="medium")
    return figure


def draw_condition(found: Conditioning) -> Figure:
    """Draw steps over condition numbers, a panel a dimension, and what noise leaves of the loss."""
    figure = blank(3.4, width=7.2)
    panels: Sequence[Axes] = figure.subplots(1, len(found.growth) + 1)
    for axes, (dimension, racers) in zip(panels, found.growth.items(), strict=False):
        for name, one in racers.items():
            converged = [(p.condition, p.steps) for p in one.points if p.steps is not None]
            lost = [p.condition for p in one.points if p.steps is None]
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
