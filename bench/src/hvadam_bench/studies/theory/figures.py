"""The three studies of the theorems as figures: wide enough for a page, legible on a phone."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvadam_bench.pages.figures import blank, tidy
from hvadam_bench.pages.palette import label, line, look
from hvadam_bench.studies.theory.result import (
    Family,
    HiddenVector,
    Nonconvex,
    NonconvexProblem,
    Regret,
    Theory,
)

# Three lines that are told apart: what is compared here are settings, not contenders.
LINES: tuple[dict[str, Any], ...] = tuple(
    {"color": look(name).light, "ls": dashes}
    for name, dashes in (("hvadam", "-"), ("adabelief", "--"), ("sgd_ema", "-."))
)
BLACK = "#000000"
KINDS = dict(zip(("independent", "unbiased average", "average"), LINES, strict=True))
VARIANTS = {
    "theorem": (LINES[0], "constant β₁"),
    "corollary": (LINES[1], "decaying β₁"),
    "no maximum": (LINES[2], "constant β₁, no maximum"),
}


def draw_all(found: Theory) -> dict[str, Figure]:
    """Draw one figure per appendix, by name."""
    return {
        "hidden-vector": draw_hidden_vector(found.hidden_vector),
        "regret": draw_regret(found.regret),
        "nonconvex": draw_nonconvex(found.nonconvex),
    }


def draw_hidden_vector(study: HiddenVector) -> Figure:
    """Draw the distance to v* against steps, a panel per dimension, under the bound."""
    dimensions = sorted({case.dimension for case in study.cases})
    figure, panels = _panels(len(dimensions), "Distance of the hidden vector from the trend")
    for axes, dimension in zip(panels, dimensions, strict=True):
        cases = {case.kind: case.measured for case in study.cases if case.dimension == dimension}
        for kind, style in KINDS.items():
            found = cases[kind]
            if found:
                shown = np.array(found.distance)
                shown[shown <= 0] = 1e-16  # exact: below what is drawn
                axes.plot(found.steps, shown, label=f"m: {kind}", **style)
                axes.plot(found.steps, found.bound, ":", color=BLACK)
        axes.plot([], [], ":", color=BLACK, label="bound √(2π)σ/T")
        axes.set(xscale="log", yscale="log", ylim=(1e-5, 5), ylabel="mean distance")
        axes.set_title(f"{dimension} dimensions", loc="left", fontsize="medium")
    return _finish(figure, panels, "steps T")


def draw_regret(study: Regret) -> Figure:
    """Draw regret against rounds, a panel per family, under the corollary's bound."""
    figure, panels = _panels(len(study.families), "Regret in online convex problems")
    for axes, family in zip(panels, study.families, strict=True):
        _draw_family(axes, family, np.array(study.steps))
        if family.name == "spikes" and study.adam_on_spikes:
            axes.plot(study.steps, study.adam_on_spikes.mean, label=label("adam"), **line("adam"))
        axes.set(xscale="log", yscale="log", ylabel="regret")
        axes.set_title(family.name, loc="left", fontsize="medium")
    return _finish(figure, panels, "rounds T")


def draw_nonconvex(study: Nonconvex) -> Figure:
    """Draw the mean squared gradient norm against steps, with the slope of each rate."""
    figure, panels = _panels(len(study.problems), "Mean squared gradient norm, non-convex")
    for axes, problem in zip(panels, study.problems, strict=True):
        _draw_problem(axes, problem, np.array(study.steps))
        axes.set(xscale="log", yscale="log", ylabel="mean of ‖∇f‖²")
        axes.set_title(problem.name, loc="left", fontsize="medium")
    return _finish(figure, panels, "steps T")


def _draw_family(axes: Axes, family: Family, steps: np.ndarray) -> None:
    for variant in family.variants:
        style, name = VARIANTS[variant.name]
        if variant.curve is None:
            continue
        axes.plot(steps, variant.curve.mean, label=name, **style)
        low, high = variant.curve.low, variant.curve.high
        axes.fill_between(steps, low, high, color=style["color"], alpha=0.15, lw=0)
        if variant.name == "corollary" and variant.proof and variant.constants:
            total = variant.proof.corrected.total
            axes.plot(steps, total, ":", color=style["color"], label="bound, decaying β₁")
            trivial = variant.constants.trivial * steps / steps[-1]
            axes.plot(steps, trivial, ":", color=BLACK, label="whatever is played")


def _draw_problem(axes: Axes, problem: NonconvexProblem, steps: np.ndarray) -> None:
    """Draw every rate and exponent; where the fast rate should fall to as a thin line."""
    exponents = list(dict.fromkeys(case.k for case in problem.cases))
    fastest = problem.cases[-1].rate
    tail = steps >= steps[-1] / 10
    for case in problem.cases:
        if case.curve is None:
            continue
        style = LINES[exponents.index(case.k)]
        name = f"k = {case.k:g}, {case.rate} α₀"
        if case.rate == fastest:
            axes.plot(steps, case.curve.mean, label=name, **style)
            guide = case.curve.mean[-1] * (steps[tail] / steps[-1]) ** case.slope_of_rate
            axes.plot(steps[tail], 0.8 * guide, color=style["color"], lw=0.8)
        else:
            axes.plot(steps, case.curve.mean, ":", color=style["color"], label=name)


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = blank(1.2 + 2.2 * count)
    figure.suptitle(title, fontsize="large")
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def _finish(figure: Figure, panels: list[Axes], xlabel: str) -> Figure:
    entries: dict[str, Any] = {}
    for axes in panels:
        axes.minorticks_off()
        tidy(axes, grid=True)
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    panels[-1].set_xlabel(xlabel)
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False
    )
    return figure
