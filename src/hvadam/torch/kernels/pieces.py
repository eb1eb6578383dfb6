"""Large tensors piece by piece, so that what is computed on the way takes little memory.

A portable kernel makes 28 bytes of temporaries for each element that it has in hand, and up to 83
where it decodes low-bit state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import torch
from torch import Tensor

from hvadam.torch import storage
from hvadam.torch.kernels.batch import Batch, Columns

CACHED = 1 << 18  # elements: enough to hide the cost of a call, few enough for a CPU's cache
LAUNCHED = 1 << 22  # elsewhere: enough to hide the launch of a kernel, in at most 350 MB


def size(device: torch.device) -> int:
    """Return how many elements a kernel should have in hand at once."""
    return CACHED if device.type == "cpu" else LAUNCHED


def parts(batch: Batch[None]) -> Iterator[Batch[None]]:
    """Yield a batch in parts of that size: several tensors, or a piece of a larger one.

    Pieces are vectors over the memory of their tensors. ``torch.compile`` sees the whole: it fuses,
    and would only have more to trace.
    """
    tensors, limit = batch.tensors, size(batch.tensors.theta[0].device)
    if torch.compiler.is_compiling() or sum(x.numel() for x in tensors.theta) <= limit:
        yield batch
        return
    bias = batch.bias_corrections()
    rows: list[int] = []
    filled = 0
    for i, theta in enumerate(tensors.theta):
        if theta.numel() > limit:
            whole = _take(batch, bias, [i])
            for piece in _cut(whole.tensors, limit):
                yield whole._replace(tensors=piece)
            continue
        if rows and filled + theta.numel() > limit:
            yield _take(batch, bias, rows)
            rows, filled = [], 0
        rows.append(i)
        filled += theta.numel()
    if rows:
        yield _take(batch, bias, rows)


def _take(batch: Batch[None], bias: tuple[list[Any], list[Any]], rows: list[int]) -> Batch[None]:
    """Return some rows of a batch, their bias corrections known."""
    bias1, bias2 = ([column[i] for i in rows] for column in bias)
    return batch._replace(
        tensors=batch.tensors.take(rows),
        scopes=[batch.scopes[i] for i in rows],
        bias=(bias1, bias2),
    )


def _cut(one: Columns, limit: int) -> Iterator[Columns]:
    """Return pieces of one tensor; all of it if its columns do not share one dense layout."""
    vectors = _flat([column[0] for column in one[:5] if column])
    if vectors is None:
        return iter([one])
    flat = iter(vectors)
    scales = (one.m_scales, one.v_scales, one.s_scales)
    columns: list[Iterable[Any]] = [
        *(_column_pieces(next(flat), limit) if column else repeat(column) for column in one[:5]),
        repeat(one.step),
        *(_column_pieces(x[0], limit // storage.BLOCK) if x else repeat(x) for x in scales),
        repeat(one.index),
        ([begin] for begin in range(0, one.theta[0].numel(), limit)),
    ]
    return map(Columns._make, zip(*columns, strict=False))


def _column_pieces(x: Tensor, size: int) -> Iterator[list[Tensor]]:
    """Return pieces of a vector, each as the list that a column is."""
    return ([piece] for piece in x.split(size))


def _flat(tensors: list[Tensor]) -> list[Tensor] | None:
    """Return tensors as vectors over memory, or None if they do not share one dense layout."""
    first = tensors[0]
    strides = first.stride()
    if any(x.stride() != strides for x in tensors[1:]):
        return None
    order = sorted(range(first.ndim), key=strides.__getitem__, reverse=True)
    if not first.permute(order).is_contiguous():
        return None
    return [x.permute(order).view(-1) for x in tensors]
