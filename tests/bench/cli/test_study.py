"""How a study's progress is shown: a bar that moves, or lines where there is no terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from hvadam_bench import terminal
from hvadam_bench.cli import study


def shown(monkeypatch: pytest.MonkeyPatch, *, on_a_terminal: bool) -> str:
    """Return what is seen of a study of 40 parts of two seconds each."""
    now = 0.0
    for module in (terminal, study):
        monkeypatch.setattr(module, "monotonic", lambda: now)
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=on_a_terminal)
    with study.bar(console) as shown_bar:
        advance = shown_bar.advance
        advance("the first part", 0.0)
        for part in range(40):
            now += 2
            advance(f"part {part}" if part % 2 else "", 1 / 40)
    return file.getvalue()


def test_a_log_hears_of_a_study_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, on_a_terminal=False).splitlines()
    assert lines[0] == "part 1: 8% of all, about 74 s left"  # at six seconds: a line every five
    assert lines[1].startswith("part 5: ")
    assert 5 <= len(lines) <= 16


def test_the_bar_on_a_terminal_moves_with_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = re.findall(r"(\d+)%", shown(monkeypatch, on_a_terminal=True))
    assert len(set(seen)) > 30
    assert (seen[0], seen[-1]) == ("0", "100")
