"""``docs/findings.md``, the same folded, the guide from AdamW, and the README's block."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from hvadam_bench import contenders
from hvadam_bench.analysis.statistics import median
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.publishing.findings import tables, wording
from hvadam_bench.publishing.markdown import sections
from hvadam_bench.publishing.pages import asset, render, say
from hvadam_bench.studies.evidence.maps import CLEAR
from hvadam_bench.studies.evidence.result import Claim, Evidence, TaskEvidence
from hvadam_bench.sweeping.search import EXTENSIONS, ladder

WORDS = "findings.txt.j2"
START, END = "<!-- findings:start -->", "<!-- findings:end -->"
# Ratios up to this are told as "the same": the rates tried lie a factor of about 3 apart.
SAME = 1.8


def render_findings(evidence: Evidence) -> str:
    """Return the whole page, as Markdown beside a folder ``figures``."""
    return render(
        "findings.md.j2",
        **_shared(evidence),
        why=lambda claim: why(claim, evidence),
        off=_off_rates(evidence),
        most=tables.MOST,
        clear=CLEAR,
        extensions=EXTENSIONS,
        changed=any(len(values) > 1 for values in evidence.defaults.values()),
        by_standing=_by_standing(evidence.tasks),
        pace=median(pace.median or math.nan for _, pace in tables.paces(evidence.tasks))
        if tables.paces(evidence.tasks)
        else None,
    )


def render_evidence(
    evidence: Evidence, light: Mapping[str, bytes], dark: Mapping[str, bytes]
) -> str:
    """Return ``docs/evidence.html``: the findings on one page that folds, complete in itself.

    Args:
        evidence: What to tell.
        light: The figures as files, by their names.
        dark: The same on dark ground.
    """
    return render(
        "evidence.html.j2",
        **_shared(evidence),
        why=lambda claim: why(claim, evidence),
        anchors=tables.anchors(evidence),
        sections=sections(render_findings(evidence)),
        light={name: b64encode(png).decode() for name, png in light.items()},
        dark={name: b64encode(png).decode() for name, png in dark.items()},
        style=asset("report.css"),
        script=asset("tables.js"),
    )


def render_guide(evidence: Evidence) -> str:
    """Return ``docs/howto/coming-from-adamw.md``: where to start."""
    rows = evidence.rates.tasks
    seen = [task.hidden for task in evidence.tasks if task.hidden]
    return render(
        "coming_from_adamw.md.j2",
        **_shared(evidence),
        factor=factor(evidence.rates.median_ratio),
        same=sum(max(row.ratio, 1 / row.ratio) <= SAME for row in rows),
        runs=sum(one.runs for one in seen),
        woke=sum(one.woke for one in seen),
    )


def replace_block(text: str, evidence: Evidence) -> str:
    """Return a README with the block written anew, and nothing else changed.

    Raises:
        ValueError: it does not have both markers once, in their order.

    Example:
        >>> replace_block("no markers", None)
        Traceback (most recent call last):
        ValueError: the README needs the lines <!-- findings:start --> and ...
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end or START in rest or END in before + after:
        raise ValueError(
            f"the README needs the lines {START} and {END}, once each and in this order; add them "
            "where the table belongs."
        )
    return f"{before}{START}\n{render_block(evidence)}{END}{after}"


def render_block(evidence: Evidence) -> str:
    """Return the README's block: the answer, the table, the figure."""
    both = [t for t in evidence.tasks if {OURS, REFERENCE} <= t.contenders.keys()]
    cut = sorted({one.task for one in evidence.unfinished if one.part == "tasks"})
    return render("readme_block.md.j2", **_shared(evidence), shown=both, cut=cut)


def headline(evidence: Evidence) -> str:
    """Return the answer in a few sentences."""
    return say(WORDS, "headline", evidence)


def why(claim: Claim, evidence: Evidence) -> str:
    """Return the reason for a verdict."""
    tasks = {task.task: task for task in (*evidence.tasks, *evidence.generative)}
    return say(WORDS, "why", claim, tasks, evidence, wording)


def factor(ratio: float | None) -> float:
    """Return what to multiply AdamW's rate by: 1, or the nearest of 3, 10 and their inverses.

    Example:
        >>> factor(1.5), factor(3.3), factor(0.1), factor(None)
        (1.0, 3.0, 0.1, 1.0)
    """
    if ratio is None or max(ratio, 1 / ratio) <= SAME:
        return 1.0
    rungs = [ladder(1.0, rung) for rung in range(-6, 7)]
    return min(rungs, key=lambda rung: abs(math.log(rung / ratio)))


def _shared(evidence: Evidence) -> dict[str, Any]:
    return {
        "evidence": evidence,
        "tables": tables,
        "wording": wording,
        "headline": headline(evidence),
        "defaults": contenders.get(OURS).defaults,
    }


def _by_standing(tasks: tuple[TaskEvidence, ...]) -> dict[str, list[TaskEvidence]]:
    """Return the tasks by how HVAdam stands beside Adam on them."""
    found: dict[str, list[TaskEvidence]] = {}
    for task in tasks:
        if REFERENCE in task.duels:
            found.setdefault(task.duels[REFERENCE].standing, []).append(task)
    return found


def _off_rates(evidence: Evidence) -> dict[str, Any] | None:
    """Return what HVAdam loses at a rate three times off, beside the others."""
    found = tables.off_rates(evidence.tasks) if evidence.tasks else {}
    if OURS not in found:
        return None
    own = found[OURS]
    less = sum(other.worse < own.worse for other in found.values())
    return {
        "third": median(own.third),
        "triple": median(own.triple),
        "others": len(found) - 1,
        "less": less,
    }
