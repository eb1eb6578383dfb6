"""What we found: the evidence as pages, figures and the README's table.

``results/evidence.json`` holds every number that the pages quote; pages and figures are made from
it alone.
"""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.publishing.findings import figures
from hvadam_bench.publishing.findings.page import (
    render_evidence,
    render_findings,
    render_guide,
    replace_block,
)
from hvadam_bench.publishing.palette import DARK, LIGHT
from hvadam_bench.running.records import write_atomically
from hvadam_bench.studies.evidence.result import Evidence

__all__ = ["publish"]


def publish(evidence: Evidence, out: Path) -> list[Path]:
    """Write the pages, the figures, the README's table and the numbers below a directory.

    Args:
        evidence: What to tell.
        out: Where ``README.md``, ``docs`` and ``results`` are.

    Returns:
        What was written.

    Raises:
        ValueError: the README is not there, or has no place for the table.
    """
    front, docs = out / "README.md", out / "docs"
    if not front.exists():
        raise ValueError(f"there is no {front}, in which the table belongs.")
    light, dark = (figures.draw_all(evidence, ground) for ground in (LIGHT, DARK))
    texts = {
        out / "results" / "evidence.json": evidence.to_text(),
        docs / "findings.md": render_findings(evidence),
        docs / "evidence.html": render_evidence(evidence, light, dark),
        docs / "howto" / "coming-from-adamw.md": render_guide(evidence),
        front: replace_block(front.read_text(encoding="utf-8"), evidence),
    }
    drawn = {docs / "figures" / name: picture for name, picture in light.items()}
    files = {path: text.encode() for path, text in texts.items()} | drawn
    for path, content in files.items():
        write_atomically(path, content)
    for stale in set((docs / "figures").glob("evidence-*.png")) - drawn.keys():
        stale.unlink()
    return list(files)
