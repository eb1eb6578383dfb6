"""The three studies as figures, one column each: wide enough for a page, legible on a phone."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# Colours of Okabe and Ito, told apart under every common colour blindness.
ORANGE, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
BLACK = "#000000"
KINDS = {
    "independent": (ORANGE, "-"),
    "unbiased average": (BLUE, "--"),
    "average": (GREEN, "-."),
}
VARIANTS = {
    "theorem": (ORANGE, "-", "constant β₁"),
    "corollary": (BLUE, "--", "decaying β₁"),
    "no maximum": (GREEN, "-.", "constant β₁, no maximum"),
}
EXPONENTS = ((ORANGE, "-"), (BLUE, "--"), (GREEN, "-."))


def draw(content: Mapping[str, Any]) -> dict[str, Figure]:
    """One figure per appendix, by name."""
    return {
        "hidden-vector": draw_hidden_vector(content["hidden_vector"]),
        "regret": draw_regret(content["regret"]),
        "nonconvex": draw_nonconvex(content["nonconvex"]),
    }


def save(figure: Figure, path: Path) -> None:
    """As a PNG with a palette of 64 colours: a third of the size, and no difference to the eye."""
    full = BytesIO()
    figure.savefig(full, dpi=150)
    Image.open(full).convert("RGB").quantize(64).save(path, optimize=True)


def draw_hidden_vector(study: Mapping[str, Any]) -> Figure:
    """The distance to v* against steps, a panel per dimension, under the bound."""
    dimensions = sorted({case["dimension"] for case in study["cases"]})
    figure, panels = _panels(len(dimensions), "Distance of the hidden vector from the trend")
    for axes, dimension in zip(panels, dimensions, strict=True):
        cases = {c["kind"]: c for c in study["cases"] if c["dimension"] == dimension}
        for kind, (color, dashes) in KINDS.items():
            case = cases[kind]
            if case["status"] == "ok":
                shown = np.array(case["distance"])
                shown[shown <= 0] = 1e-16  # exact: below what is drawn
                axes.plot(case["steps"], shown, dashes, color=color, label=f"m: {kind}")
                axes.plot(case["steps"], case["bound"], ":", color=BLACK)
        axes.plot([], [], ":", color=BLACK, label="bound √(2π)σ/T")
        axes.set(xscale="log", yscale="log", ylim=(1e-5, 5), ylabel="mean distance")
        axes.set_title(f"{dimension} dimensions", loc="left", fontsize="medium")
    return _finish(figure, panels, "steps T")


def draw_regret(study: Mapping[str, Any]) -> Figure:
    """Regret against rounds, a panel per family, under the corollary's bound."""
    families = study["families"]
    figure, panels = _panels(len(families), "Regret in online convex problems")
    steps = np.array(study["steps"])
    for axes, family in zip(panels, families, strict=True):
        for variant in family["variants"]:
            color, dashes, label = VARIANTS[variant["name"]]
            if variant["status"] == "ok":
                axes.plot(steps, variant["regret"], dashes, color=color, label=label)
                low, high = variant["regret_low"], variant["regret_high"]
                axes.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)
            if variant["name"] == "corollary" and variant["status"] == "ok":
                total = variant["corrected"]["total"]
                axes.plot(steps, total, ":", color=BLUE, label="bound, decaying β₁")
                trivial = variant["trivial"] * steps / steps[-1]
                axes.plot(steps, trivial, ":", color=BLACK, label="whatever is played")
        adam = study["adam_on_spikes"]
        if family["name"] == "spikes" and adam["status"] == "ok":
            axes.plot(steps, adam["regret"], color=PURPLE, lw=1, label="Adam")
        axes.set(xscale="log", yscale="log", ylabel="regret")
        axes.set_title(family["name"], loc="left", fontsize="medium")
    return _finish(figure, panels, "rounds T")


def draw_nonconvex(study: Mapping[str, Any]) -> Figure:
    """The mean squared gradient norm against steps; the slope of each rate as a thin line."""
    problems = study["problems"]
    names = list(dict.fromkeys(case["rate"] for case in problems[0]["cases"]))
    figure, panels = _panels(len(problems), "Mean squared gradient norm, non-convex")
    steps = np.array(study["steps"])
    for axes, problem in zip(panels, problems, strict=True):
        exponents = list(dict.fromkeys(case["k"] for case in problem["cases"]))
        for case in problem["cases"]:
            color, dashes = EXPONENTS[exponents.index(case["k"])]
            if case["status"] != "ok":
                continue
            fast = case["rate"] == names[-1]
            label = f"k = {case['k']:g}, {case['rate']} α₀"
            dashes = dashes if fast else ":"
            axes.plot(steps, case["mean"], dashes, color=color, label=label)
            if fast:
                tail = steps >= steps[-1] / 10
                guide = case["mean"][-1] * (steps[tail] / steps[-1]) ** case["slope_of_rate"]
                axes.plot(steps[tail], 0.8 * guide, color=color, lw=0.8)
        axes.set(xscale="log", yscale="log", ylabel="mean of ‖∇f‖²")
        axes.set_title(problem["name"], loc="left", fontsize="medium")
    return _finish(figure, panels, "steps T")


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(6, 1.2 + 2.2 * count), layout="constrained")
    figure.suptitle(title, fontsize="large")
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def _finish(figure: Figure, panels: list[Axes], xlabel: str) -> Figure:
    for axes in panels:
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(xlabel)
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False
    )
    return figure
