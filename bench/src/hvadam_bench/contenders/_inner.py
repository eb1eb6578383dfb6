"""The inner optimizers of SWA, Lookahead and Lookaround: a step, and their oracle in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays

DEFAULTS = {
    **{"inner": "sgd", "momentum": 0.9, "betas": (0.9, 0.999), "eps": 1e-8},
    "weight_decay": 0.0,
}


def inner_step(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of heavy-ball SGD or of Adam, bit for bit as `torch.optim` does on a CPU.

    The state needs its count of steps alone; the averages are set up as they are needed.
    """
    if "exp_avg" not in state:
        state["exp_avg"] = p.clone().zero_()
        if group["inner"] == "adam":
            state["exp_avg_sq"] = p.clone().zero_()
    if group["inner"] == "sgd":
        p.add_(state["exp_avg"].mul_(group["momentum"]).add_(g), alpha=-lr)
        return
    (beta1, beta2), t = group["betas"], state["step"]
    first = state["exp_avg"].lerp_(g, 1 - beta1)
    second = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = (second.sqrt() / math.sqrt(1 - beta2**t)).add_(group["eps"])
    p.addcdiv_(first, root, value=-lr / (1 - beta1**t))


class InnerOracle:
    """Heavy-ball SGD or Adam, in the words of Sutskever et al. and of Kingma & Ba."""

    def __init__(self, params: Arrays, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.t = 0
        self.first = [np.zeros_like(p) for p in params]
        self.second = [np.zeros_like(p) for p in params]

    def step(self, params: Arrays, grads: Arrays) -> Arrays:
        """Return the parameters after one step."""
        self.t += 1
        decay = self.options["weight_decay"]
        moved = self._sgd if self.options["inner"] == "sgd" else self._adam
        return [
            moved(i, p, g + decay * p) for i, (p, g) in enumerate(zip(params, grads, strict=True))
        ]

    def _sgd(self, i: int, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        self.first[i] = self.options["momentum"] * self.first[i] + g
        return p - self.options["lr"] * self.first[i]

    def _adam(self, i: int, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        beta1, beta2 = self.options["betas"]
        self.first[i] = beta1 * self.first[i] + (1 - beta1) * g
        self.second[i] = beta2 * self.second[i] + (1 - beta2) * g**2
        first_hat = self.first[i] / (1 - beta1**self.t)
        second_hat = self.second[i] / (1 - beta2**self.t)
        return p - self.options["lr"] * first_hat / (np.sqrt(second_hat) + self.options["eps"])
