"""What the optimizers written here have in common: everything but the update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from hvadam_bench.contenders._options import require_all
from hvadam_bench.contenders._spec import Rule


class Moving(NamedTuple):
    """A parameter that has a gradient, and what its update reads and writes."""

    param: Tensor
    grad: Tensor  # to read only: it may be p.grad itself
    state: dict[str, Any]
    group: dict[str, Any]
    lr: float


class Baseline(Optimizer):
    """An optimizer that only has to say `check` and `advance`.

    Options have no defaults here: the contender's SPEC states them, and `contenders.create` gives
    them all. Every group's are checked, also those of groups that come later. `p.grad` is read,
    never written.
    """

    def __init__(self, params: ParamsT, **options: Any) -> None:
        super().__init__(params, options)

    @property
    def who(self) -> str:
        """Return the name in messages."""
        return type(self).__name__

    def check(self, group: dict[str, Any]) -> None:
        """Refuse options out of range."""
        raise NotImplementedError

    def advance(self) -> None:
        """Update every parameter that has a gradient; called without autograd."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options that are in range."""
        if isinstance(param_group, dict):  # torch refuses anything else in its own words
            self.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; a closure is called first, and its loss returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                _refuse_exotic(self.who, param)
        self.advance()
        return loss

    def with_gradient(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        """Yield the parameters that have a gradient, each with its group."""
        for group in self.param_groups:
            yield from ((p, group) for p in group["params"] if p.grad is not None)

    def gradient(self, param: Tensor, group: dict[str, Any], mode: str = "coupled") -> Tensor:
        """Return the gradient, with the weight decay in it if that is coupled."""
        assert param.grad is not None
        decay = group.get("weight_decay", 0.0)
        if not decay or group.get("weight_decay_mode", mode) == "decoupled":
            return param.grad
        return param.grad.add(param, alpha=decay)


class Stepper(Baseline):
    """An optimizer that moves by a rule.

    State is kept in the parameter's dtype under the names of `torch.optim`. Weight decay, where
    there is one, joins a copy of the gradient, unless it is decoupled. A group keeps the learning
    rate that it came with as "base_lr".
    """

    def __init__(self, rule: Rule, params: ParamsT, options: Mapping[str, Any]) -> None:
        self._rule = rule
        super().__init__(params, **options)

    @property
    def who(self) -> str:
        """Return the rule's name in messages."""
        return self._rule.who

    def check(self, group: dict[str, Any]) -> None:
        require_all(self.who, group, self._rule.checks)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options that are in range."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group.setdefault("base_lr", float(group["lr"]))

    def advance(self) -> None:
        if self._rule.together:
            if everything := list(self._moving()):
                self._rule.update(everything)
            return
        for moving in self._moving():
            self._rule.update(*moving)

    def evaluation(self) -> AbstractContextManager[None]:
        """Return a context in which the parameters are what the rule evaluates."""
        shown = self._rule.shown
        assert shown is not None
        values = {}
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if state := self.state.get(p):
                        values[p] = shown(p, state, group)
        return showing(values)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rule": self._rule}

    def _moving(self) -> Iterator[Moving]:
        """Yield the parameters with a gradient, their state set up and their step counted."""
        for param, group in self.with_gradient():
            state = self.state[param]
            if not state:
                state["step"] = 0
                state.update((name, torch.zeros_like(param)) for name in self._rule.state)
            state["step"] += 1
            gradient = self.gradient(param, group, self._rule.decay)
            yield Moving(param, gradient, state, group, float(group["lr"]))


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


def _refuse_exotic(who: str, param: Tensor) -> None:
    """Refuse sparse gradients and complex parameters, before anything moves."""
    if param.grad is not None and param.grad.is_sparse:
        raise RuntimeError(f"{who}: gradients must be dense, got a sparse one.")
    if param.is_complex():
        raise RuntimeError(f"{who}: parameters must be real, got {param.dtype}.")
