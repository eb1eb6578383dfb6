"""Physics-informed networks: the page, with DeepXDE as the trainer, and the example."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_pinn.py"
REPORT = r"loss (\S+), error (\S+)"

pytestmark = pytest.mark.slow


def test_the_page_runs(program: Callable[[str], Path], launch: Callable[..., str]) -> None:
    pytest.importorskip("deepxde", reason="the extra dev brings it")
    output = launch(program("train-a-pinn.md"))
    plain = [(float(loss), float(error)) for loss, error in re.findall(REPORT, output)]
    assert len(plain) == 2
    assert plain[0][1] < 0.02
    assert plain[1][0] < plain[0][0] / 4  # L-BFGS goes on from there
    by_deepxde = [float(loss) for loss in re.findall(r"^DeepXDE.*: loss (\S+)", output, re.M)]
    assert len(by_deepxde) == 2
    assert by_deepxde[0] < 0.2  # from 1
    assert by_deepxde[1] < by_deepxde[0] / 4


def test_the_example_finds_a_slow_wave_and_draws_it(
    launch: Callable[..., str], tmp_path: Path
) -> None:
    picture = tmp_path / "wave.png"
    given = ("--speed", 2, "--steps", 600, "--finish", 100, "--picture", picture)
    output = launch(EXAMPLE, *given)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", output)]
    assert len(losses) == 7  # the first step, five on the way, one after L-BFGS
    assert losses[-1] < losses[-2] < losses[0] / 100
    [error] = re.findall(r"relative error (\S+)", output)
    assert float(error) < 0.05
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_a_finish_and_a_picture(launch: Callable[..., str], tmp_path: Path) -> None:
    output = launch(EXAMPLE, "--steps", 10, "--finish", 0)
    assert "L-BFGS" not in output
    assert not list(tmp_path.glob("*.png"))
