"""``docs/findings.md``, the same on one page that folds, and the README's block."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from hvadam_bench.analysis import profiles
from hvadam_bench.analysis.effects import ALPHA, FEWEST_PAIRS, FURTHEST, POWER
from hvadam_bench.pages.findings import tables, wording
from hvadam_bench.pages.markdown import sections
from hvadam_bench.pages.rendering import asset, render, say
from hvadam_bench.studies.evidence.noise import LOOKED_AT
from hvadam_bench.studies.evidence.result import Evidence

WORDS = "findings.txt.j2"
START, END = "<!-- findings:start -->", "<!-- findings:end -->"


def render_findings(evidence: Evidence) -> str:
    """Return the whole page, as Markdown beside a folder ``figures``."""
    return render(
        "findings.md.j2",
        evidence=evidence,
        lines=lines(evidence),
        costs=say(WORDS, "on_costs", evidence) if evidence.costs else "",
        tables=tables,
        fewest=FEWEST_PAIRS,
        alpha=ALPHA,
        furthest=FURTHEST,
        looked_at=LOOKED_AT,
    )


def render_details(evidence: Evidence) -> str:
    """Return what the short page leaves out, as Markdown: every task, rate and run."""
    return render(
        "findings_details.md.j2",
        evidence=evidence,
        tables=tables,
        wording=wording,
        power=POWER,
        share=profiles.SHARE,
        furthest=profiles.LARGEST_TAU,
    )


def render_evidence(evidence: Evidence, figures: Mapping[str, bytes]) -> str:
    """Return ``docs/evidence.html``: findings and details on one page, complete in itself.

    Args:
        evidence: What to tell.
        figures: As files, by their names.
    """
    return render(
        "evidence.html.j2",
        evidence=evidence,
        lines=lines(evidence),
        sections=sections(render_findings(evidence)),
        details=sections(render_details(evidence)),
        pictures={name: b64encode(one).decode() for name, one in figures.items()},
        style=asset("report.css"),
        script=asset("tables.js"),
    )


def lines(evidence: Evidence) -> list[str]:
    """Return the answer: when to use it and when not, a line each."""
    said = [
        *(say(WORDS, "on_suite", suite) for suite in evidence.suites),
        say(WORDS, "on_control", evidence.smooth),
        say(WORDS, "on_best", evidence.suites),
        say(WORDS, "on_rule", evidence.noise),
    ]
    return [line for line in said if line]


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
            "where the answer belongs."
        )
    return f"{before}{START}\n{render_block(evidence)}{END}{after}"


def render_block(evidence: Evidence) -> str:
    """Return the README's block: the answer and the figure."""
    return render("readme_block.md.j2", evidence=evidence, lines=lines(evidence))
