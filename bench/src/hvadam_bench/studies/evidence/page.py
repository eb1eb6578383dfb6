"""The pages of the comparison: `docs/findings.md`, the one page that folds, the README's answer.

Sentences and tables stand in the templates; here is how a cell writes its numbers. A number that
does not exist is never written as one.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from hvadam_bench.analysis import effects, profiles
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.pages import formatting
from hvadam_bench.pages.formatting import CLOSE, NOTHING, Units, number, three_digits
from hvadam_bench.pages.markdown import sections
from hvadam_bench.pages.rendering import asset
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.evidence.describe import LOOKED_AT, Plain, describe_costs
from hvadam_bench.studies.evidence.figures import draw_files
from hvadam_bench.studies.evidence.plan import PARTS

FOLDER = Path(__file__).parent
START, END = "<!-- findings:start -->", "<!-- findings:end -->"


def render(results: Results, out: Path) -> list[Path]:
    """Write the pages and their figures below a folder, and the answer in its README, if any.

    Raises:
        ValueError: The README has no place for the answer.
    """
    if "evidence" not in results:
        return []
    evidence: Plain = results["evidence"]
    docs, front = out / "docs", out / "README.md"
    drawn = draw_files(evidence)
    findings, block = (render_part(part, evidence) for part in ("findings", "readme"))
    files = {
        docs / "findings.md": findings.encode(),
        docs / "evidence.html": render_evidence(evidence, drawn).encode(),
    }
    if front.exists():
        files[front] = replace_block(front.read_text(encoding="utf-8"), block).encode()
    for name, content in drawn.items():
        if name in findings + block:  # the page that folds has its own inside
            files[docs / "figures" / name] = content
    for path, content in files.items():
        write_atomically(path, content)
    for stale in set((docs / "figures").glob("evidence-*")) - files.keys():
        stale.unlink()
    return list(files)


def render_part(part: str, evidence: Plain) -> str:
    """Return the "findings", the "details" that they leave out, or the block of the "readme"."""
    suites = _suites(evidence)
    return render_template(
        FOLDER / "page.md.j2",
        part=part,
        evidence=evidence,
        suites=suites,
        tasks=[task for suite in suites for task in suite["tasks"]],
        effects=effects,
        profiles=profiles,
        looked_at=LOOKED_AT,
        rival=_rival,
        unit=lambda task: units_of(task).name,
        **{one.__name__: one for one in (amount, difference, judged, median, taken, value)},
    )


def render_evidence(evidence: Plain, figures: Mapping[str, bytes]) -> str:
    """Return the short page and the details as one HTML page, complete in itself."""
    return render_template(
        FOLDER / "evidence.html.j2",
        evidence=evidence,
        lines=answer(evidence),
        sections={one.title: one for one in sections(render_part("findings", evidence))},
        details=sections(render_part("details", evidence)),
        pictures={name: b64encode(one).decode() for name, one in figures.items()},
        style=asset("report.css"),
        script=asset("tables.js"),
    )


def answer(evidence: Plain) -> list[str]:
    """Return when to use HVAdam and when not, a line each."""
    items = re.findall(r"^- (.+?)(?=^-|^$)", render_part("readme", evidence), re.M | re.S)
    return [" ".join(item.split()) for item in items]


def replace_block(text: str, block: str) -> str:
    """Return a README with a new block between its markers, and nothing else changed.

    Raises:
        ValueError: It does not have both markers once, in their order.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end or START in rest or END in before + after:
        raise ValueError(
            f"the README needs the lines {START} and {END}, once each and in this order; add them "
            "where the answer belongs."
        )
    return f"{before}{START}\n{block}{END}{after}"


def printed(found: Results) -> Iterator[Table | str]:
    """Give the tables and lines that a terminal shows of new results."""
    for task, one in found.get("baselines", {"of": {}})["of"].items():
        yield f"{task}: {one['method']} reaches {one['test']:g}"
    if times := found.get("evaluation-times"):
        costs = describe_costs(times)["of"].items()
        rows = [[task, Cell.of(name), taken(own[name])] for task, own in costs for name in own]
        yield Table(["task", "", "ms per evaluation (× the first's)"], rows)
        if times["alone"] is False:
            yield "Other processes kept the machine busy meanwhile: measure again when it is quiet."
    if evidence := found.get("evidence"):
        cut = [one for part in PARTS for one in evidence[part]["unfinished"]]
        yield from (f"not finished: {one['task']} {one['about']}".rstrip() for one in cut)


def units_of(task: Plain) -> Units:
    """Return how a task's values are written."""
    ends = [[x for x in one["values"] if x is not None] for one in task["contenders"].values()]
    return Units(Metric(task["metric"], task["goal"]), ends)


def value(x: float | None, task: Plain) -> str:
    """Return where a run ended: losses that are compared by factors in two digits.

    Other values have as many decimals as their spread over seeds allows.
    """
    if x is None:
        return "diverged"
    by_factors = task["unit"] == "factor" and task["margin"] >= CLOSE
    return number(x, 2) if by_factors else units_of(task).value(x)


def median(name: str, task: Plain) -> str:
    """Return a contender's median over runs, and how many of them diverged."""
    one = task["contenders"][name]
    lost = one["values"].count(None)
    note = (
        f", {lost} of {len(one['values'])} diverged" if lost and one["median"] is not None else ""
    )
    return value(one["median"], task) + note


def judged(found: Plain | None, task: Plain) -> str:
    """Return a paired difference and a word on it; a task that nobody solves has no verdict."""
    if found is None:
        return NOTHING
    return f"{difference(found, task)} {found['verdict'] if task['solved'] else 'no verdict'}"


def difference(found: Plain, task: Plain) -> str:
    """Return a paired difference with its interval.

    A ratio of losses is ours over theirs, so that below 1 is better, and in percent where little
    matters. Points of accuracy are better above 0.
    """
    middle, *ends = (found[name] for name in ("amount", "low", "high"))
    low, high = (-math.inf, math.inf) if None in ends else ends
    if middle is None:
        return NOTHING
    if task["unit"] == "points":
        return formatting.ranged(middle, low, high, lambda x: formatting.signed(x, 2))
    return formatting.relative(middle, low, high, task["margin"])


def amount(x: float | None, task: Plain) -> str:
    """Return a difference without a sign: a factor, percents or points."""
    if x is None:
        return NOTHING
    if task["unit"] == "points":
        return f"{x:.2f} points"
    if task["margin"] < CLOSE:
        return f"{100 * math.expm1(x):.2f}%"
    return f"a factor of {math.exp(x):.3g}"


def taken(cost: Plain | None) -> str:
    """Return the milliseconds of an evaluation, and how many times the reference's they are."""
    if cost is None:
        return NOTHING
    return f"{three_digits(cost['milliseconds'])} (×{cost['ratio']:.2f})"


def _suites(evidence: Plain) -> list[Plain]:
    return [evidence["smooth"], evidence["minibatch"]]


def _rival(suite: Plain) -> str | None:
    """Return who is most often the best of Adam's family with HVAdam behind; None if nobody."""
    best = [(one["family_best"], one["duels"]) for one in suite["tasks"] if one["solved"]]
    ahead = [name for name, duels in best if name and duels[name]["verdict"] == "behind"]
    return Counter(ahead).most_common(1)[0][0] if ahead else None
