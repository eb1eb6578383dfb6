"""One table in three forms, and Markdown that no plain text can break."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from hvadam_bench import contenders
from hvadam_bench.pages import palette
from hvadam_bench.pages.figures import blank, save
from hvadam_bench.pages.markdown import Markdown, escape, sections, to_html, to_plain, wrap
from hvadam_bench.pages.rendering import render, say
from hvadam_bench.pages.tables import Cell, Table

TABLE = Table(
    ["", "loss", Markdown("`lr`")],
    [
        [Cell.of("adamw"), Cell("0.5 [0.4, 0.6]", mark=True), "1e-3"],
        ["a|b *c* <i>", Markdown("**bold**, see [here](x.md)")],
    ],
    title="Losses",
    reading="Less is better.",
)


def test_markdown_escapes_plain_text_and_fills_short_rows() -> None:
    assert TABLE.markdown().splitlines() == [
        "|  | loss | `lr` |",
        "|---|---|---|",
        "| AdamW | **0.5 [0.4, 0.6]** | 1e-3 |",
        r"| a\|b \*c\* \<i> | **bold**, see [here](x.md) |  |",
    ]


def test_the_terminal_shows_the_same_words_without_marks() -> None:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(TABLE.terminal())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for words in ("Losses", "AdamW", "0.5 [0.4, 0.6]", "a|b *c* <i>", "bold, see here", "Less is"):
        assert words in shown
    assert "**" not in shown


def test_numbers_stand_below_each_other_where_asked() -> None:
    table = Table(["", "ms"], [["a", "1.5"], ["b", "10.25"]], right=[1])
    assert table.markdown().splitlines()[1] == "|---|--:|"
    console = Console(file=io.StringIO(), width=40, color_system=None)
    console.print(table.terminal())
    assert isinstance(console.file, io.StringIO)
    assert "  1.5 \n" in console.file.getvalue()


def test_no_contender_is_broken_over_two_lines() -> None:
    words = "some words that may well be broken over several lines"
    table = Table(["", "", ""], [[Cell.of("schedule_free_adamw"), words, words]])
    console = Console(file=io.StringIO(), width=40, color_system=None)
    console.print(table.terminal())
    assert isinstance(console.file, io.StringIO)
    assert contenders.label("schedule_free_adamw") in console.file.getvalue()


@pytest.mark.parametrize(
    "text",
    ["a|b", "*x*", "`y`", "<b>z</b>", "[link](to)", "_under_ score", "back\\slash", "**2**"],
)
def test_plain_text_means_itself_in_markdown(text: str) -> None:
    escaped = escape(text)
    assert to_plain(escaped) == text
    assert "<b>" not in to_html(escaped)
    assert escape(Markdown(escaped)) == escaped


def test_what_is_no_markup_is_not_escaped() -> None:
    text = "bits_per_sign [1.5, 2.5] < 3"
    assert escape(text) == text


def test_marks_are_shown_as_html_and_left_out_in_a_terminal() -> None:
    text = r"**holds** on `f1` \*, see [the valley](valley.md)"
    assert to_plain(text) == "holds on f1 *, see the valley"
    assert to_html(r"`a=0` is **<** 1\*") == "<code>a=0</code> is <strong>&lt;</strong> 1*"


def test_a_page_is_taken_apart_into_sections() -> None:
    [one] = sections("## A b\n\n![c](d/e.png)\n\nA *caption*.\n\nMore.\n\n### Part\n\nLess.\n")
    assert (one.id, one.body, one.picture) == (
        *("a-b", "<p>More.</p>\n"),
        ("c", "e.png", "A <em>caption</em>."),
    )
    assert [(part.id, part.body) for part in one.parts] == [("part", "<p>Less.</p>\n")]


def test_prose_is_filled_and_nothing_else_is_touched() -> None:
    long = "word " * 30
    text = (
        f"# {long}\n\n{long}\n{long}\n\n| {long} |\n\n```\n{long}\n\n\n{long}\n```\n- {long}\n- b"
    )
    lines = wrap(text).splitlines()
    assert lines[0] == f"# {long}"
    assert f"| {long} |" in lines
    code = lines.index("```")
    assert lines[code : code + 6] == ["```", long, "", "", long, "```"]
    prose = [line for line in lines if line not in (lines[0], f"| {long} |", long)]
    assert max(map(len, prose)) <= 100
    assert lines[-1] == "- b"
    assert lines[-2].startswith("  word")
    assert wrap(wrap(text)) == wrap(text)


@pytest.mark.parametrize(
    "whole",
    ["`hvadam sweep imagenet`", "[what we found](docs/findings.md)", "[−2.7, −1.4]", "$a + b$"],
)
def test_no_line_breaks_code_links_intervals_or_formulas(whole: str) -> None:
    for before in range(60, 100):
        text = f"{'x' * before} y {whole} {'z ' * 40}"
        assert any(whole in line for line in wrap(text).splitlines())


def test_no_line_starts_with_what_would_be_a_list() -> None:
    for before in range(80, 100):
        lines = wrap(f"{'x' * before} of 2. Against - this + that # them").splitlines()
        assert not [line for line in lines if line.startswith(("2. ", "- ", "+ ", "# "))]


def test_a_template_misses_nothing_silently() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("report.html.j2")


def test_a_macro_says_a_line_for_each_paragraph(tmp_path: Path) -> None:
    path = tmp_path / "words.txt.j2"
    path.write_text(
        "{% macro told(n) %}\n{{ n | counted('seed') }},\nat <0.1.\n\nAgain.\n{% endmacro %}"
    )
    assert say(path, "told", 1) == "1 seed, at <0.1.\nAgain."


def test_a_new_contender_takes_a_free_look(monkeypatch: pytest.MonkeyPatch) -> None:
    names = contenders.names()
    monkeypatch.setattr(contenders, "names", lambda: [*names, "new_one", "new_two"])
    monkeypatch.setattr(palette, "label", str)  # it has no file here
    looks = [(one.light, one.dash) for one in map(palette.look, contenders.names())]
    assert len(set(looks)) == len(looks)


def test_a_variant_has_the_colour_of_hvadam_or_one_of_its_own() -> None:
    ours, theirs = palette.look("hvadam (x)"), palette.look("padam (p 1/8)")
    assert (ours.light, theirs.label) == (palette.RED.light, "Padam (p 1/8)")
    assert ours.width < palette.look("hvadam").width
    with palette.on_ground(palette.DARK):
        assert palette.line("hvadam (x)")["color"] == palette.RED.dark
    assert palette.line("adam")["ls"] == (0, (3.5, 2.0))


def test_every_contender_has_a_label_of_its_own() -> None:
    labels = [contenders.get(name).label for name in contenders.names()]
    assert len(set(labels)) == len(labels)
    assert [palette.label(name) for name in contenders.names()] == labels


# What all figures share.
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["line.png", "line.svg"])
def test_a_figure_is_what_its_name_says_the_same_each_time(name: str, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        figure = blank(1.0)
        figure.subplots().plot([1, 2, 3])
        assert save(figure, tmp_path / folder / name) == tmp_path / folder / name
    [one] = (tmp_path / "one").iterdir()
    assert one.read_bytes() == (tmp_path / "other" / name).read_bytes()
    if name.endswith(".svg"):
        assert ET.parse(one).getroot().tag.endswith("svg")
    else:
        with Image.open(one) as picture:
            assert picture.format == "PNG"


def test_every_published_figure_is_on_a_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = [path.name for path in (ROOT / "docs" / "figures").iterdir()]
    assert pictures
    assert [name for name in pictures if f"figures/{name}" not in shown] == []
