"""The page of the theorems: what its template shows, and a figure for each appendix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvadam_bench.pages.figures import blank, save, tidy
from hvadam_bench.pages.formatting import NOTHING, ranged
from hvadam_bench.pages.palette import label, line, look
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.theory.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory, tally

Content = Mapping[str, Any]
# Three lines that are told apart: what is compared here are settings, not contenders.
LINES: tuple[dict[str, Any], ...] = tuple(
    {"color": look(name).light, "ls": dashes}
    for name, dashes in (("hvadam", "-"), ("adabelief", "--"), ("sgd_ema", "-."))
)
KINDS = dict(zip(("independent", "unbiased average", "average"), LINES, strict=True))
VARIANTS = {
    "theorem": (LINES[0], "constant β₁"),
    "corollary": (LINES[1], "decaying β₁"),
    "no maximum": (LINES[2], "constant β₁, no maximum"),
}
DOTTED: dict[str, Any] = {"color": "#000000", "ls": ":"}


def render(results: Results, out: Path) -> list[Path]:
    """Write the page and its figures below a folder; return their paths."""
    if "theory" not in results:
        return []
    page, found = out / "docs" / "theory.md", results["theory"]
    write_atomically(page, render_page(found).encode())
    drawn = {
        "hidden-vector": draw_hidden_vector(found.hidden_vector),
        "regret": draw_regret(found.regret),
        "nonconvex": draw_nonconvex(found.nonconvex),
    }
    figures = out / "docs" / "figures"
    return [page, *(save(drawn[name], figures / f"theory-{name}.png") for name in drawn)]


def render_page(found: Theory) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    b, c, d = found.hidden_vector, found.regret, found.nonconvex
    return render_template(
        Path(__file__).with_name("page.md.j2"),
        versions=found.versions,
        standings=found.standings,
        c_verdict=found.standings[REGRET].verdict,
        d_verdict=found.standings[NONCONVEX].verdict,
        interval=_interval,
        b=b,
        measured={(case["kind"], case["dimension"]): case["measured"] for case in b["cases"]},
        c=c,
        families={family["name"]: family["variants"] for family in c["families"]},
        d=d,
        halves=[case for one in d["problems"] for case in one["cases"] if case["k"] == 0.5],
    )


def summarize(results: Results) -> Iterable[str]:
    """Say in a few lines how many bounds were met, and whether anything diverged."""
    found: Theory = results["theory"]
    for theorem, one in found.standings.items():
        bound = "√(2π)σ/T" if theorem == HIDDEN_VECTOR else "the corrected bound"
        yield f"{theorem}: {one.verdict}; {one.within} within {bound}"
    curves = [
        *(case["measured"] for case in found.hidden_vector["cases"]),
        *(one["curve"] for family in found.regret["families"] for one in family["variants"]),
        *(case["curve"] for problem in found.nonconvex["problems"] for case in problem["cases"]),
        found.regret["adam_on_spikes"],
    ]
    yield f"diverged: {tally(curve is None for curve in curves)}"


def _interval(fit: Mapping[str, float] | None) -> str:
    return ranged(fit["value"], fit["low"], fit["high"], _hundredths) if fit else NOTHING


def _hundredths(x: float) -> str:
    text = f"{x:.2f}"
    return text if float(text) else text.removeprefix("-")


def draw_hidden_vector(study: Content) -> Figure:
    """Draw the distance to v* against steps, a panel per dimension, under the bound."""

    def paint(axes: Axes, dimension: int) -> None:
        own = {
            one["kind"]: one["measured"] for one in study["cases"] if one["dimension"] == dimension
        }
        for kind, style in KINDS.items():
            if found := own[kind]:
                shown = np.array(found["distance"])
                shown[shown <= 0] = 1e-16  # exact: below what is drawn
                axes.plot(found["steps"], shown, label=f"m: {kind}", **style)
                axes.plot(found["steps"], found["bound"], **DOTTED)
        axes.plot([], [], **DOTTED, label="bound √(2π)σ/T")
        axes.set(ylim=(1e-5, 5))

    dimensions = sorted({case["dimension"] for case in study["cases"]})
    panels = {f"{dimension} dimensions": dimension for dimension in dimensions}
    title = "Distance of the hidden vector from the trend"
    return _draw(title, panels, "steps T", "mean distance", paint)


def draw_regret(study: Content) -> Figure:
    """Draw regret against rounds, a panel per family, under the corollary's bound."""
    steps = np.array(study["steps"])

    def paint(axes: Axes, family: Content) -> None:
        for variant in family["variants"]:
            style, name = VARIANTS[variant["name"]]
            if curve := variant["curve"]:
                axes.plot(steps, curve["mean"], label=name, **style)
                ends = curve["low"], curve["high"]
                axes.fill_between(steps, *ends, color=style["color"], alpha=0.15, lw=0)
                if variant["name"] == "corollary":
                    total = variant["proof"]["corrected"]["total"]
                    axes.plot(steps, total, ":", color=style["color"], label="bound, decaying β₁")
                    trivial = variant["constants"]["trivial"] * steps / steps[-1]
                    axes.plot(steps, trivial, **DOTTED, label="whatever is played")
        if family["name"] == "spikes" and (adam := study["adam_on_spikes"]):
            axes.plot(steps, adam["mean"], label=label("adam"), **line("adam"))

    panels = {family["name"]: family for family in study["families"]}
    return _draw("Regret in online convex problems", panels, "rounds T", "regret", paint)


def draw_nonconvex(study: Content) -> Figure:
    """Draw the mean squared gradient norm against steps, with the slope of each rate.

    Where the fast rate should fall to is a thin line.
    """
    steps = np.array(study["steps"])
    tail = steps[steps >= steps[-1] / 10]

    def paint(axes: Axes, problem: Content) -> None:
        exponents = list(dict.fromkeys(case["k"] for case in problem["cases"]))
        for case in problem["cases"]:
            if not (curve := case["curve"]):
                continue
            style, name = LINES[exponents.index(case["k"])], f"k = {case['k']:g}, {case['rate']} α₀"
            if case["rate"] == problem["cases"][-1]["rate"]:
                axes.plot(steps, curve["mean"], label=name, **style)
                guide = curve["mean"][-1] * (tail / steps[-1]) ** case["slope_of_rate"]
                axes.plot(tail, 0.8 * guide, color=style["color"], lw=0.8)
            else:
                axes.plot(steps, curve["mean"], ":", color=style["color"], label=name)

    panels = {problem["name"]: problem for problem in study["problems"]}
    title = "Mean squared gradient norm, non-convex"
    return _draw(title, panels, "steps T", "mean of ‖∇f‖²", paint)


def _draw(
    title: str,
    panels: Mapping[str, Any],
    xlabel: str,
    ylabel: str,
    paint: Callable[[Axes, Any], None],
) -> Figure:
    """Draw panels below each other, on logarithmic axes, with one legend for all."""
    figure = blank(1.2 + 2.2 * len(panels))
    figure.suptitle(title, fontsize="large")
    entries: dict[str, Any] = {}
    every: list[Axes] = figure.subplots(len(panels), 1, squeeze=False)[:, 0].tolist()
    for axes, (name, content) in zip(every, panels.items(), strict=True):
        paint(axes, content)
        axes.set(xscale="log", yscale="log", ylabel=ylabel)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.minorticks_off()
        tidy(axes, grid=True)
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    every[-1].set_xlabel(xlabel)
    placed = {"loc": "outside lower center", "ncols": 2, "frameon": False}
    figure.legend(entries.values(), entries.keys(), **placed)
    return figure
