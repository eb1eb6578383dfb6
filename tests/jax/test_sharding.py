"""One hidden vector over eight virtual devices: the same steps, two sums, nothing gathered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "devices" / "sharded_steps.py"


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    made = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["auto", "explicit", "shard_map"])
def test_devices_agree_with_one(ran: dict[str, Any], way: str) -> None:
    found = ran["found"][way]
    assert found["far"] < 2e-7
    assert found["counters"] == [6, 5]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["auto", "explicit", "shard_map", "unchecked"])
def test_a_step_communicates_two_sums(ran: dict[str, Any], way: str) -> None:
    found = ran["found"][way]
    assert 1 <= found["all-reduce"] <= 2
    for name in ("all-gather", "all-to-all", "collective-permute", "reduce-scatter"):
        assert found[name] == 0, name


@pytest.mark.slow
@pytest.mark.parametrize("way", ["check_vma=True", "check_vma=False", "pmap"])
def test_pieces_without_an_axis_name_are_refused(ran: dict[str, Any], way: str) -> None:
    assert "axis_name=('data',) makes one hidden vector of all pieces" in ran["refused"][way]
