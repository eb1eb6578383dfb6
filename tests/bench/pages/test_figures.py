"""What all figures share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from hvadam_bench.pages.figures import blank, save

FIGURES = Path(__file__).parents[3] / "docs" / "figures"
BY_EXAMPLES = {"pinn-convection.png"}  # drawn by a program that needs no bench


def test_a_figure_is_a_png_with_an_svg_beside_it_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        figure = blank(1.0)
        figure.subplots().plot([1, 2, 3])
        assert save(figure, tmp_path / folder / "line.png").name == "line.png"
    for name in ("line.png", "line.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert ET.parse(tmp_path / "one" / "line.svg").getroot().tag.endswith("svg")


def test_every_published_figure_has_both_forms() -> None:
    pictures = {path.name for path in FIGURES.glob("*.png")} - BY_EXAMPLES
    assert pictures
    assert {path.stem for path in FIGURES.glob("*.svg")} == {name[:-4] for name in pictures}
