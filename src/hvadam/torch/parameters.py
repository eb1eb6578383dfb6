"""Parameters that are refused: when they join a group, and when they changed before a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hvadam.torch import storage


def check(p: Any, state_dtype: str) -> None:
    """Refuse a parameter that cannot be optimized with its kind of state."""
    if not isinstance(p, Tensor):  # torch refuses it
        return
    if not (p.is_floating_point() or p.is_complex()):
        raise TypeError(f"HVAdam: parameters must be floating point or complex, got {p.dtype}.")
    if not is_lazy(p):  # a lazy module's has no numbers before its first forward pass
        refuse_lazy_views([p])
    if state_dtype != "float32" and not _is_float32_or_less(p):
        raise TypeError(
            f'HVAdam: state_dtype="{state_dtype}" is for parameters of float32 or less, got '
            f'{p.dtype}; use state_dtype="float32".'
        )


def refuse_lazy_views(params: Iterable[Tensor]) -> None:
    """Refuse parameters whose sign or conjugation is still to be done.

    Kernels that write memory would write past it, and the others to a copy.
    """
    for p in params:
        if p.is_conj() or p.is_neg():
            raise ValueError(
                "HVAdam: parameters must not be conjugated or negated lazily; give it "
                "p.resolve_conj().resolve_neg()."
            )


def refuse_changed(params: Iterable[Tensor], averages: Iterable[Tensor]) -> None:
    """Refuse parameters whose dtype or device changed since their state was made.

    Args:
        params: The parameters.
        averages: m of each, as it is kept.
    """
    for p, m in zip(params, averages, strict=True):
        low_bit = m.dtype in (torch.bfloat16, torch.int8)
        fits = _is_float32_or_less(p) if low_bit else m.dtype == storage.dtypes_of(p, "float32")[0]
        if not fits or m.device != p.device:
            raise RuntimeError(
                f"HVAdam: a parameter is now {p.dtype} on {p.device}, its state {m.dtype} on "
                f"{m.device}; after model.double(), model.to(...) and the like convert the state "
                "with optimizer.load_state_dict(optimizer.state_dict())."
            )


def _is_float32_or_less(p: Tensor) -> bool:
    """Return whether float32 holds all numbers of a parameter's dtype."""
    return torch.promote_types(p.dtype, torch.float32) == torch.float32
