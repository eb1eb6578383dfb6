"""All that a store of records says, as one page that needs no network and no framework.

Example:
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hvadam.bench.records import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [page] = write(Store(Path(folder)), Path(folder, "report.html"))
    ...     "no records" in page.read_text(encoding="utf-8")
    True
"""

from __future__ import annotations

from pathlib import Path

from hvadam.bench.records import Store, write_atomically
from hvadam.bench.report import verdicts
from hvadam.bench.report.boards import arrange
from hvadam.bench.report.page import board_tables, heading, on_published, render
from hvadam.bench.report.tables import escape

__all__ = ["markdown", "write"]


def write(store: Store, out: Path, *, with_markdown: bool = False) -> list[Path]:
    """Write the page and, if asked, its tables as Markdown beside it.

    Args:
        store: Where the records are.
        out: The page.
        with_markdown: Also write the tables, to `out` with the ending ``.md``.

    Returns:
        What was written.

    Raises:
        ValueError: the store holds a file that is no record.
    """
    pages = {out: render(store)}
    if with_markdown:
        pages[out.with_suffix(".md")] = markdown(store)
    for path, text in pages.items():
        write_atomically(path, text.encode())
    return list(pages)


def markdown(store: Store) -> str:
    """Verdicts and tables, without charts."""
    boards = arrange(store)
    found = [verdicts.verdict(board) for board in boards]
    parts = [f"# Benchmark\n\n{verdicts.overall(found)}"]
    for board, one in zip(boards, found, strict=True):
        parts.append(f"## {escape(f'{board.title} ({heading(board)})')}")
        parts.append(escape(f"{one.sentence} {one.others}".strip()))
        parts.append(on_published(board))
        parts += [table.markdown() for table in board_tables(board)]
    return "\n\n".join(parts) + "\n"
