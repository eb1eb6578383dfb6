"""The page of the theorems: numbers for the sentences and tables of its template."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hvadam_bench.pages.figures import save
from hvadam_bench.pages.formatting import NOTHING, listed, number, ranged
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.theory import figures
from hvadam_bench.studies.theory.result import (
    HIDDEN_VECTOR,
    NONCONVEX,
    REGRET,
    Fit,
    HiddenVector,
    HiddenVectorMeasured,
    Nonconvex,
    NonconvexBound,
    Regret,
    RegretCurve,
    RegretVariant,
    Theory,
    tally,
)

_RESTS = 1e-4  # a decay below it is none


def render(results: Results, out: Path) -> list[Path]:
    """Write the page and its figures below a folder; return their paths."""
    if "theory" not in results:
        return []
    page = out / "docs" / "theory.md"
    write_atomically(page, render_page(results["theory"]).encode())
    return [
        page,
        *(
            save(figure, out / "docs" / "figures" / f"theory-{name}.png")
            for name, figure in figures.draw_all(results["theory"]).items()
        ),
    ]


def render_page(found: Theory) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    b, c, d = found.hidden_vector, found.regret, found.nonconvex
    standings = found.standings
    return render_template(
        Path(__file__).with_name("page.md.j2"),
        versions=found.versions,
        standings=standings,
        interval=_interval,
        b=b,
        b_words=_words_on_hidden_vector(b),
        decay=_decay,
        c=c,
        c_times=[t for t in (c.rounds // 100, c.rounds // 10, c.rounds) if t in c.steps],
        c_verdict=standings[REGRET].verdict,
        c_words=_words_on_regret(c),
        by_root=lambda curve: _by_root(c, curve),
        compare_term=_compare_term,
        d=d,
        d_times=[t for t in (1, d.rounds // 100, d.rounds) if t in d.steps],
        d_verdict=standings[NONCONVEX].verdict,
        d_words=_words_on_nonconvex(d),
    )


def summarize(results: Results) -> Iterable[str]:
    """Say in a few lines how many bounds were met, and whether anything diverged."""
    found: Theory = results["theory"]
    for theorem, one in found.standings.items():
        bound = "√(2π)σ/T" if theorem == HIDDEN_VECTOR else "the corrected bound"
        yield f"{theorem}: {one.verdict}; {one.within} within {bound}"
    curves = [
        *(case.measured for case in found.hidden_vector.cases),
        *(one.curve for family in found.regret.families for one in family.variants),
        *(case.curve for problem in found.nonconvex.problems for case in problem.cases),
        found.regret.adam_on_spikes,
    ]
    yield f"diverged: {tally(curve is None for curve in curves)}"


def _interval(fit: Fit | None) -> str:
    return NOTHING if fit is None else ranged(fit.value, fit.low, fit.high, _hundredths)


def _hundredths(x: float) -> str:
    text = f"{x:.2f}"
    return text if float(text) else text.removeprefix("-")


def _decay(found: HiddenVectorMeasured) -> str:
    """Return r of the decay at the end, and the r that is predicted."""
    if not found.rate or found.rate <= _RESTS:
        return NOTHING
    predicted = f" ({number(found.rate_predicted, 2)})" if found.rate_predicted else ""
    return number(found.rate, 2) + predicted


def _by_root(study: Regret, curve: RegretCurve) -> str:
    """Return the regret over √T, a tenfold before the end and at it."""
    times = [t for t in (study.rounds // 10, study.rounds) if t in study.steps]
    return " → ".join(number(curve.mean[study.steps.index(t)] / t**0.5, 2) for t in times)


def _compare_term(variant: RegretVariant, term: str) -> str:
    """Return a measured sum of the proof, and the printed and the corrected term."""
    if variant.proof is None:
        return "diverged"
    bounds = (variant.proof.printed, variant.proof.corrected)
    sizes = [sum(x for name, x in each.terms.items() if name[0] == term) for each in bounds]
    return f"{number(variant.proof.sums[term], 2)} ≤ {' / '.join(number(x, 2) for x in sizes)}"


def _words_on_hidden_vector(study: HiddenVector) -> dict[str, str]:
    found = {(case.kind, case.dimension): case.measured for case in study.cases}
    largest = max(dimension for _, dimension in found)
    alone, stuck = found["independent", largest], found["average", largest]
    late, late10 = (found["unbiased average", dimension] for dimension in (largest, 10))
    return {
        "dimension": str(largest),
        "least": number(alone and alone.least_noise[-1] * study.steps),
        "slope": _interval(alone and alone.slope_of_minimum),
        "stuck": number(stuck and stuck.distance[-1]),
        "excess": number(late and late.worst_ratio, 2),
        "excess10": number(late10 and late10.worst_ratio, 2),
        "broken": str(sum(one.norm_claims_broken for one in found.values() if one)),
        "updates": f"{study.runs * study.steps * len(found):,}",
    }


def _words_on_regret(study: Regret) -> dict[str, str]:
    constant, decaying, _ = study.family("signs").variants
    spikes = [variant.curve for variant in study.family("spikes").variants]
    slopes = [number(curve and curve.slope, 2) for curve in spikes]
    adam, proof = study.adam_on_spikes, decaying.proof
    bound = proof and proof.corrected.total[-1]
    regret = decaying.curve and decaying.curve.mean[-1]
    return {
        "constant_bound": number(constant.proof and constant.proof.printed.total[-1], 2),
        "trivial": number(constant.constants and constant.constants.trivial, 2),
        "signs_bound": number(bound, 2),
        "signs_ratio": number(bound / regret if bound and regret else None, 2),
        "adam_slope": number(adam and adam.slope, 2),
        "no_maximum_slope": slopes[2],
        "spikes_slopes": listed(slopes[:2]),
    }


def _words_on_nonconvex(study: Nonconvex) -> dict[str, str]:
    halves = [case for problem in study.problems for case in problem.cases if case.k == 0.5]

    def soonest(bounds: Iterable[NonconvexBound | None]) -> str:
        return f"{min((one.useful_from for one in bounds if one), default=float('inf')):.0f}"

    return {
        "soonest_printed": soonest(case.printed for case in halves),
        "soonest_corrected": soonest(case.corrected for case in halves),
        "trivials": listed(number(problem.trivial) for problem in study.problems),
    }
