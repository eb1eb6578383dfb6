"""``docs/theory.md`` out of ``results/theory.json``: every number in it is read, none is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hvadam.bench.theory import prose

Case = Mapping[str, Any]


def render(content: Mapping[str, Any]) -> str:
    """The whole page."""
    b, c, d = (content[name] for name in ("hidden_vector", "regret", "nonconvex"))
    parts = [
        prose.OPENING.format(rounds=f"{c['rounds']:,}", **content["versions"]),
        prose.HIDDEN_VECTOR.format(**b),
        hidden_vector_table(b),
        prose.HIDDEN_VECTOR_READING.format(**_hidden_vector_words(b)),
        prose.REGRET.format(**{**c, "families": _families(c)}),
        regret_table(c),
        prose.REGRET_READING.format(**_regret_words(c)),
        terms_table(c),
        prose.CONSTANTS,
        constants_table(c),
        prose.CONSTANTS_READING,
        prose.NONCONVEX.format(**{**d, "problems": _problems(d)}),
        nonconvex_table(d),
        prose.NONCONVEX_READING.format(**_nonconvex_words(d)),
        prose.CHECKED,
        table(["", "gap in the proof", "here"], prose.GAPS),
        prose.CLOSING,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def summary(content: Mapping[str, Any]) -> list[str]:
    """A few lines for the terminal: how many bounds were met, and whether anything diverged."""
    b, c, d = (content[name] for name in ("hidden_vector", "regret", "nonconvex"))
    variants = [variant for family in c["families"] for variant in family["variants"]]
    cases = [case for problem in d["problems"] for case in problem["cases"]]
    everything = [*b["cases"], *variants, *cases, c["adam_on_spikes"]]
    return [
        f"B: {_met(b['cases'], lambda x: x.get('within_bound'))} within √(2π)σ/T",
        f"C: {_met(variants, lambda x: x['corrected']['holds'] if 'corrected' in x else None)} "
        "within the corrected bound",
        f"D: {_met(cases, lambda x: x.get('corrected_holds'))} within the corrected bound",
        f"diverged: {sum(case['status'] == 'diverged' for case in everything)} "
        f"of {len(everything)}",
    ]


def hidden_vector_table(study: Case) -> str:
    """A row per dimension and kind of average."""
    times = [10, 100, study["steps"]]
    heads = ["d", "$m_t$", *(f"T = {t:,}" for t in times), "worst / bound", "exponent", "decay"]
    rows = [["", "*the bound*", *(number(study["constant"] / t) for t in times), "", "-1", ""]]
    for case in study["cases"]:
        start = [str(case["dimension"]), case["kind"]]
        if case["status"] == "diverged":
            rows.append([*start, "diverged"])
            continue
        at = [case["distance"][case["steps"].index(t)] for t in times]
        rate = (
            case["rate"] if case["rate"] and case["rate"] > 1e-4 else None
        )  # else it stands still
        decay = number(rate, 2)
        if rate and case["rate_predicted"]:
            decay += f" ({number(case['rate_predicted'], 2)})"
        rows.append(
            [
                *start,
                *(number(x, 2) for x in at),
                number(case["worst_ratio"], 2),
                "exact" if case["exact"] else _interval(case["slope"]),
                decay,
            ]
        )
    return table(heads, rows)


def regret_table(study: Case) -> str:
    """A row per family and variant: regret at powers of ten, its exponent, the bounds."""
    steps, last = study["steps"], study["rounds"]
    times = [t for t in (last // 100, last // 10, last) if t in steps]
    heads = [
        "family",
        "variant",
        *(f"T = {t:,}" for t in times),
        r"by $\sqrt T$",
        "exponent",
        "bound, printed",
        "corrected",
        "trivial",
    ]
    rows: list[list[str]] = []
    for family in study["families"]:
        variants = list(family["variants"])
        if family["name"] == "spikes":
            variants.append({"name": "*Adam*", **study["adam_on_spikes"]})
        for variant in variants:
            start = [family["name"], variant["name"]]
            if variant["status"] == "diverged":
                rows.append([*start, "diverged"])
                continue
            bounds = [_bound(variant.get(kind)) for kind in ("printed", "corrected")]
            rows.append(
                [
                    *start,
                    *(number(variant["regret"][steps.index(t)]) for t in times),
                    _by_root(variant["regret"], steps, times[-2:]),
                    number(variant["slope"], 2),
                    *bounds,
                    number(variant["trivial"]) if "trivial" in variant else "–",
                ]
            )
    return table(heads, rows)


def terms_table(study: Case) -> str:
    """A row per term of the bound: measured sum, printed and corrected term, of every family."""
    heads = ["variant", "term", *(family["name"] for family in study["families"])]
    rows: list[list[str]] = []
    for i, name in enumerate(("theorem", "corollary")):
        variants = [family["variants"][i] for family in study["families"]]
        for term in ("P", "Q", "R", "S", "U"):
            rows.append([name, term, *(_term(variant, term) for variant in variants)])
    return table(heads, rows)


def constants_table(study: Case) -> str:
    """What the proof takes for granted beside what was seen."""
    heads = [
        "family",
        "variant",
        r"max $\lvert v_i \rvert$",
        "$G/2$",
        "max $s^{1/2}$",
        r"$G/\sqrt\gamma$",
        "$c$",
        "$c_r$",
    ]
    names = (
        "hidden_max",
        "hidden_max_printed",
        "root_max",
        "root_max_printed",
        "floor",
        "gain_max",
    )
    rows = [
        [family["name"], variant["name"], *(number(variant[name]) for name in names)]
        for family in study["families"]
        for variant in family["variants"][:2]
        if variant["status"] == "ok"
    ]
    return table(heads, rows)


def nonconvex_table(study: Case) -> str:
    """A row per problem, rate and exponent."""
    steps, last = study["steps"], study["rounds"]
    times = [t for t in (1, last // 100, last) if t in steps]
    heads = [
        "problem",
        "$α_0$",
        "k",
        *(f"T = {t:,}" for t in times),
        "exponent",
        "k - 1",
        "bound, printed",
        "corrected",
    ]
    rows: list[list[str]] = []
    for problem in study["problems"]:
        for case in problem["cases"]:
            start = [
                problem["name"],
                f"{number(case['alpha0'], 2)} ({case['rate']})",
                f"{case['k']:g}",
            ]
            if case["status"] == "diverged":
                rows.append([*start, "diverged"])
                continue
            bounds = [
                _bound(
                    {"total": case[kind], "holds": case[f"{kind}_holds"]} if kind in case else None
                )
                for kind in ("printed", "corrected")
            ]
            rows.append(
                [
                    *start,
                    *(number(case["mean"][steps.index(t)]) for t in times),
                    _interval(case["slope"]),
                    number(case["slope_of_rate"]),
                    *bounds,
                ]
            )
    return table(heads, rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; short rows are filled up.

    Example:
        >>> print(table(["a", "b"], [["1"]]))
        | a | b |
        |---|---|
        | 1 |  |
    """
    lines = [list(heads), *([*row, *[""] * (len(heads) - len(row))] for row in rows)]
    written = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([written[0], "|" + "---|" * len(heads), *written[1:]])


def number(x: float | None, digits: int = 3) -> str:
    """Short, without a plus in the exponent; a dash for what there is not.

    Example:
        >>> number(1234567.0), number(-0.5), number(0.0), number(None), number(20772.0)
        ('1.23e6', '-0.5', '0', '–', '20,800')
        >>> number(412.0, 2)
        '410'
    """
    if x is None:
        return "–"
    if 10**digits <= abs(x) < 1e5:
        return f"{float(f'{x:.{digits}g}'):,.0f}"
    mantissa, _, exponent = f"{x:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _interval(fit: Case | None) -> str:
    if fit is None:
        return "–"
    value, low, high = (_signed_zero(f"{fit[key]:.2f}") for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _signed_zero(text: str) -> str:
    return text.removeprefix("-") if not float(text) else text


def _bound(found: Case | None) -> str:
    if found is None:
        return "–"
    return f"{number(found['total'][-1])}{'' if found['holds'] else ' **broken**'}"


def _by_root(regret: Sequence[float], steps: Sequence[int], times: Sequence[int]) -> str:
    return " → ".join(number(regret[steps.index(t)] / t**0.5, 2) for t in times)


def _term(variant: Case, term: str) -> str:
    if variant["status"] == "diverged":
        return "diverged"
    terms = [variant[kind]["terms"] for kind in ("printed", "corrected")]
    sizes = [sum(x for name, x in each.items() if name[0] == term) for each in terms]
    return f"{number(variant['sums'][term], 2)} ≤ {' / '.join(number(x, 2) for x in sizes)}"


def _met(cases: Iterable[Case], holds: Callable[[Case], bool | None]) -> str:
    found = [x for x in map(holds, cases) if x is not None]
    return f"{sum(found)} of {len(found)}"


def _families(study: Case) -> str:
    return "\n".join(f"- **{family['name']}**: {family['about']}" for family in study["families"])


def _problems(study: Case) -> str:
    return "\n".join(
        f"- **{problem['name']}**: {problem['about']}; L = {number(problem['lipschitz'])}, "
        f"N = {number(problem['steepest'])}, F = {number(problem['ceiling'])}, "
        f"C_l = {number(problem['least'])}, C_r = {number(problem['most'])} (measured: A between "
        f"{number(problem['extremes'][0])} and {number(problem['extremes'][1])})"
        for problem in study["problems"]
    )


def _hidden_vector_words(study: Case) -> dict[str, str]:
    cases = {(case["kind"], case["dimension"]): case for case in study["cases"]}
    largest = max(dimension for _, dimension in cases)
    alone = cases["independent", largest]
    least = _end(alone, "least_noise")
    return {
        "least": number(least and least * study["steps"]),
        "limit": number(study["limit_of_minimum"]),
        "constant": number(study["constant"]),
        "slope": _interval(alone.get("slope_of_minimum")),
        "dimension": str(largest),
        "broken": str(sum(case.get("norm_claims_broken", 0) for case in study["cases"])),
        "updates": f"{study['runs'] * study['steps'] * len(cases):,}",
        "stuck": number(_end(cases["average", largest], "distance")),
        "excess": number(cases["unbiased average", largest].get("worst_ratio"), 2),
        "excess10": number(cases["unbiased average", 10].get("worst_ratio"), 2),
    }


def _regret_words(study: Case) -> dict[str, str]:
    by_name = {family["name"]: family["variants"] for family in study["families"]}
    signs, spikes = by_name["signs"], by_name["spikes"]
    bound, regret = _end(signs[1], "corrected", "total"), _end(signs[1], "regret")
    return {
        "seeds": str(study["seeds"]),
        "constant_bound": number(_end(signs[0], "printed", "total"), 2),
        "trivial": number(signs[0].get("trivial"), 2),
        "signs_bound": number(bound, 2),
        "signs_ratio": number(bound / regret if bound and regret else None, 2),
        "adam_slope": number(study["adam_on_spikes"].get("slope"), 2),
        "no_maximum_slope": number(spikes[2].get("slope"), 2),
        "spikes_slopes": " and ".join(number(variant.get("slope"), 2) for variant in spikes[:2]),
    }


def _nonconvex_words(study: Case) -> dict[str, str]:
    cases = [case for problem in study["problems"] for case in problem["cases"]]
    halves = [case for case in cases if case["k"] == 0.5 and "printed_useful_from" in case]

    def soonest(kind: str) -> str:
        return f"{min((case[f'{kind}_useful_from'] for case in halves), default=float('inf')):.0f}"

    return {
        "seeds": str(study["seeds"]),
        "soonest_printed": soonest("printed"),
        "soonest_corrected": soonest("corrected"),
        "trivials": " and ".join(number(problem["trivial"]) for problem in study["problems"]),
    }


def _end(case: Case, *path: str) -> float | None:
    """The last value of a curve; None of a run that diverged."""
    found: Any = case
    for key in path:
        if key not in found:
            return None
        found = found[key]
    return found[-1]
