"""The tensors of a step as the Triton kernel sees them: a table of addresses, cut into chunks.

Legend: see ``batch.py``. A row describes a tensor, a group row the options of its param group, a
chunk is what one program of a launch takes. A launch is compiled for a kind of tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hvadam.torch.kernels import storage
from hvadam.torch.kernels.batch import Batch, Columns

CHUNK = 16 * storage.BLOCK  # elements
ALIGNMENT = 16  # bytes of an address, elements of a size: then a GPU reads several at once
TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)  # of theta and g
FULL, BFLOAT16, INT8 = range(3)  # how m, v and s are kept
KEPT = {
    (torch.float32, torch.float32): FULL,
    (torch.float64, torch.float64): FULL,
    storage.DTYPES["bfloat16"]: BFLOAT16,
    storage.DTYPES["int8"]: INT8,
}

# Of the table and of the options. In triton_passes.py a column goes by its place.
COLUMNS = (
    *("theta", "g", "m", "v", "s", "step", "m_scales", "v_scales", "s_scales", "pending"),
    *("size", "scope", "index", "group"),
)
OPTIONS = (
    *("lr", "beta1", "one_beta1", "beta2", "one_beta2", "eps", "gamma", "decay", "coupled_decay"),
    *("hidden_scale", "low", "high", "sign", "seed", "factor"),
)
WORK = 8  # numbers that a step works out for each tensor

_PLAIN = getattr(Tensor, "__torch_dispatch__", None)  # subclasses with a life of their own differ
# What a captured graph sends again at every replay.
_captured: list[Tensor] = []


class Kind(NamedTuple):
    """What a launch is compiled for."""

    theta: torch.dtype
    g: torch.dtype
    real: torch.dtype  # to compute with
    kept: int
    adam: bool
    coupled: bool
    aligned: bool


class Layout(NamedTuple):
    """How tensors are cut into chunks."""

    count: int
    chunks: list[Tensor]  # of each kind: (row, number within the tensor, place among the dots)
    ends: Tensor  # where the dots of each scope begin, and where the last ones end


class Plan(NamedTuple):
    """The tensors of one device."""

    device: torch.device
    table: Tensor
    options: Tensor
    work: Tensor
    layout: Layout
    kinds: list[Kind]

    def launches(self) -> Iterator[tuple[Kind, Tensor]]:
        """The chunks of each kind; where all tensors are empty there are none."""
        pairs = zip(self.kinds, self.layout.chunks, strict=True)
        return ((kind, chunks) for kind, chunks in pairs if len(chunks))

    def scale_gradients(self, factor: float | Tensor) -> None:
        """Set the step's factor on gradients, known only after their norm."""
        if isinstance(factor, Tensor) or factor != 1.0:
            self.options[:, OPTIONS.index("factor")] = factor


class Shared:
    """What the passes of a step share; its first batch keeps it for all of them."""

    plans: list[Plan] | None = None


def split(tensors: Columns, device_type: str) -> tuple[list[list[int]], list[int]]:
    """The rows that the kernel takes, by device, and the rest, which it leaves to others."""
    taken: dict[torch.device, list[int]] = {}
    rest: list[int] = []
    for i, theta in enumerate(tensors.theta):
        fits = theta.device.type == device_type and _fits(tensors, i)
        (taken.setdefault(theta.device, []) if fits else rest).append(i)
    return list(taken.values()), rest


def plans(batches: Sequence[Batch]) -> Iterator[Plan]:
    """The plan of each device, which is the current one meanwhile."""
    shared = batches[0].table
    if shared.plans is None:
        devices: dict[torch.device, list[Batch]] = {}
        for batch in batches:
            devices.setdefault(batch.tensors.theta[0].device, []).append(batch)
        shared.plans = [_plan(device, group) for device, group in devices.items()]
    for plan in shared.plans:
        with _current(plan.device):
            yield plan


def _fits(tensors: Columns, i: int) -> bool:
    """Whether a row has the types and the one dense layout that the passes read."""
    theta, m, v, s = (column[i] for column in (tensors.theta, tensors.m, tensors.v, tensors.s))
    g = tensors.g[i : i + 1]
    arrays = [theta, m, v, s, *g]
    kept = KEPT.get((m.dtype, s.dtype))
    real = torch.float64 if theta.dtype == torch.float64 else torch.float32
    blocks = -(-m.numel() // storage.BLOCK)
    vectors = [
        (tensors.step[i], torch.float32, 1),
        *((x[i], torch.float32, blocks) for x in tensors[6:9] if x),
        *((x[i], torch.float64, 2) for x in (tensors.pending,) if x),
    ]
    return (
        kept is not None
        and m.dtype == v.dtype
        and (m.dtype == real or (kept != FULL and real == torch.float32))
        and all(x.dtype in TYPES for x in (theta, *g))
        and bool(tensors.m_scales) == (kept == INT8)
        and all(_is_plain(x) and x.device == theta.device for x in arrays)
        and _share_layout(arrays)
        and all(
            _is_plain(x)
            and x.device == theta.device
            and x.dtype == dtype
            and x.numel() == size
            and x.is_contiguous()
            for x, dtype, size in vectors
        )
    )


def _is_plain(x: Tensor) -> bool:
    """Whether what lies at its address is all that there is to it."""
    return (
        getattr(type(x), "__torch_dispatch__", None) is _PLAIN
        and x.layout == torch.strided
        and not x.is_neg()
    )


def _share_layout(tensors: Sequence[Tensor]) -> bool:
    """Whether the tensors fill their memory without gaps, all in the same order."""
    first = tensors[0]
    shape = first.shape
    if any(x.shape != shape for x in tensors[1:]):
        return False
    if all(x.is_contiguous() for x in tensors):
        return True
    strides, *others = (
        [step for step, size in zip(x.stride(), shape, strict=True) if size != 1] for x in tensors
    )
    order = sorted(range(first.ndim), key=first.stride().__getitem__, reverse=True)
    return all(x == strides for x in others) and first.permute(order).is_contiguous()


def _plan(device: torch.device, batches: Sequence[Batch]) -> Plan:
    rows = np.concatenate([_rows(batch, group) for group, batch in enumerate(batches)])
    addresses = np.stack([rows[name] for name in ("theta", "g", "m", "v", "s")])
    aligned = (addresses % ALIGNMENT == 0).all(0) & (rows["size"] % ALIGNMENT == 0)
    numbers: dict[Kind, int] = {}
    kinds = [
        numbers.setdefault(kind._replace(aligned=fits), len(numbers))
        for kind, fits in zip(_kinds(batches), aligned.tolist(), strict=True)
    ]
    options = np.array([_group(batch) for batch in batches])

    geometry = np.stack([rows["size"], rows["scope"], np.array(kinds)])
    if _is_capturing(device):  # what is made now has its values only once the graph runs
        layout = _cut(device, geometry)
    else:
        layout = _layout(device, _stream(device), geometry.tobytes())
    sent = _send(np.concatenate([rows.view(np.int64), options.ravel().view(np.int64)]), device)
    cut = rows.size * len(COLUMNS)
    plan = Plan(
        device,
        sent[:cut].view(-1, len(COLUMNS)),
        sent[cut:].view(torch.float64).view(-1, len(OPTIONS)),
        torch.empty(rows.size, WORK, dtype=torch.float64, device=device),
        layout,
        list(numbers),
    )
    for group, batch in enumerate(batches):
        if isinstance(batch.options.lr, Tensor):
            plan.options[group, OPTIONS.index("lr")] = batch.options.lr
    return plan


def _rows(batch: Batch, group: int) -> np.ndarray:
    tensors = batch.tensors
    rows = np.zeros(len(tensors.theta), [(name, np.int64) for name in COLUMNS])
    for name in COLUMNS[:10]:
        column: Sequence[Tensor] = getattr(tensors, name)
        if column:
            rows[name] = [x.data_ptr() for x in column]
    rows["size"] = [x.numel() for x in tensors.theta]
    rows["scope"] = batch.scopes
    if tensors.index:
        rows["index"] = tensors.index
    rows["group"] = group
    return rows


def _kinds(batches: Sequence[Batch]) -> Iterator[Kind]:
    """The kind of each row, alignment left open."""
    for batch in batches:
        x, o = batch.tensors, batch.options
        for theta, g, m, s in zip(x.theta, x.g or x.theta, x.m, x.s, strict=True):
            real = torch.promote_types(theta.dtype, torch.float32)
            kept = KEPT[m.dtype, s.dtype]
            yield Kind(theta.dtype, g.dtype, real, kept, o.adam, o.coupled_decay != 0, False)


def _group(batch: Batch) -> tuple[float, ...]:
    o = batch.options
    lr = 0.0 if isinstance(o.lr, Tensor) else o.lr  # set on the device
    low, high = batch.bounds or (-math.inf, math.inf)
    return (
        *(lr, o.beta1, 1.0 - o.beta1, o.beta2, 1.0 - o.beta2, o.eps),
        *(o.gamma, o.decay, o.coupled_decay, o.hidden_scale),
        *(low, high, -1.0 if o.maximize else 1.0, o.seed, 1.0),
    )


@lru_cache(maxsize=32)
def _layout(device: torch.device, stream: int, geometry: bytes) -> Layout:
    """The layout for tensors of these sizes, scopes and kinds; sent once, and in stream order."""
    return _cut(device, np.frombuffer(geometry, np.int64).reshape(3, -1))


def _cut(device: torch.device, geometry: np.ndarray) -> Layout:
    sizes, scopes, kinds = geometry
    chunks = -(-sizes // CHUNK)
    row = np.repeat(np.arange(len(sizes)), chunks)
    number = np.arange(len(row)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    place = np.empty_like(row)  # among the dots, those of a scope side by side
    place[np.argsort(scopes[row], kind="stable")] = np.arange(len(row))
    ends = np.searchsorted(np.sort(scopes[row]), np.arange(scopes.max() + 2))
    order = np.argsort(kinds[row], kind="stable")
    listed = np.stack([row, number, place], 1)[order]
    counts = np.bincount(kinds[row], minlength=kinds.max() + 1)
    sent = _send(np.concatenate([listed.ravel(), ends]), device)
    parts = sent[: listed.size].view(-1, 3).split(counts.tolist())
    return Layout(len(row), list(parts), sent[listed.size :])


def _send(values: np.ndarray, device: torch.device) -> Tensor:
    """To the device, in one transfer that nobody waits for."""
    host = torch.from_numpy(values)
    if device.type == "cpu":
        return host
    host = host.pin_memory()
    if _is_capturing(device):
        _captured.append(host)
    return host.to(device, non_blocking=True)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Launches go to the current device; the interpreter's arithmetic is NumPy's, which warns."""
    return torch.cuda.device(device) if device.type == "cuda" else np.errstate(all="ignore")


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


def _is_capturing(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()
