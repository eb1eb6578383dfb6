"""All that a store of records says, as one page that needs no network and no framework.

Example:
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hvadam_bench.running.records import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [page] = write(Store(Path(folder)), Path(folder, "report.html"))
    ...     "no records" in page.read_text(encoding="utf-8")
    True
"""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages.report.page import render_html, render_markdown
from hvadam_bench.running.records import Store, write_atomically

__all__ = ["write"]


def write(
    store: Store, out: Path, *, with_markdown: bool = False, paths: Path | None = None
) -> list[Path]:
    """Write the page and, if asked, its tables as Markdown beside it.

    What cannot be read, or was made by other code than today's, is left out and named on the page.

    Args:
        store: Where the records are.
        out: The page.
        with_markdown: Also write the tables, to `out` with the ending ``.md``.
        paths: A picture of paths on a toy function to show before the tasks, if there is one.

    Returns:
        What was written.
    """
    pages = {out: render_html(store, paths.read_bytes() if paths else None)}
    if with_markdown:
        pages[out.with_suffix(".md")] = render_markdown(store)
    for path, text in pages.items():
        write_atomically(path, text.encode())
    return list(pages)
