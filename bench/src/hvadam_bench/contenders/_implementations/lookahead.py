"""Lookahead for PyTorch."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from hvadam_bench.contenders._implementations._wrapper import Wrapper, showing
from hvadam_bench.contenders._options import between, whole


class Lookahead(Wrapper):
    """k steps of a fast optimizer, then one step back along the way that they went.

    The parameters are the fast weights θ. After every k steps the slow weights φ, which start at
    the initial θ, follow by φ ← φ + α(θ - φ), and θ starts again from φ. The inner optimizer's own
    state, such as its momentum, goes on.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate of the inner optimizer.
        k: Fast steps for each slow one.
        alpha: α, the slow step.
        inner: "sgd" (heavy-ball) or "adam".
        momentum: Of the inner SGD.
        betas: Of the inner Adam.
        eps: Of the inner Adam.
        weight_decay: Coupled (L2), of the inner optimizer.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("lookahead", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> with optimizer.evaluation():
        ...     bool(x.abs().max() < 0.1)
        True

    References:
        Zhang et al., Lookahead Optimizer: k steps forward, 1 step back, arXiv:1907.08610,
        Algorithm 1.
    """

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        whole(self.who, "k", group["k"], 1)
        between(self.who, "alpha", group["alpha"], 0, 1)

    def advance(self) -> None:
        moving = self.with_gradient()
        for p, _ in moving:
            if not self.state[p]:
                self.state[p].update(step=0, slow=p.detach().clone(), inner={})
        self.step_inside({p: self.state[p]["inner"] for p, _ in moving})
        for p, group in moving:
            state = self.state[p]
            state["step"] += 1
            if state["step"] % group["k"] == 0:
                p.copy_(state["slow"].lerp_(p, group["alpha"]))

    def evaluation(self) -> AbstractContextManager[None]:
        """Return a context in which the parameters are the slow weights."""
        return showing({p: state["slow"] for p, state in self.state.items() if state})
