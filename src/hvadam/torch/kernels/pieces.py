"""Large tensors piece by piece, so that what is computed on the way takes little memory.

A portable kernel makes 28 bytes of temporaries for each element that it has in hand, and up to 83
where it decodes low-bit state.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from hvadam.torch.kernels import storage
from hvadam.torch.kernels.batch import Batch, Columns

CACHED = 1 << 17  # elements: enough to hide the cost of a call, few enough for a CPU's cache
LAUNCHED = 1 << 22  # elsewhere: enough to hide the launch of a kernel, in at most 350 MB

_CUT = ("theta", "g", "m", "v", "s")
_CUT_BY_BLOCK = ("m_scales", "v_scales", "s_scales")


def size(device: torch.device) -> int:
    """How many elements a kernel should have in hand at once."""
    return CACHED if device.type == "cpu" else LAUNCHED


def parts(batch: Batch) -> Iterator[Batch]:
    """A batch in parts of that many elements: several tensors, or a piece of a larger one.

    Pieces are vectors over the memory of their tensors. ``torch.compile`` sees the whole: it fuses,
    and would only have more to trace.
    """
    tensors, limit = batch.tensors, size(batch.tensors.theta[0].device)
    if torch.compiler.is_compiling() or sum(x.numel() for x in tensors.theta) <= limit:
        yield batch
        return
    rows: list[int] = []
    filled = 0
    for i, theta in enumerate(tensors.theta):
        cut = _cut(tensors.take([i]), limit) if theta.numel() > limit else None
        if cut is not None:
            for piece in cut:
                yield batch._replace(tensors=piece, scopes=[batch.scopes[i]])
            continue
        if rows and filled + theta.numel() > limit:
            yield _taken(batch, rows)
            rows, filled = [], 0
        rows.append(i)
        filled += theta.numel()
    if rows:
        yield _taken(batch, rows)


def _taken(batch: Batch, rows: list[int]) -> Batch:
    return batch._replace(tensors=batch.tensors.take(rows), scopes=[batch.scopes[i] for i in rows])


def _cut(one: Columns, limit: int) -> Iterator[Columns] | None:
    """Pieces of one tensor, or None if what is kept of it does not share one dense layout."""
    there = [name for name in _CUT if getattr(one, name)]
    vectors = _flat([getattr(one, name)[0] for name in there])
    if vectors is None:
        return None
    scales = [name for name in _CUT_BY_BLOCK if getattr(one, name)]
    blocks = (getattr(one, name)[0].split(limit // storage.BLOCK) for name in scales)
    rows = zip(*(x.split(limit) for x in vectors), *blocks, strict=True)
    return (
        one._replace(
            begin=[i * limit],
            **{name: [x] for name, x in zip((*there, *scales), row, strict=True)},
        )
        for i, row in enumerate(rows)
    )


def _flat(tensors: list[Tensor]) -> list[Tensor] | None:
    """The tensors as vectors over their memory, or None if they do not share one dense layout."""
    first = tensors[0]
    strides = first.stride()
    if any(x.stride() != strides for x in tensors[1:]):
        return None
    order = sorted(range(first.ndim), key=strides.__getitem__, reverse=True)
    if not first.permute(order).is_contiguous():
        return None
    return [x.permute(order).view(-1) for x in tensors]
