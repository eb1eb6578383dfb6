"""Fromage for PyTorch, written from the paper."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import require


class Fromage(TensorByTensor):
    """Gradient descent whose steps are, in each tensor, as long as a fraction of the tensor.

    Per tensor, θ ← (θ - lr·g·‖θ‖/‖g‖) / √(1 + lr²); where either norm is 0 the quotient of norms
    is taken as 1. The division undoes the growth of ‖θ‖ that orthogonal steps cause, so there is no
    weight decay.

    Args:
        params: Parameters or groups of them.
        lr: Length of a step, relative to the tensor's norm.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("fromage", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Bernstein et al., On the distance between two neural networks and the stability of learning,
        arXiv:2002.03432, Algorithm 1.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {}

    def update(self, moving: Moving) -> None:
        param, grad, _, _, lr = moving
        size, slope = torch.linalg.vector_norm(param), torch.linalg.vector_norm(grad)
        # On the device, so that nothing waits for the norms.
        scale = torch.where((size > 0) & (slope > 0), size / slope, torch.ones_like(size))
        param.sub_(grad * scale * lr).div_(math.sqrt(1 + lr**2))
