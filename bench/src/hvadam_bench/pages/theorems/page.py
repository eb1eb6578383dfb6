"""The page of the theorems: its tables, and numbers for the sentences of its template."""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.pages.formatting import NOTHING, listed, number, ranged
from hvadam_bench.pages.markdown import Markdown
from hvadam_bench.pages.rendering import render as render_page
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies.theorems.result import (
    NONCONVEX,
    REGRET,
    Fit,
    HiddenVector,
    Nonconvex,
    NonconvexBound,
    Regret,
    RegretBound,
    RegretCurve,
    RegretVariant,
    Theory,
)

_RESTS = 1e-4  # a decay below it is none


def render(found: Theory) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    b, c, d = found.hidden_vector, found.regret, found.nonconvex
    return render_page(
        "theory.md.j2",
        versions=found.versions,
        standings_table=tabulate_standings(found),
        b=b,
        b_words=_words_on_hidden_vector(b),
        hidden_vector_table=tabulate_hidden_vector(b),
        c=c,
        c_verdict=found.standings[REGRET].verdict,
        c_words=_words_on_regret(c),
        regret_table=tabulate_regret(c),
        terms_table=tabulate_terms(c),
        constants_table=tabulate_constants(c),
        d=d,
        d_verdict=found.standings[NONCONVEX].verdict,
        d_words=_words_on_nonconvex(d),
        nonconvex_table=tabulate_nonconvex(d),
    )


def tabulate_standings(found: Theory) -> Table:
    """Return a row per theorem: the word for it, and the cases behind the word."""
    rows = [
        [theorem, Cell(one.verdict, mark=True), str(one.within), str(one.vacuous)]
        for theorem, one in found.standings.items()
    ]
    return Table(["", "verdict", "cases within the bound", "of these vacuous"], rows)


def tabulate_hidden_vector(study: HiddenVector) -> Table:
    """Return a row per dimension and kind of average."""
    times = [10, 100, study.steps]
    heads = ["d", "$m_t$", *(f"T = {t:,}" for t in times), "worst / bound", "exponent", "decay"]
    bounds = [number(study.constant / t) for t in times]
    rows = [["", Markdown("*the bound*"), *bounds, "", "-1", ""]]
    for case in study.cases:
        start, found = [str(case.dimension), case.kind], case.measured
        if found is None:
            rows.append([*start, "diverged"])
            continue
        at = [found.distance[found.steps.index(t)] for t in times]
        rate = found.rate if found.rate and found.rate > _RESTS else None
        decay = number(rate, 2)
        if rate and found.rate_predicted:
            decay += f" ({number(found.rate_predicted, 2)})"
        exponent = "exact" if found.exact else _interval(found.slope)
        worst = number(found.worst_ratio, 2)
        rows.append([*start, *(number(x, 2) for x in at), worst, exponent, decay])
    return Table(list(map(Markdown, heads)), rows)


def tabulate_regret(study: Regret) -> Table:
    """Return a row per family and variant: regret at powers of ten, its exponent, the bounds."""
    last = study.rounds
    times = [t for t in (last // 100, last // 10, last) if t in study.steps]
    places = [study.steps.index(t) for t in times]
    heads = [
        *("family", "variant", *(f"T = {t:,}" for t in times), r"by $\sqrt T$", "exponent"),
        *("bound, printed", "corrected", "trivial"),
    ]
    rows: list[list[str]] = []

    def add(family: str, name: str, curve: RegretCurve | None, *bounds: str) -> None:
        if curve is None:
            rows.append([family, name, "diverged"])
            return
        seen = [curve.mean[place] for place in places]
        rooted = [number(x / t**0.5, 2) for x, t in zip(seen, times, strict=True)][-2:]
        shown = [*map(number, seen), " → ".join(rooted), number(curve.slope, 2)]
        rows.append([family, name, *shown, *bounds])

    for family in study.families:
        for variant in family.variants:
            proof, constants = variant.proof, variant.constants
            printed = _bound(proof and proof.printed)
            corrected = _bound(proof and proof.corrected)
            trivial = number(constants and constants.trivial)
            add(family.name, variant.name, variant.curve, printed, corrected, trivial)
        if family.name == "spikes":
            add(family.name, Markdown("*Adam*"), study.adam_on_spikes, *[NOTHING] * 3)
    return Table(list(map(Markdown, heads)), rows)


def tabulate_terms(study: Regret) -> Table:
    """Return a row per term of the bound: measured sum, printed and corrected term."""
    rows = [
        [name, term, *(_term(family.variant(name), term) for family in study.families)]
        for name in ("theorem", "corollary")
        for term in ("P", "Q", "R", "S", "U")
    ]
    return Table(["variant", "term", *(family.name for family in study.families)], rows)


def tabulate_constants(study: Regret) -> Table:
    """Return what the proof takes for granted beside what was seen."""
    heads = [
        *("family", "variant", r"max $\lvert v_i \rvert$", "$G/2$", "max $s^{1/2}$"),
        *(r"$G/\sqrt\gamma$", "$c$", "$c_r$"),
    ]
    rows = [
        [
            *(family.name, variant.name),
            *(number(seen.hidden_max), number(seen.hidden_max_printed)),
            *(number(seen.root_max), number(seen.root_max_printed)),
            *(number(seen.floor), number(seen.gain_max)),
        ]
        for family in study.families
        for variant in map(family.variant, ("theorem", "corollary"))
        for seen in [variant.constants]
        if seen
    ]
    return Table(list(map(Markdown, heads)), rows)


def tabulate_nonconvex(study: Nonconvex) -> Table:
    """Return a row per problem, rate and exponent."""
    times = [t for t in (1, study.rounds // 100, study.rounds) if t in study.steps]
    places = [study.steps.index(t) for t in times]
    heads = [
        *("problem", "$α_0$", "k", *(f"T = {t:,}" for t in times), "exponent", "k - 1"),
        *("bound, printed", "corrected"),
    ]
    rows: list[list[str]] = []
    for problem in study.problems:
        for case in problem.cases:
            rate = f"{number(case.alpha0, 2)} ({case.rate})"
            start, curve = [problem.name, rate, f"{case.k:g}"], case.curve
            if curve is None:
                rows.append([*start, "diverged"])
                continue
            seen = [number(curve.mean[place]) for place in places]
            slopes = [_interval(curve.slope), number(case.slope_of_rate)]
            rows.append([*start, *seen, *slopes, _bound(case.printed), _bound(case.corrected)])
    return Table(list(map(Markdown, heads)), rows)


def _interval(fit: Fit | None) -> str:
    return NOTHING if fit is None else ranged(fit.value, fit.low, fit.high, _hundredths)


def _hundredths(x: float) -> str:
    text = f"{x:.2f}"
    return text if float(text) else text.removeprefix("-")


def _bound(found: RegretBound | NonconvexBound | None) -> str:
    if found is None:
        return NOTHING
    values = found.total if isinstance(found, RegretBound) else found.values
    return Markdown(number(values[-1]) + ("" if found.holds else " **broken**"))


def _term(variant: RegretVariant, term: str) -> str:
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
    halves = [case for case in study.cases if case.k == 0.5]

    def soonest(bounds: Sequence[NonconvexBound | None]) -> str:
        return f"{min((one.useful_from for one in bounds if one), default=float('inf')):.0f}"

    return {
        "soonest_printed": soonest([case.printed for case in halves]),
        "soonest_corrected": soonest([case.corrected for case in halves]),
        "trivials": listed(number(problem.trivial) for problem in study.problems),
    }
