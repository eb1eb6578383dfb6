"""Lookaround for PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.optim.optimizer import ParamsT

from hvadam_bench.contenders._implementations._base import Baseline, showing
from hvadam_bench.contenders._inner import inner_step
from hvadam_bench.contenders._options import require_all, whole

# In `state` beside the parameters: what belongs to no single one of them.
SHARED = "shared"


class Lookaround(Baseline):
    """Heads that train apart, each on its own augmentation, and are averaged every k steps.

    The heads θ₁ … θ_d start alike. Each takes k steps with its own inner optimizer, then all become
    their average. The heads take turns: a call of `step` moves the head whose gradient was just
    computed, and puts the next head's weights into the parameters. So an ordinary loop trains them
    all, d·k calls lie between averages, and a head sees one in d batches; `head` tells which one
    the next batch is for. The inner optimizers' own states, such as momentum, stay with their
    heads.

    Given the model, its batch-norm statistics stay with their heads too, and are averaged likewise.
    The first forward pass comes before the first step, so all heads start with its statistics.

    Args:
        params: Parameters or groups of them.
        model: The model that the parameters belong to.
        options: As the contender's SPEC has them; "heads" is d.
    """

    def __init__(self, params: ParamsT, model: nn.Module | None = None, **options: Any) -> None:
        self._model = model
        super().__init__(params, **options)

    def check(self, group: dict[str, Any]) -> None:
        require_all(self.who, group, {"heads": partial(whole, low=1)})
        for name in ("heads", "k"):
            if group[name] != self.defaults[name]:
                raise ValueError(
                    f"{self.who}: {name} must be the same for all parameters, "
                    f"got {self.defaults[name]} and {group[name]}."
                )

    @property
    def head(self) -> int:
        """Return the head, from 0, whose weights the parameters hold and the next step moves."""
        return self._shared["calls"] % self.defaults["heads"]

    def advance(self) -> None:
        heads, now = self.defaults["heads"], self.head
        for p, group in self.with_gradient():
            state = self.state[p]
            if not state:
                state["weights"] = _copies(p, heads)
                state["inner"] = [{"step": 0} for _ in range(heads)]
            inner = state["inner"][now]
            inner["step"] += 1
            inner_step(p, self.gradient(p, group), inner, group, float(group["lr"]))

        shared = self._shared
        shared["calls"] += 1
        for tensor, values in self._per_head():
            values[now].copy_(tensor)
            if shared["calls"] % (heads * self.defaults["k"]) == 0:
                average = _average(values)
                for value in values:
                    value.copy_(average)
            tensor.copy_(values[self.head])

    def evaluation(self) -> AbstractContextManager[None]:
        """Return a context that shows weights and batch-norm statistics at the heads' average."""
        now = self.head
        return showing(
            {
                tensor: _average([*values[:now], tensor, *values[now + 1 :]])
                for tensor, values in self._per_head()
            }
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a checkpoint of as many heads."""
        theirs, ours = state_dict["param_groups"][0].get("heads"), self.defaults["heads"]
        if theirs != ours:
            raise ValueError(
                f"{self.who}: heads must be those of the checkpoint, {theirs}, got {ours}."
            )
        super().load_state_dict(state_dict)
        # torch copies the state of parameters alone.
        self._everything[SHARED] = copy.deepcopy(self._shared)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_model": self._model}

    @property
    def _everything(self) -> dict[Any, Any]:  # torch's own annotation knows parameters alone
        return self.state

    @property
    def _shared(self) -> dict[str, Any]:
        return self._everything.setdefault(SHARED, {"calls": 0, "norms": {}})

    def _per_head(self) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Yield each tensor that differs from head to head, and its value in each."""
        for group in self.param_groups:
            for p in group["params"]:
                if p in self.state:
                    yield p, self.state[p]["weights"]
        shared = self._shared
        if self._model is None or not shared["calls"]:
            return
        norms = shared["norms"]
        for path, module in self._model.named_modules():
            if isinstance(module, _NormBase):
                for name, buffer in module.named_buffers(path, recurse=False):
                    if name not in norms:
                        norms[name] = _copies(buffer, self.defaults["heads"])
                    yield buffer, norms[name]


def _copies(tensor: Tensor, count: int) -> list[Tensor]:
    return [tensor.detach().clone() for _ in range(count)]


def _average(values: list[Tensor]) -> Tensor:
    """Return the mean, or for counts, which are alike in all heads, the first."""
    return torch.stack(values).mean(0) if values[0].is_floating_point() else values[0].clone()
