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

from hvadam.torch import storage
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
ADDRESSES = (
    *("theta", "g", "m", "v", "s"),
    *("step", "m_scales", "v_scales", "s_scales"),
)
COLUMNS = (*ADDRESSES, "size", "scope", "index", "group")
OPTIONS = (
    *("lr", "one_beta1", "beta2", "one_beta2", "eps", "gamma", "decay", "coupled_decay"),
    *("hidden_scale", "low", "high", "sign", "seed", "factor"),
)
WORK = 4  # numbers that a step works out for each tensor

# What a captured graph sends again at every replay.
_captured: list[Tensor] = []


class Kind(NamedTuple):
    """A kind of tensor, for which a launch is compiled."""

    theta: torch.dtype
    g: torch.dtype
    real: torch.dtype  # to compute with
    kept: int
    adam: bool
    coupled: bool
    aligned: bool


class Layout(NamedTuple):
    """A cut of tensors into chunks."""

    count: int
    chunks: list[Tensor]  # of each kind: (row, number within the tensor, place among the dots)
    ends: Tensor  # where the dots of each scope begin, and where the last ones end


class Plan(NamedTuple):
    """The tensors of one device as the launches take them."""

    device: torch.device
    table: Tensor
    options: Tensor
    work: Tensor
    layout: Layout
    kinds: list[Kind]

    def launches(self) -> Iterator[tuple[Kind, Tensor]]:
        """Yield the chunks of each kind; where all tensors are empty there are none."""
        pairs = zip(self.kinds, self.layout.chunks, strict=True)
        return ((kind, chunks) for kind, chunks in pairs if len(chunks))

    def scale_gradients(self, factor: float | Tensor) -> None:
        """Set the step's factor on gradients, known only after their norm."""
        if isinstance(factor, Tensor) or factor != 1.0:
            self.options[:, OPTIONS.index("factor")] = factor


class Shared:
    """The plans that the passes of a step share; its first batch keeps them for all."""

    plans: list[Plan] | None = None


def split(tensors: Columns, device_type: str) -> tuple[list[list[int]], list[int]]:
    """Return the rows that the kernel takes, by device, and the rest, which it leaves to others."""
    taken: dict[torch.device, list[int]] = {}
    rest: list[int] = []
    columns = {name: getattr(tensors, name) for name in ADDRESSES if getattr(tensors, name)}
    names = tuple(columns)
    arrays = names.index("step")
    seen, readable = None, False  # rows mostly look like the one before
    for i, row in enumerate(zip(*columns.values(), strict=True)):
        types = [(type(x), x.dtype, x.device, x.layout) for x in row]
        if types != seen:
            seen, readable = types, _types_fit(names, types, device_type)
        fits = readable and _fits(row, arrays)
        (taken.setdefault(row[0].device, []) if fits else rest).append(i)
    return list(taken.values()), rest


def plans(batches: Sequence[Batch[Shared]]) -> Iterator[Plan]:
    """Yield the plan of each device, which is the current one meanwhile."""
    shared = batches[0].own
    if shared.plans is None:
        devices: dict[torch.device, list[Batch[Shared]]] = {}
        for batch in batches:
            devices.setdefault(batch.tensors.theta[0].device, []).append(batch)
        shared.plans = []
        for device, group in devices.items():
            with _current(device):
                shared.plans.append(_plan(device, group))
    for plan in shared.plans:
        with _current(plan.device):
            yield plan


def _types_fit(names: Sequence[str], types: Sequence[tuple[Any, ...]], device_type: str) -> bool:
    """Return whether the passes can read a row whose tensors have these types."""
    dtypes = {name: dtype for name, (_, dtype, _, _) in zip(names, types, strict=True)}
    theta, m = dtypes["theta"], dtypes["m"]
    kept = KEPT.get((m, dtypes["s"]))
    real = torch.float64 if theta == torch.float64 else torch.float32
    expected = {"v": m, "step": torch.float32}
    expected |= dict.fromkeys(("m_scales", "v_scales", "s_scales"), torch.float32)
    plain = getattr(Tensor, "__torch_dispatch__", None)  # what some subclasses replace
    return (
        types[0][2].type == device_type
        and all(
            getattr(kind, "__torch_dispatch__", None) is plain
            and device == types[0][2]
            and layout == torch.strided
            for kind, _, device, layout in types
        )
        and kept is not None
        and (m == real or (kept != FULL and real == torch.float32))
        and theta in TYPES
        and dtypes["g"] in TYPES
        and all(dtypes[name] == dtype for name, dtype in expected.items() if name in dtypes)
        and ("m_scales" in names) == (kept == INT8)
    )


def _fits(row: Sequence[Tensor], count: int) -> bool:
    """Return whether a row's arrays, which are the first of it, share one dense layout."""
    theta = row[0]
    shape, size = theta.shape, theta.numel()
    arrays, vectors = row[:count], row[count:]
    if any([x.shape != shape for x in arrays]) or any(map(Tensor.is_neg, arrays[:2])):
        return False
    if not all(map(Tensor.is_contiguous, row)) and not (
        all(map(Tensor.is_contiguous, vectors)) and _share_strides(arrays)
    ):
        return False
    blocks = -(-size // storage.BLOCK)
    return [x.numel() for x in vectors] in ([1], [1, blocks, blocks, blocks])  # step, scales


def _share_strides(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors of a shape fill memory without gaps, all in the same order."""
    first = tensors[0]
    strides, *others = (
        [step for step, size in zip(x.stride(), x.shape, strict=True) if size != 1] for x in tensors
    )
    order = sorted(range(first.ndim), key=first.stride().__getitem__, reverse=True)
    return all(x == strides for x in others) and first.permute(order).is_contiguous()


def _plan(device: torch.device, batches: Sequence[Batch[Shared]]) -> Plan:
    """Return the plan of a device's batches, its tables sent."""
    rows = np.concatenate([_rows(batch, group) for group, batch in enumerate(batches)])
    addresses = np.stack([rows[name] for name in ("theta", "g", "m", "v", "s")])
    aligned = (addresses % ALIGNMENT == 0).all(0) & (rows["size"] % ALIGNMENT == 0)
    numbers: dict[Kind, int] = {}
    kinds = [
        numbers.setdefault(Kind._make((*types, fits)), len(numbers))
        for types, fits in zip(_types(batches), aligned.tolist(), strict=True)
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


def _rows(batch: Batch[Shared], group: int) -> np.ndarray:
    """Return the rows of a batch as numbers."""
    tensors = batch.tensors
    rows = np.zeros(len(tensors.theta), [(name, np.int64) for name in COLUMNS])
    for name in ADDRESSES:
        column: Sequence[Tensor] = getattr(tensors, name)
        if column:
            rows[name] = [x.data_ptr() for x in column]
    rows["size"] = [x.numel() for x in tensors.theta]
    rows["scope"] = batch.scopes
    if tensors.index:
        rows["index"] = tensors.index
    rows["group"] = group
    return rows


def _types(batches: Sequence[Batch[Shared]]) -> Iterator[tuple[Any, ...]]:
    """Yield the kind of each row but for its alignment."""
    for batch in batches:
        x, o = batch.tensors, batch.options
        for theta, g, m, s in zip(x.theta, x.g, x.m, x.s, strict=True):
            real = torch.float64 if theta.dtype == torch.float64 else torch.float32
            kept = KEPT[m.dtype, s.dtype]
            yield theta.dtype, g.dtype, real, kept, o.adam, o.coupled_decay != 0


def _group(batch: Batch[Shared]) -> tuple[float, ...]:
    """Return the options of a batch as the passes read them."""
    o = batch.options
    lr = 0.0 if isinstance(o.lr, Tensor) else o.lr  # set on the device
    low, high = o.bounds or (-math.inf, math.inf)
    return (
        *(lr, 1.0 - o.beta1, o.beta2, 1.0 - o.beta2, o.eps),
        *(o.gamma, o.decay, o.coupled_decay, o.hidden_scale),
        *(low, high, -1.0 if o.maximize else 1.0, o.seed, 1.0),
    )


@lru_cache(maxsize=32)
def _layout(device: torch.device, stream: int, geometry: bytes) -> Layout:
    """Return the layout for tensors of these sizes, scopes and kinds, sent once per stream."""
    return _cut(device, np.frombuffer(geometry, np.int64).reshape(3, -1))


def _cut(device: torch.device, geometry: np.ndarray) -> Layout:
    """Return the layout for tensors of these sizes, scopes and kinds, sent anew."""
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
    """Send numbers to the device, in one transfer that nobody waits for."""
    host = torch.from_numpy(values)
    if device.type == "cpu":
        return host
    host = host.pin_memory()
    if _is_capturing(device):
        _captured.append(host)
    return host.to(device, non_blocking=True)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Make a device current, for launches; the interpreter's arithmetic is NumPy's, which warns."""
    return torch.cuda.device(device) if device.type == "cuda" else np.errstate(all="ignore")


def _stream(device: torch.device) -> int:
    """Return the handle of a device's current stream."""
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


def _is_capturing(device: torch.device) -> bool:
    """Return whether a device's current stream is being captured into a graph."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()
