"""kernel="auto" takes the Triton kernel where it proves itself, and never a wrong step."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from hvadam import HVAdam
from hvadam.torch import self_check
from hvadam.torch.kernels import foreach, native, triton

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device that "auto" may want Triton for: the CPU, with Triton's passes done by another.

    The real passes are slow to interpret and are tested by themselves.
    """
    monkeypatch.setattr(native, "available", lambda: "it was not compiled.")
    monkeypatch.setattr(triton, "available", lambda: None)
    monkeypatch.setattr(triton, "may_serve", lambda tensors: True)
    monkeypatch.setattr(triton, "is_interpreted", lambda: True)
    for name in ("norm", "accumulate", "apply"):
        monkeypatch.setattr(triton, name, getattr(foreach, name))
    monkeypatch.setattr(self_check, "STEPS", 2)
    monkeypatch.setattr(self_check, "BATCHES", self_check.BATCHES[:2])
    self_check.forget()
    yield
    self_check.forget()


def made(**options: Any) -> HVAdam:
    p = torch.nn.Parameter(torch.linspace(-1, 1, 300))
    p.grad = torch.cos(torch.arange(300.0))
    return HVAdam([p], **options)


def kernels_of_a_step(optimizer: HVAdam) -> list[str]:
    optimizer.step()
    return self_check.kernels_of(optimizer)


@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16", "int8"])
def test_a_kernel_that_agrees_is_taken_and_checked_once(
    state_dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = made(state_dtype=state_dtype)
    optimizer.step()
    monkeypatch.setattr(self_check, "trial", None)  # another check would fail
    assert kernels_of_a_step(optimizer) == ["triton"]
    assert kernels_of_a_step(made(state_dtype=state_dtype)) == ["triton"]


def test_every_kind_of_state_is_checked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    trial = self_check.trial
    monkeypatch.setattr(self_check, "trial", lambda *of: (seen.append(of[-1]), trial(*of))[1])
    made().step()
    made(state_dtype="int8").step()
    p = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    p.grad = torch.ones_like(p)
    HVAdam([p]).step()
    assert seen == ["float32", "int8", "float64"]


def wrong(factor: float) -> Any:
    def apply(batches: Any, mix: Tensor, gain: Tensor) -> None:
        foreach.apply(batches, mix, gain)
        for batch in batches:
            batch.tensors.theta[-1].mul_(factor)

    return apply


def raising(batches: Any, mix: Tensor, gain: Tensor) -> None:
    raise SyntaxError("ptxas does not like this\nand says so at length")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (wrong(1.01), "float32 state it is off by .* from the reference, where 1e-05 is rounding"),
        (wrong(float("nan")), "off by nan from the reference"),
        (raising, "it raised SyntaxError: ptxas does not like this. The portable"),
    ],
    ids=["wrong number", "NaN", "exception"],
)
def test_a_broken_kernel_moves_nothing_and_is_told_of_once(
    broken: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton, "apply", broken)
    optimizer, portable = made(), made(kernel="foreach")
    with pytest.warns(UserWarning, match=said) as told:
        optimizer.step()
    assert len(told) == 1
    assert "hvadam check" in str(told[0].message)
    portable.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels_of_a_step(optimizer) == ["foreach"]
    portable.step()
    for ours, theirs in zip(
        *(o.param_groups[0]["params"] for o in (optimizer, portable)), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_a_compiler_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hanging(batches: Any, mix: Tensor, gain: Tensor) -> None:
        release.wait(60)

    monkeypatch.setattr(triton, "apply", hanging)
    monkeypatch.setattr(self_check, "PATIENCE", 0.2)
    optimizer = made()
    begun = time.monotonic()
    with pytest.warns(UserWarning, match=r"it was not ready after 0\.2 seconds"):
        optimizer.step()
    assert time.monotonic() - begun < 30
    assert kernels_of_a_step(optimizer) == ["foreach"]
    release.set()
    for thread in threading.enumerate():
        if thread.name == "hvadam self-check":
            thread.join()
    assert kernels_of_a_step(optimizer) == ["foreach"]  # too late to be trusted


def test_nothing_is_tried_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = made()
    with monkeypatch.context() as patch:
        patch.setattr(self_check, "_is_capturing", lambda device: True)
        patch.setattr(self_check, "trial", None)
        assert kernels_of_a_step(optimizer) == ["foreach"]
    optimizer.step()  # decides
    with monkeypatch.context() as patch:
        patch.setattr(self_check, "_is_capturing", lambda device: True)
        assert kernels_of_a_step(optimizer) == ["triton"]


def test_an_emulated_gpu_is_never_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not triton.may_serve([torch.zeros(3)])


def test_the_check_leaves_no_trace_in_the_step() -> None:
    """Parameters and random numbers are those of a step without a check."""
    torch.manual_seed(0)
    checked, portable = made(), made(kernel="foreach")
    checked.step()
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(3))
    portable.step()
    assert torch.equal(checked.param_groups[0]["params"][0], portable.param_groups[0]["params"][0])
    assert torch.is_grad_enabled()
