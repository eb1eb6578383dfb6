"""The multi-tensor kernel: what it is for is few calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from hvadam import HVAdam


class Calls(TorchDispatchMode):
    """Count torch's calls by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.name()] += 1
        return func(*args, **(kwargs or {}))


def test_a_step_takes_few_calls_however_many_tensors() -> None:
    for count in (2, 50):
        params = [nn.Parameter(torch.ones(30)) for _ in range(count)]
        optimizer = HVAdam(params, kernel="foreach")
        for i in range(3):
            for p in params:
                p.grad = torch.linspace(-1.0, 1.0, 30).add(i).cos()
            with Calls() as calls:
                optimizer.step()
        lists = [n for name, n in calls.counts.items() if "_foreach" in name]
        assert sum(lists) == 20
