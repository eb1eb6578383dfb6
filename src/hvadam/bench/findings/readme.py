"""The README's block: one table and one figure, between two comments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam.bench.findings.page import headline
from hvadam.bench.findings.words import duel, listed, table, title, units_of, value, wrapped
from hvadam.bench.report.looks import OURS, REFERENCE

Content = Mapping[str, Any]
START, END = "<!-- findings:start -->", "<!-- findings:end -->"


def replace_block(text: str, content: Content) -> str:
    """A README with the block written anew, and nothing else changed.

    Raises:
        ValueError: it does not have both markers once, in their order.

    Example:
        >>> replace_block("no markers", {})
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
    return f"{before}{START}\n{render(content)}\n{END}{after}"


def render(content: Content) -> str:
    """The block: the answer, the table, the figure."""
    boards = [b for b in content["tasks"] if OURS in b["entries"] and REFERENCE in b["entries"]]
    if not boards:
        return wrapped(headline(content))
    heads = ["task", "measure", "HVAdam", "Adam", "HVAdam − Adam", "n"]
    rows: list[list[str]] = []
    for board in boards:
        units, entries = units_of(board), board["entries"]
        rows.append(
            [
                title(board),
                f"{units.name} {'↓' if board['goal'] == 'min' else '↑'}",
                *(value(entries[name], units) for name in (OURS, REFERENCE)),
                duel(board, board["duels"][REFERENCE], OURS, REFERENCE),
                str(entries[OURS]["n"]),
            ]
        )
    cut = sorted({one["task"] for one in content["unfinished"] if one["part"] == "tasks"})
    notes = (
        "Median over n fresh seeds and 95% interval; the difference is paired by seed, its "
        "interval corrected for all contenders of the task, and a tie if it includes 0. The tasks "
        "are small: a result at this scale need not hold at another."
    )
    if cut:
        notes += f" Not finished: {listed(cut)}."
    parts = [
        headline(content),
        table(heads, rows),
        "![HVAdam beside Adam, task by task](docs/figures/evidence-against-adam.png)",
        f"{notes} `make findings` writes this from the records; [what we found](docs/findings.md) "
        "has the paper's claims one by one, and "
        "[coming from AdamW](docs/howto/coming-from-adamw.md) where to start.",
    ]
    return wrapped("\n\n".join(parts))
