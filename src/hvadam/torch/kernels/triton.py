"""The kernel for GPUs, in Triton: few launches a step, however many tensors and param groups.

Proven under Triton's interpreter. On a GPU ``kernel="auto"`` takes it once it has proven itself
there (``self_check.py``).

The host writes addresses, sizes and options into one table (``triton_table.py``), anew at every
step, and sends it to the device in one transfer; nothing is read back. The passes over it are in
``triton_passes.py``. Tensors of another type, or whose memory cannot be read 16 bytes at a time,
take launches of their own; what does not fit at all is left to the portable kernels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from hvadam.torch.kernels import triton_table
from hvadam.torch.kernels.batch import Batch, Columns
from hvadam.torch.kernels.triton_table import Shared, plans


def available() -> str | None:
    """Return None, or why the kernel cannot run here and what would help."""
    if not _is_installed():
        return "triton is not installed. Install hvadam[triton]."
    if not is_interpreted() and not torch.cuda.is_available():
        return "torch finds no CUDA device. TRITON_INTERPRET=1 emulates one, slowly, for tests."
    return None


def is_interpreted() -> bool:
    """Return whether a GPU is emulated: then the kernel takes tensors on the CPU only."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y")


def may_serve(tensors: Sequence[Tensor]) -> bool:
    """Return whether "auto" may want the kernel: for tensors on a GPU, not on an emulated one."""
    return any(x.is_cuda for x in tensors) and available() is None and not is_interpreted()


def split(tensors: Columns) -> tuple[list[list[int]], list[int]]:
    """Return the rows that the kernel takes, by device, and the rest, which it leaves to others."""
    return triton_table.split(tensors, "cpu" if is_interpreted() else "cuda")


def norm(batches: Sequence[Batch[Shared]], total: Tensor) -> None:
    """Add the squares of the gradients."""
    for plan in plans(batches):
        partial = plan.work.new_empty(plan.layout.count)
        for kind, chunks in plan.launches():
            constants = {"G_TYPE": _type(kind.g), "ALIGNED": kind.aligned}
            _launch("squares", len(chunks), plan.table, chunks, partial, **constants)
        total += partial.sum().to(total.device)


def accumulate(batches: Sequence[Batch[Shared]], dots: Tensor) -> None:
    """Count the step, update m and s, add the four dots of each scope."""
    for plan in plans(batches):
        plan.scale_gradients(batches[0].options.factor)  # the step's: all have the same
        count = len(plan.table)
        programs = -(-count // _passes().LANES.value)
        _launch("prepare", programs, plan.table, plan.options, plan.work, count)
        partial = plan.work.new_empty(plan.layout.count, 4)
        for kind, chunks in plan.launches():
            _launch(
                *("first", len(chunks), plan.table, plan.options, plan.work, chunks, partial),
                THETA_TYPE=_type(kind.theta),
                G_TYPE=_type(kind.g),
                REAL=_type(kind.real),
                KEPT=kind.kept,
                ADAM=kind.adam,
                COUPLED=kind.coupled,
                ALIGNED=kind.aligned,
            )
        ends = plan.layout.ends
        own = dots if dots.device == plan.device else torch.zeros_like(dots, device=plan.device)
        _launch("fold", len(ends) - 1, partial, ends, own)
        if own is not dots:
            dots += own.to(dots.device)
    _mark_written(batches, "m", "s", "step", "m_scales", "s_scales")


def apply(batches: Sequence[Batch[Shared]], mix: Tensor, gain: Tensor) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    for plan in plans(batches):
        own_mix, own_gain = mix.to(plan.device), gain.to(plan.device)
        for kind, chunks in plan.launches():
            _launch(
                *("second", len(chunks), plan.table, plan.options, plan.work, chunks),
                *(own_mix, own_gain),
                THETA_TYPE=_type(kind.theta),
                REAL=_type(kind.real),
                KEPT=kind.kept,
                ALIGNED=kind.aligned,
            )
    _mark_written(batches, "theta", "v", "v_scales")


def _launch(name: str, programs: int, *arguments: Any, **constants: Any) -> None:
    """Launch a pass by name, with so many programs."""
    # A fused multiply-add rounds once where the interpreter, which proved the passes, rounds twice.
    getattr(_passes(), name)[(programs,)](*arguments, **constants, enable_fp_fusion=False)


def _type(dtype: torch.dtype) -> Any:
    """Return Triton's name of a dtype."""
    return getattr(_passes().tl, str(dtype).removeprefix("torch."))


def _mark_written(batches: Sequence[Batch[Shared]], *columns: str) -> None:
    """Tell autograd of writes, which it does not see through addresses."""
    for batch in batches:
        for column in columns:
            increment_version(getattr(batch.tensors, column))


def _passes() -> Any:
    """Return the module of the passes, loaded on first use: loading triton takes a second."""
    return import_module("hvadam.torch.kernels.triton_passes")


@cache
def _is_installed() -> bool:
    """Return whether triton is installed."""
    return find_spec("triton") is not None
