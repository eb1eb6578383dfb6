"""Figures of the race, drawn from its results alone: maps of winners, win rates, the angle."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvadam_bench.contenders import OURS
from hvadam_bench.pages.figures import blank, tidy, write_cells
from hvadam_bench.pages.palette import GREY, label, line, look
from hvadam_bench.pages.toy_functions.paths import few
from hvadam_bench.studies.toy_functions.functions import FUNCTIONS
from hvadam_bench.studies.toy_functions.result import (
    CLAIMED,
    NOBODY,
    REGIMES,
    TIE,
    AngleResult,
    Comparison,
    Criterion,
    FunctionResult,
    Regime,
    Shares,
    Turn,
    key,
)

TITLES: dict[Regime, str] = {"common": "the paper's common rate", "tuned": "each its own best rate"}
_NOBODY = "#FFFFFF"


def draw_all(found: Comparison) -> dict[str, Figure]:
    """Draw all that the results hold enough for, by name."""
    functions = found.functions.values()
    drawn: dict[str, Figure] = {}
    if any(function.map for function in functions):
        drawn |= {f"map-{criterion}": draw_maps(found, criterion) for criterion in CLAIMED}
    if any(OURS in function.racers for function in functions):
        drawn["duels"] = draw_duels(found)
    drawn["wins"] = draw_wins(found)
    for dimension in found.angle:
        name = "angle" if dimension == "2" else f"angle-{dimension}d"
        drawn[name] = draw_angle(found, dimension)
    return drawn


def draw_maps(found: Comparison, criterion: Criterion) -> Figure:
    """Draw who wins where: a row per function, the common rate left, the tuned rates right."""
    functions = {name: one for name, one in found.functions.items() if one.map}
    racers = next(iter(functions.values())).racers
    figure = blank(2.75 * len(functions) + 1.0)
    panels = figure.subplots(len(functions), 2, squeeze=False)
    for row, (name, function) in zip(panels, functions.items(), strict=True):
        for axes, regime in zip(row, REGIMES, strict=True):
            _draw_map(axes, found, name, function.map[key(regime, criterion)], racers)
        row[0].set_ylabel(f"{name}\nalong the valley" if _is_valley(name) else name)
    for axes, regime in zip(panels[0], REGIMES, strict=True):
        axes.set_title(TITLES[regime], fontsize="medium")
    handles = [Patch(color=look(racer).light, label=label(racer)) for racer in racers]
    handles.append(Patch(color=GREY, label="tie"))
    handles.append(Patch(facecolor=_NOBODY, edgecolor="black", label="nobody"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    what = f"Who is lowest after {found.steps} steps, by where it started"
    if criterion == "first":
        what = f"Who first gets to {found.target:g}, within {found.horizon} steps"
    figure.suptitle(what, fontsize="medium")
    return figure


def draw_wins(found: Comparison) -> Figure:
    """Draw the share of starts on which each contender of all is lowest after the budget."""

    def wins(function: FunctionResult, regime: Regime) -> Shares:
        return (function.wins_of_all or function.wins)[key(regime, "lowest")]

    tables: dict[Regime, dict[str, Shares]] = {
        regime: {name: wins(function, regime) for name, function in found.functions.items()}
        for regime in REGIMES
    }
    title = f"Lowest after {found.steps} steps: % of the starts; ties are split"
    return _draw_shares(tables, title, "Blues")


def draw_duels(found: Comparison) -> Figure:
    """Draw the share of starts on which HVAdam ends lower than each other one."""
    functions = {name: one for name, one in found.functions.items() if OURS in one.racers}
    tables: dict[Regime, dict[str, Shares]] = {
        regime: {
            name: function.duels[key(regime, "lowest")][OURS]
            for name, function in functions.items()
        }
        for regime in REGIMES
    }
    title = (
        "HVAdam against each: % of the starts on which\n"
        f"HVAdam is lower after {found.steps} steps; ties count half"
    )
    return _draw_shares(tables, title, "PuOr_r")


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
            _draw_turn(axes, name, turn[name].under(regime))
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
            _draw_medians(axes, turn, regime, named=regime == "common")
    where = f"in {dimension} dimensions" if dimension != "2" else "in the plane"
    figure.suptitle(
        f"f2 as the valley turns, {where}: loss after {found.steps} steps", fontsize="medium"
    )
    return figure


def _draw_map(
    axes: Axes, found: Comparison, name: str, winners: str, racers: Sequence[str]
) -> None:
    """Colour each start of a function by its winner."""
    function = FUNCTIONS[name.split("-")[0]]
    colours = [*(look(racer).light for racer in racers), GREY, _NOBODY]
    letters = string.ascii_lowercase[: len(racers)] + TIE + NOBODY
    across, along = found.grid
    axes.imshow(
        np.reshape([letters.index(letter) for letter in winners], (along, across)),
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(colours) - 0.5,
        origin="lower",
        extent=(*function.window[0], *function.window[1]),
        interpolation="nearest",
    )
    axes.plot(*function.minimiser, marker="x", ms=8, mew=2.5, color="black", ls="")
    axes.tick_params(labelsize="x-small")
    if _is_valley(name):
        axes.set_xlabel("across", fontsize="small")


def _draw_shares(tables: Mapping[Regime, Mapping[str, Shares]], title: str, cmap: str) -> Figure:
    """Draw shares as numbers on colours: contenders down, functions across, regimes as panels."""
    first = next(iter(tables.values()))
    functions = list(first)
    names = list(dict.fromkeys(name for column in first.values() for name in column))
    figure = blank(0.27 * len(names) + 1.5, width=7.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (regime, columns) in zip(panels, tables.items(), strict=True):
        shares = np.array(
            [[columns[function].get(name, np.nan) for function in functions] for name in names]
        )
        axes.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        write_cells(
            axes,
            shares,
            lambda x: "–" if np.isnan(x) else f"{100 * x:.0f}",
            lambda x: x > 0.6 if cmap == "Blues" else abs(x - 0.5) > 0.3,
        )
        axes.set_xticks(range(len(functions)), functions, fontsize="small")
        axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize="small")
        axes.set_title(TITLES[regime], fontsize="medium")
    figure.suptitle(title, fontsize="medium")
    return figure


def _draw_turn(axes: Axes, name: str, rows: Sequence[AngleResult]) -> None:
    shown = [(row.angle, *row.loss) for row in rows if None not in row.loss]
    if not shown:
        return
    angles, low, median, high = np.array(shown, dtype=float).T
    axes.plot(angles, median, marker="o", ms=3.5, label=label(name), **line(name))
    axes.fill_between(angles, low, high, color=look(name).light, alpha=0.13, lw=0)


def _draw_medians(axes: Axes, turn: Turn, regime: Regime, *, named: bool) -> None:
    """Draw log10 of the median loss, everyone at every angle."""
    rows = [own.under(regime) for own in turn.values()]
    values = np.array(
        [
            [np.nan if one.median is None else np.log10(max(one.median, 1e-16)) for one in row]
            for row in rows
        ]
    )
    axes.imshow(values, cmap="cividis_r", vmin=-5, vmax=0.5, aspect="auto")
    write_cells(
        axes,
        values,
        lambda x: "div." if np.isnan(x) else f"{x:.1f}",
        lambda x: x > -1.6,
        fontsize="x-small",
    )
    axes.set_xticks(range(len(rows[0])), [f"{one.angle:g}" for one in rows[0]], fontsize="small")
    names = [label(name) if named else "" for name in turn]
    axes.set_yticks(range(len(turn)), names, fontsize="x-small")
    axes.set_xlabel("log10 of the median loss, by angle", fontsize="small")


def _is_valley(name: str) -> bool:
    return name.split("-")[0] in ("f1", "f2", "fig3")
