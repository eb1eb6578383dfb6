"""The pages of the comparison: `docs/findings.md`, the one page that folds, the README's answer."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from hvadam_bench.analysis import profiles
from hvadam_bench.analysis.effects import ALPHA, FEWEST_PAIRS, FURTHEST, POWER
from hvadam_bench.pages.markdown import sections
from hvadam_bench.pages.rendering import asset, say
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.evidence import tables
from hvadam_bench.studies.evidence.describe import LOOKED_AT
from hvadam_bench.studies.evidence.figures import draw_files
from hvadam_bench.studies.evidence.result import Evidence

FOLDER = Path(__file__).parent
START, END = "<!-- findings:start -->", "<!-- findings:end -->"


def render(results: Results, out: Path) -> list[Path]:
    """Write the pages and figures below a folder, and the answer in its README if it has one.

    Raises:
        ValueError: The README has no place for the answer.
    """
    if "evidence" not in results:
        return []
    evidence: Evidence = results["evidence"]
    docs, front = out / "docs", out / "README.md"
    drawn = draw_files(evidence)
    texts = {
        docs / "findings.md": render_findings(evidence),
        docs / "evidence.html": render_evidence(evidence, drawn),
    }
    if front.exists():
        texts[front] = replace_block(front.read_text(encoding="utf-8"), evidence)
    named = "".join(texts.values())  # the folding page has its own inside
    figures = {docs / "figures" / name: drawn[name] for name in drawn if f"figures/{name}" in named}
    files = {path: text.encode() for path, text in texts.items()} | figures
    for path, content in files.items():
        write_atomically(path, content)
    for stale in set((docs / "figures").glob("evidence-*")) - figures.keys():
        stale.unlink()
    return list(files)


def render_findings(evidence: Evidence) -> str:
    """Return the short page, as Markdown that expects a folder `figures`."""
    return render_template(
        FOLDER / "page.md.j2",
        evidence=evidence,
        lines=answer(evidence),
        costs=say(tables.WORDS, "on_costs", evidence) if evidence.costs else "",
        tables=tables,
        fewest=FEWEST_PAIRS,
        alpha=ALPHA,
        furthest=FURTHEST,
        looked_at=LOOKED_AT,
    )


def render_details(evidence: Evidence) -> str:
    """Return what the short page leaves out, as Markdown: every task, rate and run."""
    return render_template(
        FOLDER / "details.md.j2",
        evidence=evidence,
        tables=tables,
        power=POWER,
        share=profiles.SHARE,
        furthest=profiles.LARGEST_TAU,
    )


def render_evidence(evidence: Evidence, figures: Mapping[str, bytes]) -> str:
    """Return the short page and the details as one HTML page, complete in itself."""
    return render_template(
        FOLDER / "evidence.html.j2",
        evidence=evidence,
        lines=answer(evidence),
        sections=sections(render_findings(evidence)),
        details=sections(render_details(evidence)),
        pictures={name: b64encode(one).decode() for name, one in figures.items()},
        style=asset("report.css"),
        script=asset("tables.js"),
    )


def answer(evidence: Evidence) -> list[str]:
    """Return when to use HVAdam and when not, a line each."""
    lines = [
        *(say(tables.WORDS, "on_suite", suite) for suite in evidence.suites),
        say(tables.WORDS, "on_control", evidence.smooth),
        say(tables.WORDS, "on_best", evidence.suites),
        say(tables.WORDS, "on_rule", evidence.noise),
    ]
    return [line for line in lines if line]


def replace_block(text: str, evidence: Evidence) -> str:
    """Return a README with the answer written anew, and nothing else changed.

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
    return f"{before}{START}\n{render_block(evidence)}{END}{after}"


def render_block(evidence: Evidence) -> str:
    """Return the README's block: the answer and the figure."""
    return render_template(FOLDER / "readme.md.j2", evidence=evidence, lines=answer(evidence))
