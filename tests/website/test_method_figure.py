"""The method's figure: it shows what the method does, and is drawn the same each time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import method_figure as method
import numpy as np
import pytest

from hvadam_bench.pages import palette


def test_the_foot_is_the_nearest_point_of_the_line() -> None:
    old, momentum, foot = method.construct()
    along = momentum - old
    assert abs(foot @ along) < 1e-12
    np.testing.assert_allclose(np.cross([*(foot - old), 0], [*along, 0]), 0, atol=1e-12)
    np.testing.assert_allclose(foot, [1, 1], rtol=1e-12)
    np.testing.assert_allclose(old, method.GRADIENTS[0], rtol=1e-15)


@pytest.mark.slow
def test_both_grounds_are_drawn_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    written = method.write(tmp_path / "one")
    again = method.write(tmp_path / "other")
    assert [path.name for path in written] == ["method-light.svg", "method-dark.svg"]
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    for path, ground in zip(written, (palette.LIGHT, palette.DARK), strict=True):
        text = path.read_text(encoding="utf-8")
        assert ET.fromstring(text).tag.endswith("svg")
        assert f"fill: {ground.paper.lower()}" in text
