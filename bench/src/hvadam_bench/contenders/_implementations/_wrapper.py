"""What the optimizers around another optimizer have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer
from torch.optim.optimizer import ParamsT

from hvadam_bench.contenders._implementations._base import Baseline
from hvadam_bench.contenders._options import one_of, positive, require, require_betas

INNER = ("sgd", "adam")


class Wrapper(Baseline):
    """An optimizer that does more around the steps of `torch.optim.SGD` or `Adam`.

    The inner optimizers keep nothing: a step hands them the groups, which hold their options, and
    a dict of states, which is part of this optimizer's own. So checkpoints, copies and schedulers
    see one ordinary optimizer.
    """

    def __init__(self, params: ParamsT, **options: Any) -> None:
        inherited = {k: v for worker in _workers().values() for k, v in worker.defaults.items()}
        super().__init__(params, **{**inherited, **options})

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        one_of(self.who, "inner", group["inner"], INNER)
        require(self.who, "momentum", group["momentum"], 0, 1)
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "weight_decay", group["weight_decay"])

    def step_inside(self, states: Mapping[Tensor, dict[str, Any]]) -> None:
        """Take one step of the inner optimizers, which keep their state in `states`."""
        for group in self.param_groups:
            worker = self._inner[group["inner"]]
            worker.param_groups = [{**group, "lr": self.rate(group)}]
            worker.state = defaultdict(dict, states)
            worker.step()

    def rate(self, group: dict[str, Any]) -> float:
        """Return the learning rate of the inner optimizer's next step."""
        return group["lr"]

    def with_gradient(self) -> list[tuple[Tensor, dict[str, Any]]]:
        """Return the parameters that have a gradient, each with its group."""
        return [
            (p, group) for group in self.param_groups for p in group["params"] if p.grad is not None
        ]

    @cached_property  # outside of what torch copies and pickles, so a copy makes its own
    def _inner(self) -> dict[str, Optimizer]:
        return _workers()


@contextmanager
def showing(values: Mapping[Tensor, Tensor]) -> Iterator[None]:
    """Show each tensor with its value; what it held before comes back after."""
    with torch.no_grad():
        kept = {tensor: tensor.detach().clone() for tensor in values}
        for tensor, value in values.items():
            tensor.copy_(value)
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in kept.items():
                tensor.copy_(value)


def _workers() -> dict[str, Optimizer]:
    nothing = [torch.zeros(0, requires_grad=True)]  # torch wants a parameter
    return {"sgd": SGD(nothing), "adam": Adam(nothing)}
