"""The check of kernels finds what is wrong with one, and nothing where all is well."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from made_parameters import AVAILABLE

from hvadam.torch import kernels, self_check
from hvadam.torch.kernels import foreach, loop, native
from hvadam.torch.self_check import STATES, Trial


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "STEPS", 2)
    monkeypatch.setattr(self_check, "BATCHES", self_check.BATCHES[:1])


def every() -> dict[tuple[str, str], Trial]:
    return {(trial.kernel, trial.state): trial for trial in self_check.trials()}


@pytest.mark.parametrize("batch", self_check.BATCHES, ids=str)
def test_every_kernel_that_runs_here_is_tried_with_every_state(
    batch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "BATCHES", (batch,))
    found = [trial for trial in every().values() if trial.unavailable is None]
    assert {(trial.kernel, trial.state) for trial in found} >= {
        (kernel, state) for kernel in AVAILABLE for state in STATES
    }
    assert all(trial.agrees for trial in found), found
    judges = {(trial.kernel, trial.state): trial.judge for trial in found}
    assert judges["loop", "int8"] == judges["foreach", "float32"] == "reference"
    assert judges["foreach", "bfloat16"] == "loop"


@pytest.mark.parametrize("factor", [0.9, math.nan])
def test_a_kernel_that_is_wrong_is_found(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    apply = foreach.apply

    def wrong(batches: Any, mix: torch.Tensor, gain: torch.Tensor) -> None:
        apply(batches, mix, gain)
        for batch in batches:
            batch.tensors.theta[-1].mul_(factor)

    monkeypatch.setattr(foreach, "apply", wrong)
    found = every()
    for (kernel, _), trial in found.items():
        assert trial.agrees == (kernel != "foreach")


def test_random_bits_of_another_seed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    accumulate = loop.accumulate

    def reseeded(batches: Any, dots: torch.Tensor, wide: bool = True) -> None:
        other = [b._replace(options=b.options._replace(seed=1)) for b in batches]
        accumulate(other, dots, wide)

    stub = SimpleNamespace(**{**vars(loop), "accumulate": reseeded})  # for itself, not for foreach
    for table in (kernels.KERNELS, kernels.PORTABLE):
        monkeypatch.setitem(table, "loop", stub)
    found = every()
    assert found["loop", "int8"].agrees  # to the reference any seed is as good
    assert not found["foreach", "int8"].agrees
    assert found["foreach", "float32"].agrees


def test_a_kernel_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "available", lambda: "it was not compiled.")
    assert Trial("native", unavailable="it was not compiled.") in list(self_check.trials())
