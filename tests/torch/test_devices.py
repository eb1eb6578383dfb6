"""Devices without float64, by a stand-in: tensors that say they are on one and refuse float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from made_parameters import KERNELS, SCOPES, feed, parameter, set_grads
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import hvadam
from hvadam import HVAdam
from hvadam.torch import devices

DEVICE = torch.device("meta")  # a type that torch does not look behind


class There(Tensor):
    """A tensor of the pretended device, with its numbers on the CPU."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> There:
        if inner.dtype in (torch.float64, torch.complex128):
            raise TypeError("this device has no float64")
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


class Pretence(TorchDispatchMode):
    """Sees that what is made or moved there is There."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


def dispatched(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    asked = kwargs.get("device")
    found: list[Tensor] = []
    tree_map(lambda x: found.append(x) if isinstance(x, There) else None, (args, kwargs))
    there = bool(found) if asked is None else torch.device(asked).type == DEVICE.type
    inside = {k: "cpu" if k == "device" and x is not None else x for k, x in kwargs.items()}
    made = func(*_inner(args), **_inner(inside))
    schema = func._schema
    if "out" in kwargs:
        return kwargs["out"]
    if schema.name.endswith("_") and schema.is_mutable:
        return args[0] if schema.returns else None
    return tree_map(lambda x: There(x) if there and isinstance(x, Tensor) else x, made)


def _inner(x: Any) -> Any:
    return tree_map(lambda y: y.inner if isinstance(y, There) else y, x)


@pytest.fixture(autouse=True)
def pretence(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(devices, "WITHOUT_FLOAT64", (DEVICE.type,))
    with Pretence():
        yield


def pair(**options: Any) -> tuple[HVAdam, HVAdam]:
    """Return optimizers of the same parameters, here and there."""
    torch.manual_seed(0)
    values = [torch.randn(7), torch.randn(40, 30), torch.randn(70_000)]
    here = [torch.nn.Parameter(x.clone()) for x in values]
    there = [There(x.clone()).requires_grad_() for x in values]
    return HVAdam(here, **copy.deepcopy(options)), HVAdam(there, **copy.deepcopy(options))


def give(optimizer: HVAdam, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for p in optimizer.param_groups[0]["params"]:
        grad = torch.randn(p.shape, generator=generator) + 0.3
        p.grad = There(grad) if isinstance(p, There) else grad


def kept(optimizer: HVAdam) -> list[Tensor]:
    """Return the state of all parameters, on the CPU."""
    found = [x for state in optimizer.state.values() for x in state.values()]
    return [_inner(x).float() for x in found]


def moved(optimizer: HVAdam) -> list[Tensor]:
    return [_inner(p).detach() for p in optimizer.param_groups[0]["params"]]


@pytest.mark.parametrize("kernel", ["auto", pytest.param("loop", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scope": "tensor"},
        {"max_grad_norm": 1.0},
        {"weight_decay": 0.1, "bounds": (-1.0, 1.0)},
        {"restart_rule": "authors", "restart_threshold": 0.6, "betas": (0.0, 0.6)},
        {"state_dtype": "int8"},
    ],
    ids=str,
)
def test_a_step_needs_no_float64_there(kernel: str, options: dict[str, Any]) -> None:
    here, there = pair(kernel=kernel, **options)
    for step in range(4):
        for optimizer in (here, there):
            give(optimizer, step)
            optimizer.step()
    if "state_dtype" not in options:
        torch.testing.assert_close(kept(there), kept(here), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(moved(there), moved(here), rtol=1e-4, atol=1e-5)
    name = next(iter(here.diagnostics()))
    found, expected = there.diagnostics()[name], here.diagnostics()[name]
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_checkpoints_go_there_and_back() -> None:
    here, there = pair(scope="tensor")
    give(here, 0)
    here.step()
    there.load_state_dict(copy.deepcopy(here.state_dict()))
    torch.testing.assert_close(kept(there), kept(here))


def test_the_stand_in_refuses_float64() -> None:
    with pytest.raises(TypeError, match="no float64"):
        There(torch.zeros(3)).double()
    assert not devices.has_float64(DEVICE)


# Another default device changes nothing for parameters that lie on the CPU.
# Nothing may be made on any of them, so it does not matter which this machine has: where one is
# missing, making a tensor on it raises; on "meta" it gives a tensor without memory.
DEVICES = ["cpu", "meta", "cuda", "mps", "xpu"]

OPTIONS: dict[str, dict[str, Any]] = {
    "clipped": {"max_grad_norm": 0.5},
    "clipped, bounds": {"max_grad_norm": 0.5, "bounds": (-1.0, 1.0)},
    "int8": {"state_dtype": "int8"},
    "bfloat16": {"state_dtype": "bfloat16"},
}


def trained(kernel: Any, options: dict[str, Any], device: str) -> list[Tensor]:
    """Return what training under a default device leaves of parameters on the CPU."""
    params = [parameter(5, dtype=torch.float32), parameter(300, 2, dtype=torch.bfloat16)]
    groups = [{"params": [p]} for p in params]
    with torch.device(device):
        optimizer = HVAdam(groups, lr=0.1, kernel=kernel, **options)
    for step in range(5):
        set_grads(params, step)
        with torch.device(device):
            optimizer.step()
    with torch.device(device):
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.diagnostics()
    return [p.detach() for p in params]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bits_are_the_same(kernel: Any, options: dict[str, Any], scope: str) -> None:
    expected, *others = (trained(kernel, {**options, "scope": scope}, d) for d in DEVICES)
    for found in others:
        assert all(torch.equal(p, q) for p, q in zip(found, expected, strict=True))


@pytest.mark.parametrize("device", DEVICES)
def test_a_warm_start(device: str) -> None:
    p = parameter(4)
    adam = torch.optim.AdamW([p], lr=0.1)
    feed(adam, range(2))
    for state in (adam, adam.state_dict()):
        optimizer = HVAdam([p])
        with torch.device(device):
            hvadam.warm_start(optimizer, state)
        assert optimizer.state[p]["step"] == 2
