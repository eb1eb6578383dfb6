"""The arithmetic of a step, as interchangeable kernels; no policy lives here.

A kernel is a module of these functions:

``available() -> str | None``
    None, or the reason why it cannot run here.
``norm(batches, total)``
    Adds the squares of the gradients to a 0-dim float64 tensor.
``accumulate(batches, dots)``
    Counts the step, updates m and s, and adds ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² to the row of ``dots``
    (scopes, 4), float64, that each tensor belongs to.
``apply(batches, mix, gain)``
    v <- mix v + (1 - mix) m̂, then both steps on θ, with one mix and one gain per scope.

and for ``hidden_step="late"``, which passes over memory once,

``settle(batches)``
    Does what the last step left pending: v's move and the step along it, then the projection.
``sweep(batches, dots)``
    Settles, accumulates, and takes the adaptive step.
``defer(batches, mix, gain)``
    Notes what is now pending.

In the exact step parameters are written by ``apply`` alone, after the scalars are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from hvadam.torch.kernels import foreach, loop, native, triton
from hvadam.torch.kernels.batch import Batch, Columns, Options

KERNELS: dict[str, ModuleType] = {
    "loop": loop,
    "foreach": foreach,
    "native": native,
    "triton": triton,
}
NAMES = ("auto", *KERNELS)

# On a CPU without the native kernel a list of small tensors costs least in one foreach call, and a
# large tensor in chunks that stay in cache; the two cross near this many elements.
SMALL = 4096


def require(kernel: str) -> None:
    """Refuse a kernel that cannot run here, with the reason."""
    reason = KERNELS[kernel].available() if kernel != "auto" else None
    if reason:
        raise RuntimeError(f'HVAdam: kernel="{kernel}" is not available: {reason}')


def assign(
    kernel: str,
    tensors: Columns,
    scopes: Sequence[int],
    options: Options,
    bounds: tuple[float, float] | None,
) -> Iterator[tuple[str, Batch]]:
    """Sort tensors into batches, each with the kernel that serves it.

    "native" and "auto" give the native kernel all that it can take, "triton" the Triton one; the
    rest goes to the portable kernels, tensor by tensor, inside the same step.
    """
    compiling = torch.compiler.is_compiling()
    if kernel in ("auto", "native") and not compiling and native.available() is None:
        table = native.describe(tensors, scopes)
        if len(table.taken):
            yield "native", Batch(*_rows(tensors, scopes, table.taken), options, table, bounds)
        if not len(table.rest):
            return
        tensors, scopes = _rows(tensors, scopes, table.rest)

    if kernel == "triton" and not compiling:
        tensors = tensors.as_real()
        taken, rest = triton.split(tensors)
        for indices in taken:
            columns, batch_scopes = _rows(tensors, scopes, indices)
            yield kernel, Batch(columns, batch_scopes, options, triton.Shared(), bounds)
        if not rest:
            return
        tensors, scopes = _rows(tensors, scopes, rest)

    refuse_sparse(tensors.g)
    batches: dict[Any, list[int]] = {}
    for i, theta in enumerate(tensors.theta):
        name = kernel if kernel in ("loop", "foreach") else _portable(theta)
        batches.setdefault((name, scopes[i], theta.dtype, theta.device), []).append(i)
    for (name, *_), indices in batches.items():
        columns, batch_scopes = _rows(tensors, scopes, indices)
        yield name, Batch(columns.as_real(), batch_scopes, options, None, bounds)


def refuse_sparse(grads: Sequence[Tensor]) -> None:
    """Refuse gradients that are not dense."""
    for g in grads:
        if g.layout != torch.strided:
            raise RuntimeError(
                f"HVAdam: gradients must be dense, got layout {g.layout}; build the module with "
                "sparse=False, or give its parameters to torch.optim.SparseAdam."
            )


def _portable(theta: Tensor) -> str:
    if torch.compiler.is_compiling() or theta.device.type != "cpu":
        return "foreach"
    return "foreach" if theta.numel() < SMALL else "loop"


def _rows(
    tensors: Columns, scopes: Sequence[int], indices: Sequence[int]
) -> tuple[Columns, Sequence[int]]:
    if len(indices) == len(scopes):
        return tensors, scopes
    return tensors.take(indices), [scopes[i] for i in indices]
