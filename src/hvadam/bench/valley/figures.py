"""Figures of the study, drawn from its results alone: maps of winners, win rates, the angle."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hvadam.bench.valley.functions import FUNCTIONS
from hvadam.bench.valley.paths import few
from hvadam.bench.valley.style import GREY, save, style_of
from hvadam.bench.valley.summary import NOBODY, TIE

Results = dict[str, Any]
REGIME_NAMES = {"common": "the paper's common rate", "tuned": "each its own best rate"}
_NOBODY = "#FFFFFF"


def draw_all(results: Results, folder: Path) -> list[Path]:
    """All that the results hold enough for."""
    written: list[Path] = []
    functions = results["functions"]
    if any(function["map"] for function in functions.values()):
        written += [
            save(draw_maps(results, criterion), folder / f"valley-map-{criterion}.png")
            for criterion in ("lowest", "first")
        ]
    if any("hvadam" in function["contenders"] for function in functions.values()):
        written.append(save(draw_duels(results), folder / "valley-duels.png"))
    written.append(save(draw_wins(results), folder / "valley-wins.png"))
    for dimension in results["angle"]:
        name = "" if dimension == "2" else f"-{dimension}d"
        written.append(save(draw_angle(results, dimension), folder / f"valley-angle{name}.png"))
    return written


def draw_maps(results: Results, criterion: str) -> Figure:
    """Who wins where: one row a function, the common rate left, the tuned rates right."""
    functions = {k: f for k, f in results["functions"].items() if f["map"]}
    racers: list[str] = next(iter(functions.values()))["racers"]
    figure = Figure(figsize=(6.4, 2.75 * len(functions) + 1.0), layout="constrained")
    panels = figure.subplots(len(functions), 2, squeeze=False)
    colors = [style_of(name).color for name in racers] + [GREY, _NOBODY]
    letters = string.ascii_lowercase[: len(racers)] + TIE + NOBODY
    across, along = results["grid"]
    for row, (label, function) in zip(panels, functions.items(), strict=True):
        window = FUNCTIONS[label.split("-")[0]].window
        for axes, regime in zip(row, REGIME_NAMES, strict=True):
            codes = [letters.index(letter) for letter in function["map"][f"{regime} {criterion}"]]
            axes.imshow(
                np.reshape(codes, (along, across)),
                cmap=ListedColormap(colors),
                vmin=-0.5,
                vmax=len(colors) - 0.5,
                origin="lower",
                extent=(*window[0], *window[1]),
                interpolation="nearest",
            )
            minimum = FUNCTIONS[label.split("-")[0]].minimiser
            axes.plot(*minimum, marker="x", ms=8, mew=2.5, color="black", ls="")
            axes.tick_params(labelsize="x-small")
            if row is panels[0]:
                axes.set_title(REGIME_NAMES[regime], fontsize="medium")
        row[0].set_ylabel(f"{label}\nalong the valley" if _is_valley(label) else label)
        if _is_valley(label):
            for axes in row:
                axes.set_xlabel("across", fontsize="small")
    handles = [Patch(color=style_of(name).color, label=style_of(name).label) for name in racers]
    handles += [
        Patch(color=GREY, label="tie"),
        Patch(facecolor=_NOBODY, edgecolor="black", label="nobody"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    what = {
        "lowest": f"Who is lowest after {results['steps']} steps, by where it started",
        "first": f"Who first gets to {results['target']:g}, within {results['horizon']} steps",
    }
    figure.suptitle(what[criterion], fontsize="medium")
    return figure


def draw_wins(results: Results) -> Figure:
    """The share of starts on which each contender of all is lowest after the budget."""
    functions = results["functions"]
    tables = {
        regime: {
            label: (f["wins_of_all"] or f["wins"])[f"{regime} lowest"]
            for label, f in functions.items()
        }
        for regime in REGIME_NAMES
    }
    title = f"Lowest after {results['steps']} steps: % of the starts; ties are split"
    return _tables(tables, title, "Blues")


def draw_duels(results: Results) -> Figure:
    """The share of starts on which HVAdam ends lower than each other one."""
    functions = {
        k: f for k, f in results["functions"].items() if "hvadam" in f["duels"]["common lowest"]
    }
    tables = {
        regime: {label: f["duels"][f"{regime} lowest"]["hvadam"] for label, f in functions.items()}
        for regime in REGIME_NAMES
    }
    after = f"is lower after {results['steps']} steps"
    title = f"HVAdam against each: % of the starts on which\nHVAdam {after}; ties count half"
    return _tables(tables, title, "PuOr_r")


def _tables(tables: dict[str, dict[str, dict[str, float]]], title: str, cmap: str) -> Figure:
    """Contenders down, functions across, a panel for each regime."""
    first = next(iter(tables.values()))
    labels = list(first)
    names = list(dict.fromkeys(name for column in first.values() for name in column))
    figure = Figure(figsize=(7.0, 0.27 * len(names) + 1.5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (regime, columns) in zip(panels, tables.items(), strict=True):
        shares = np.array(
            [[columns[label].get(name, np.nan) for label in labels] for name in names]
        )
        axes.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        for (i, j), share in np.ndenumerate(shares):
            dark = share > 0.6 if cmap == "Blues" else abs(share - 0.5) > 0.3
            axes.text(
                *(j, i, "–" if np.isnan(share) else f"{100 * share:.0f}"),
                **{"ha": "center", "va": "center", "fontsize": "small"},
                color="white" if dark else "black",
            )
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
        axes.set_yticks(
            range(len(names)), [style_of(name).label for name in names], fontsize="small"
        )
        axes.set_title(REGIME_NAMES[regime], fontsize="medium")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    figure.suptitle(title, fontsize="medium")
    return figure


def draw_angle(results: Results, dimension: str) -> Figure:
    """Median loss against the valley's angle: lines for few, a table for everyone."""
    study = results["angle"][dimension]
    racers = few(list(study))
    everyone = len(study) > len(racers)
    height = 4.0 + (0.27 * len(study) + 1.0 if everyone else 0.0)
    figure = Figure(figsize=(7.2, height), layout="constrained")
    ratios = [3.2, 0.27 * len(study) + 0.8] if everyone else [1]
    panels = figure.subplots(len(ratios), 2, squeeze=False, height_ratios=ratios)
    for axes, regime in zip(panels[0], REGIME_NAMES, strict=True):
        for name in racers:
            _draw_line(axes, name, study[name][regime])
        axes.set(yscale="log", xlabel="angle of the valley, degrees")
        axes.set_title(REGIME_NAMES[regime], fontsize="medium")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("loss: median and quartiles")
    low = min(axes.get_ylim()[0] for axes in panels[0])
    high = max(axes.get_ylim()[1] for axes in panels[0])
    for axes in panels[0]:
        axes.set_ylim(low, high)
    panels[0][1].legend(frameon=False, fontsize="small")
    if everyone:
        for axes, regime in zip(panels[1], REGIME_NAMES, strict=True):
            _draw_table(axes, study, regime, last=regime == "tuned")
    where = f"in {dimension} dimensions" if dimension != "2" else "in the plane"
    figure.suptitle(
        f"f2 as the valley turns, {where}: loss after {results['steps']} steps", fontsize="medium"
    )
    return figure


def _draw_line(axes: Any, name: str, rows: Sequence[dict[str, Any]]) -> None:
    style = style_of(name)
    shown = [(row["angle"], *row["loss"]) for row in rows if None not in row["loss"]]
    if not shown:
        return
    angles, low, median, high = np.array(shown).T
    axes.plot(angles, median, marker="o", ms=3.5, label=style.label, **style.line)
    axes.fill_between(angles, low, high, color=style.color, alpha=0.13, lw=0)


def _draw_table(axes: Any, study: dict[str, Any], regime: str, last: bool) -> None:
    """log10 of the median loss, everyone at every angle."""
    names = list(study)
    angles = [row["angle"] for row in study[names[0]][regime]]
    medians = [[row["loss"][1] for row in study[name][regime]] for name in names]
    values = np.array(
        [[np.nan if x is None else np.log10(max(x, 1e-16)) for x in row] for row in medians]
    )
    axes.imshow(values, cmap="cividis_r", vmin=-5, vmax=0.5, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        text = "div." if np.isnan(value) else f"{value:.1f}"
        axes.text(
            *(j, i, text),
            **{"ha": "center", "va": "center", "fontsize": "x-small"},
            color="white" if value > -1.6 else "black",
        )
    axes.set_xticks(range(len(angles)), [f"{x:g}" for x in angles], fontsize="small")
    axes.set_yticks(range(len(names)), [style_of(name).label for name in names], fontsize="x-small")
    if last:
        axes.set_yticklabels([])
    axes.set_xlabel("log10 of the median loss, by angle", fontsize="small")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _is_valley(label: str) -> bool:
    return label.split("-")[0] in ("f1", "f2", "fig3")
