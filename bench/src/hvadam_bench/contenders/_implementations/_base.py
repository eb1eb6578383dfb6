"""What the baselines written here have in common: everything but the update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT


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


class TensorByTensor(Baseline):
    """A baseline that only has to say `check`, `init_state` and `update`.

    State is kept in the parameter's dtype under the names of `torch.optim`; `state["step"]` counts
    from 1. Weight decay, where there is one, joins a copy of the gradient, unless it is decoupled.
    """

    decay = "coupled"

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state before the first step, besides the step count."""
        raise NotImplementedError

    def update(self, moving: Moving) -> None:
        """Take one step of one parameter, in place."""
        raise NotImplementedError

    def advance(self) -> None:
        for moving in self.moving():
            self.update(moving)

    def moving(self) -> Iterator[Moving]:
        """Yield the parameters with a gradient, their state set up and their step counted."""
        for group in self.param_groups:
            lr = float(group["lr"])
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if not state:
                    state.update(step=0, **self.init_state(param, group))
                state["step"] += 1
                yield Moving(param, self.gradient(param, group), state, group, lr)

    def gradient(self, param: Tensor, group: dict[str, Any]) -> Tensor:
        """Return the gradient, with the weight decay in it if that is coupled."""
        assert param.grad is not None
        decay = group.get("weight_decay", 0.0)
        if not decay or group.get("weight_decay_mode", self.decay) == "decoupled":
            return param.grad
        return param.grad.add(param, alpha=decay)


def _refuse_exotic(who: str, param: Tensor) -> None:
    """Refuse sparse gradients and complex parameters, before anything moves."""
    if param.grad is not None and param.grad.is_sparse:
        raise RuntimeError(f"{who}: gradients must be dense, got a sparse one.")
    if param.is_complex():
        raise RuntimeError(f"{who}: parameters must be real, got {param.dtype}.")
