"""Markdown: what plain words need in it, where its lines break, what it is on other pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

LINE = 100
# What no line may break: code, links and pictures, short brackets such as intervals, formulas.
_WHOLE = r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)|\[[^\]]{1,40}\]|\$[^$]+\$"
_WORD = re.compile(rf"(?:{_WHOLE}|\S)+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
# What would begin a list or a heading at the start of a line.
_MARKER = re.compile(r"[-*+=]|\d+[.)]|#+")
_AS_IT_IS = ("|", "#", "<", ">", "!")
_ESCAPED = re.compile(r"[\\`*|]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|\[(?=[^\]]*\][(\[])")


class Markdown(str):
    """Text that is Markdown already; any other string is plain, and escaped where it is shown."""

    __slots__ = ()


def escape(text: str) -> str:
    r"""Return a text on one line in which nothing can end a cell or start markup."""
    if isinstance(text, Markdown):
        return text
    return _ESCAPED.sub(r"\\\g<0>", text).replace("\n", " ")


def wrap(text: str) -> str:
    """Return Markdown with paragraphs and list items filled to lines of at most 100 signs.

    Tables, headings, pictures, comments and code stay as they are; several empty lines become one.
    """
    lines: list[str] = []
    paragraph: list[str] = []
    in_code = False

    def flush() -> None:
        lines.extend(_filled(" ".join(paragraph)) if paragraph else ())
        paragraph.clear()

    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        indented = not paragraph and line.startswith("    ") and not _ITEM.match(line)
        if fence or in_code or indented or line.startswith(_AS_IT_IS):
            flush()
            lines.append(line)
            in_code ^= fence
        elif not line.strip():
            flush()
            if lines and lines[-1]:
                lines.append("")
        else:
            if _ITEM.match(line):
                flush()
            paragraph.append(line.strip() if paragraph else line.rstrip())
    flush()
    return "\n".join(lines).strip("\n")


class Picture(NamedTuple):
    """A picture with the words under it; `file` is its name without folders."""

    about: str
    file: str
    caption: Markup


class Section(NamedTuple):
    """What stands under a heading of a page.

    Attributes:
        title: The heading.
        picture: What the section begins with, if it is one; the next paragraph is its caption.
        body: The rest, as HTML.
        parts: What stands under the headings below it.
    """

    title: str
    picture: Picture | None
    body: Markup
    parts: Sequence[Section]

    @property
    def id(self) -> str:
        """Return the anchor that links to the heading have."""
        return re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")


def sections(text: str, level: int = 2) -> list[Section]:
    """Return the sections of a page of ours, as HTML."""
    found = []
    for one in re.split(rf"^{'#' * level} ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = one.partition("\n")
        own = re.split(rf"^{'#' * (level + 1)} ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
        shown = re.match(r"!\[(.*?)\]\((?:.*/)?(.*?)\)\n\n(.*?)(?:\n\n|\Z)", own, re.DOTALL)
        picture = Picture(shown[1], shown[2], to_html(shown[3])) if shown else None
        body = Markup(_parser().render(own[shown.end() :] if shown else own))
        found.append(Section(title, picture, body, sections(rest, level + 1)))
    return found


def to_html(text: str) -> Markup:
    r"""Return Markdown within a paragraph as HTML."""
    return Markup(_parser().renderInline(text))


def to_plain(text: str) -> str:
    """Return Markdown without its marks, for a terminal."""
    text = re.sub(r"(?<!\\)!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("<br>", ", ")
    text = re.sub(r"(?<!\\)(\*\*|\*|`)", "", text)
    return re.sub(r"\\([\\`*_|<\[])", r"\1", text)


def _filled(paragraph: str) -> list[str]:
    """Return the lines of a paragraph or list item, the later ones below the text of the first."""
    item = _ITEM.match(paragraph)
    first = item[0] if item else re.match(r"\s*", paragraph)[0]  # pyright: ignore[reportOptionalSubscript]
    indent = " " * len(first)
    lines = [first]
    for word in _words(paragraph[len(first) :]):
        empty = not lines[-1].strip() or lines[-1] == first
        if not empty and len(lines[-1]) + 1 + len(word) > LINE:
            lines.append(indent + word)
        else:
            lines[-1] += word if empty else f" {word}"
    return lines


def _words(text: str) -> list[str]:
    """Return what may not be broken, one by one; marks of a list stay with the word before."""
    words: list[str] = []
    for word in _WORD.findall(text):
        if words and _MARKER.fullmatch(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


@cache
def _parser() -> MarkdownIt:
    """Return what reads Markdown of ours, in which plain words are escaped: HTML is meant."""
    made = MarkdownIt("commonmark", {"html": True}).enable("table")
    made.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0">\n<table>\n')
    made.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return made
