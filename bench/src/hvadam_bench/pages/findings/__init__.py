"""What we found: the evidence as pages, figures and the README's answer.

``results/evidence.json`` holds every number that the pages quote; pages and figures are made from
it alone.
"""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages.findings.figures import files_of
from hvadam_bench.pages.findings.page import render_evidence, render_findings, replace_block
from hvadam_bench.running.records import write_atomically
from hvadam_bench.studies.evidence.result import Evidence

__all__ = ["publish"]


def publish(evidence: Evidence, out: Path) -> list[Path]:
    """Write the pages, the figures, the README's answer and the numbers below a directory.

    Args:
        evidence: What to tell.
        out: Where ``README.md``, ``docs`` and ``results`` are.

    Returns:
        What was written.

    Raises:
        ValueError: the README is not there, or has no place for the answer.
    """
    front, docs = out / "README.md", out / "docs"
    if not front.exists():
        raise ValueError(f"there is no {front}, in which the answer belongs.")
    drawn = files_of(evidence)
    texts = {
        out / "results" / "evidence.json": evidence.to_text(),
        docs / "findings.md": render_findings(evidence),
        docs / "evidence.html": render_evidence(evidence, drawn),
        front: replace_block(front.read_text(encoding="utf-8"), evidence),
    }
    figures = {docs / "figures" / name: content for name, content in drawn.items()}
    files = {path: text.encode() for path, text in texts.items()} | figures
    for path, content in files.items():
        write_atomically(path, content)
    for stale in set((docs / "figures").glob("evidence-*")) - figures.keys():
        stale.unlink()
    return list(files)
