"""Pages out of templates: Markdown that is wrapped as prose, and HTML in one file.

A template ``NAME.md.j2`` makes Markdown, in which a string is shown as it is (`| text` escapes a
plain one); ``NAME.html.j2`` makes HTML, in which strings are escaped; ``NAME.txt.j2`` holds
sentences that several pages share. A study's templates lie in its own folder and are named by their
path, those of all pages lie in ``templates`` and are named by their file. All filters below serve
all templates.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from hvadam_bench.pages import formatting, markdown
from hvadam_bench.pages.palette import label

PACKAGE = "hvadam_bench.pages"
FILTERS: dict[str, Callable[..., str]] = {
    "counted": formatting.counted,
    "g": "{:g}".format,
    "inline": markdown.to_html,
    "label": label,
    "listed": formatting.listed,
    "number": formatting.number,
    "rate": formatting.rate,
    "share": formatting.share,
    "spanned": formatting.spanned,
    "text": markdown.escape,
    "thousands": "{:,.0f}".format,
    "times": "{:.2f}".format,
}


def render(template: str | Path, **content: Any) -> str:
    """Return a page of a template, ``page.html.j2`` or the path of one elsewhere.

    A name that the template has and `content` has not is an error.
    """
    page = _environment().get_template(str(template)).render(**content)
    return page if _is_html(str(template)) else markdown.wrap(page) + "\n"


def say(template: str | Path, macro: str, *arguments: Any, **named: Any) -> str:
    """Return what a macro of a template of plain words says, a line for each of its paragraphs.

    The arguments are the macro's. Its words are escaped where they are shown.
    """
    spoken = getattr(_environment().get_template(str(template)).module, macro)
    paragraphs = str(spoken(*arguments, **named)).split("\n\n")
    return "\n".join(" ".join(one.split()) for one in paragraphs if one.strip())


def asset(name: str) -> Markup:
    """Return a style or a script that a page has inside."""
    return Markup(files(PACKAGE).joinpath("templates", name).read_text(encoding="utf-8"))


def embed(content: Any) -> Markup:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader([FunctionLoader(_read_elsewhere), PackageLoader(PACKAGE)]),
        autoescape=_is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    return made


def _read_elsewhere(template: str) -> str | None:
    """Return the text of a template that is named by its path."""
    path = Path(template)
    return path.read_text(encoding="utf-8") if path.is_absolute() else None


def _is_html(template: str | None) -> bool:
    return template is not None and template.endswith(".html.j2")
