"""One kind of table, which Markdown, HTML and the terminal show with the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hvadam_bench.analysis.effects import Judgement
from hvadam_bench.pages.markdown import Markdown, escape, to_plain
from hvadam_bench.pages.palette import label
from hvadam_bench.running.records import Record

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Cell:
    """The content of one cell.

    Attributes:
        text: In words and numbers; plain, or `Markdown`.
        mark: Whether it stands out: bold, or on a ground of its own.
        contender: Whose name it is; a page draws their line beside it.
        records: What it was computed from; a page lists them.
        judgement: A paired difference and its verdict; a page draws it.
    """

    text: str
    mark: bool = False
    contender: str = ""
    records: Sequence[Record] = ()
    judgement: Judgement | None = None

    @classmethod
    def of(cls, contender: str) -> Cell:
        """Return the cell with a contender's label."""
        return cls(label(contender), contender=contender)


@dataclass(frozen=True)
class Table:
    """Rows of cells under their heads, with a title and words on how to read it.

    Attributes:
        heads: One for each column.
        rows: Cells, or texts that stand for them; what a row lacks at its end is empty.
        title: What it is of.
        reading: How to read it; a line each.
        right: The columns, by their place, whose numbers stand below each other.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    reading: str = ""
    right: Sequence[int] = ()

    @classmethod
    def of_rows(
        cls, rows: Sequence[Mapping[str, Cell | str]], title: str = "", reading: str = ""
    ) -> Table:
        """Return the table of rows that name their columns, which are the same in all."""
        heads = list(rows[0]) if rows else []
        return cls(heads, [list(row.values()) for row in rows], title, reading)

    @property
    def cells(self) -> list[list[Cell]]:
        """Return the rows, all of one length."""
        filled = [[*row, *[""] * (len(self.heads) - len(row))] for row in self.rows]
        return [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in filled]

    def markdown(self) -> str:
        """Return the bare table in Markdown; what is marked is bold."""
        rows = [
            [f"**{escape(c.text)}**" if c.mark else escape(c.text) for c in row]
            for row in self.cells
        ]
        rules = ["--:" if i in self.right else "---" for i in range(len(self.heads))]
        lines = [_line([_piped(escape(head)) for head in self.heads]), f"|{'|'.join(rules)}|"]
        return "\n".join([*lines, *(_line(map(_piped, row)) for row in rows)])

    def terminal(self) -> RichTable:
        """Return the table as rich prints it, title and reading included."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        shown = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            title=Text(self.title) if self.title else None,
            title_justify="left",
            caption=Text(self.reading) if self.reading else None,
            caption_justify="left",
        )
        for i, head in enumerate(self.heads):
            right = i in self.right
            named = any(row[i].contender for row in self.cells)
            shown.add_column(
                Text(_plain(head)),
                justify="right" if right else "left",
                no_wrap=right or named,
                overflow="fold",
            )
        for row in self.cells:
            shown.add_row(*(Text(_plain(c.text), "bold" if c.mark else "") for c in row))
        return shown


def _line(cells: Sequence[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _piped(text: str) -> str:
    """Return a text whose bars end no cell, whether they were escaped before or not."""
    return text.replace("\\|", "|").replace("|", "\\|")


def _plain(text: str) -> str:
    return to_plain(text) if isinstance(text, Markdown) else text
