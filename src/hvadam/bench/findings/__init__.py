"""What we found: the records of the comparison as pages, figures and the README's table.

``results/evidence.json`` holds every number that the pages quote; pages and figures are made from
it alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from hvadam.bench.findings import figures, howto, page, readme, summary
from hvadam.bench.findings.reading import Studies, planned, read
from hvadam.bench.records import Store, write_atomically
from hvadam.bench.report.found import Found
from hvadam.bench.report.page import render as render_report

__all__ = ["publish"]


def publish(
    evidence: Path, out: Path, console: Console, studies: Studies | None = None
) -> list[Path]:
    """Write everything below a directory, from what is finished of the evidence.

    Args:
        evidence: The folder that `hvadam evidence` fills.
        out: Where ``README.md``, ``docs`` and ``results`` are.
        console: Where it is told what was written.
        studies: What was planned, if not all of `hvadam evidence`.

    Raises:
        ValueError: no study is finished, or the README has no place for the table.
    """
    readings = read(evidence, planned() if studies is None else studies)
    if not any(reading.finished for reading in readings):
        runs = sum(reading.runs for reading in readings)
        raise ValueError(
            f"no study in {evidence} is finished ({runs} runs recorded), so there is nothing to "
            "tell; `hvadam evidence` makes them."
        )
    content = summary.summarize(readings, out / "results")
    front = out / "README.md"
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    texts = {
        out / "results" / "evidence.json": text.replace('},"', '},\n"') + "\n",
        out / "docs" / "findings.md": page.render(content),
        out / "docs" / "howto" / "coming-from-adamw.md": howto.render(content),
        front: _front(front, content),
    }
    for path, written in texts.items():
        write_atomically(path, written.encode())
    drawn = figures.draw_all(content, out / "docs" / "figures")
    report = out / "results" / "evidence.html"
    write_atomically(report, _report(evidence, content, drawn).encode())
    for path in (*texts, *drawn, report):
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    for one in content["unfinished"]:
        line = f"not finished: {one['part']}, {one['task']} {one['about']}".rstrip()
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return [*texts, *drawn, report]


def _report(evidence: Path, content: summary.Content, drawn: list[Path]) -> str:
    """The report of the tasks' records, which opens with what they say of the paper's claims."""
    pictures = {figures.name_of(path): path.read_bytes() for path in drawn}
    commands = ("make evidence", "make findings")
    found = Found(page.headline(content), content["claims"], pictures, commands)
    return render_report(Store(evidence / "tasks"), found)


def _front(path: Path, content: summary.Content) -> str:
    if not path.exists():
        raise ValueError(f"there is no {path}, in which the table belongs.")
    return readme.replace_block(path.read_text(encoding="utf-8"), content)
