"""Another default device changes nothing for parameters that lie on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_parameters import KERNELS, SCOPES, feed, parameter, set_grads
from torch import Tensor

import hvadam
from hvadam import HVAdam

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
