"""What all figures share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image

from hvadam_bench.pages.figures import blank, save

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
