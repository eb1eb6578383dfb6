"""Gradients before a step: which are refused, their norm, and how they are scaled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hvadam.torch import devices, tracing


def refuse_sparse(grads: Sequence[Tensor]) -> None:
    """Refuse gradients that are not dense."""
    for g in grads:
        if g.layout != torch.strided:
            raise RuntimeError(
                f"HVAdam: gradients must be dense, got layout {g.layout}; build the module with "
                "sparse=False, or give its parameters to torch.optim.SparseAdam."
            )


def are_float16(param_groups: Sequence[dict[str, Any]]) -> bool:
    """Return whether some gradients are float16, which a GradScaler refuses to unscale."""
    return any(p.dtype == torch.float16 for group in param_groups for p in group["params"])


def squared_norm(grads: Sequence[Tensor]) -> Tensor:
    """Return the squared norm of the gradients as one vector, in float64, where that is at home."""
    device = grads[0].device
    norms = torch._foreach_norm(list(grads), 2, dtype=devices.widest(device))
    return torch.stack(norms).to(devices.home(device), torch.float64).square().sum()


def scaling(
    grad_scale: Tensor | None, max_grad_norm: float | None, squared_norm: Tensor | None
) -> Tensor:
    """Return the factor that unscales gradients and clips them.

    The rule is that of ``clip_grad_norm_``, except that a norm that is NaN clips like an infinite
    one: the parameter that brought it is lost, the others are spared.

    Args:
        grad_scale: Divide the gradients by this first.
        max_grad_norm: Clip them to this norm. One of the two is given.
        squared_norm: Of the gradients as they are; needed for clipping only.
    """
    factor: Any = (
        1.0
        if grad_scale is None
        else 1.0 / grad_scale.to(devices.home(grad_scale.device), torch.float64)
    )
    if max_grad_norm is not None:
        assert squared_norm is not None
        norm = squared_norm.sqrt() * factor
        limit = tracing.operand(max_grad_norm, norm.device)
        factor = factor * (limit / (norm + 1e-6)).clamp(max=1.0).nan_to_num(nan=0.0)
    return factor
