"""How m, v and s are kept: in full, as bfloat16, or as blockwise 8-bit integers.

All kernels round alike. The random bits are a hash of (seed, parameter, step, stream, element), so
replicas stay equal and a resumed run repeats itself bit for bit:

    key  = mix(mix(mix(seed) + parameter) + 2 step + stream)
    word = mix(key + 16 (element div 64) + element mod 16)

in 32-bit arithmetic; stream 0 is the first pass, stream 1 the second. A word serves four elements,
sixteen apart: each turns it right by 8 bits more than the one before, and is rounded by the lower
16 of what it has then; s, beside m, by the 16 from bit 8 on. So a rounding has 16 fair bits, of
which eight are its own. Elements are counted in the order of the state's memory.

- bfloat16: the 16 bits that do not fit are rounded up with the probability they are worth.
- int8: blocks of 256 share a float32 scale: the largest magnitude by the largest q, rounded up to
  16 bits, so that q * scale is exact. Numbers are cut to 2^-16 of the scale, to nearest, and then
  rounded by the random bits. m and v are q * scale, q in [-127, 127]; s is kept by its root,
  (q * scale)², q in [0, 254], and what is above zero stays above zero, or the step would divide by
  ε alone. -128 and 255 stand for NaN. A scale is never zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCK = 256
# Elements that share random words, and how many words they share.
SHARING, GROUP = 64, 16
# Of 8-bit state: 2^16 / scale must be finite, and so must the largest q * scale, of 127 and of 254.
SMALLEST_SCALE = 2.0**-110
LARGEST_SCALES = {127.0: float.fromhex("0x1.0204p121"), 254.0: float.fromhex("0x1.0204p120")}
DTYPES: dict[str, tuple[torch.dtype, torch.dtype]] = {  # of m and v, and of s
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "int8": (torch.int8, torch.uint8),
}
SCALES = {
    "exp_avg": "exp_avg_scales",
    "hidden": "hidden_scales",
    "exp_avg_var": "exp_avg_var_scales",
}

# v and m_hat cannot be told apart when they differ by the roundings of their dtype. Those of
# low-bit state are random and mostly cancel, so they count for less than a machine epsilon.
LOW_BIT_ROUNDING = 2.0**-10


def rounding(dtype: torch.dtype) -> float:
    """Return how far two numbers kept in a dtype may lie apart and still stand for the same."""
    low_bit = dtype in (torch.bfloat16, torch.int8)
    return LOW_BIT_ROUNDING if low_bit else torch.finfo(dtype).eps


def dtypes_of(p: Tensor, state_dtype: str) -> tuple[torch.dtype, torch.dtype]:
    """Return the dtypes of m and v, and of s, for a parameter."""
    full = torch.promote_types(p.dtype, torch.float32)
    return DTYPES.get(state_dtype, (full, full))


def empty_state(p: Tensor, state_dtype: str) -> dict[str, Tensor]:
    """Return m, v and s of a parameter that has not moved."""
    signed, unsigned = dtypes_of(p, state_dtype)
    made: dict[str, Tensor] = {}
    for key, dtype in (("exp_avg", signed), ("hidden", signed), ("exp_avg_var", unsigned)):
        made[key] = torch.zeros_like(p, dtype=dtype, memory_format=torch.preserve_format)
        if state_dtype == "int8":
            blocks = -(-p.numel() // BLOCK)
            made[SCALES[key]] = torch.ones(blocks, dtype=torch.float32, device=p.device)
    return made


def random_bits(seed: int, index: int, step: int, stream: int, begin: int, like: Tensor) -> Tensor:
    """Return 32 random bits, as int64, for each element of `like`, counted from `begin`."""
    key = _mix(_mix(_mix(seed) + index) + 2 * step + stream)
    element = torch.arange(begin, begin + like.numel(), device=like.device)
    word = _mix(key + element // SHARING * GROUP + element % GROUP)
    turn = element // GROUP % 4 * 8
    return word >> turn | word << 32 - turn & 0xFFFFFFFF


def bits_for(name: str, bits: Tensor) -> Tensor:
    """Return the 16 bits that round m, v or s, of the 32 that an element has."""
    return (bits >> 8 if name == "s" else bits) & 0xFFFF


def decoded(state: dict[str, Any], key: str) -> Tensor:
    """Return m, v or s of a parameter's state as floating-point numbers, complex ones as pairs."""
    x = state[key]
    if x.dtype in (torch.bfloat16, torch.int8, torch.uint8):
        return decode(x, state.get(SCALES[key]))
    return torch.view_as_real(x) if x.is_complex() else x


def decode(values: Tensor, scales: Tensor | None) -> Tensor:
    """Return the float32 numbers that are kept."""
    if scales is None:
        return values.float()
    flat = _blocks(_memory_order(values).float())
    result = (flat * scales[:, None]).view(-1)[: values.numel()]
    if values.dtype == torch.uint8:
        result = result.square()
    stored = _memory_order(values)
    nan = stored == (255 if values.dtype == torch.uint8 else -128)
    return _like(torch.where(nan, torch.nan, result), values)


def encode(x: Tensor, values: Tensor, scales: Tensor | None, bits: Tensor | None) -> None:
    """Keep float32 numbers, rounded by 16 random bits each, or to nearest where bits is None."""
    flat = _memory_order(x)
    to = _memory_order(values)
    if scales is None:
        to.copy_(flat if bits is None else _round_bfloat16(flat, bits))
        return
    root = values.dtype == torch.uint8
    magnitude = flat.sqrt() if root else flat
    blocks = _blocks(torch.where(magnitude.isfinite(), magnitude, 0.0))
    largest = blocks.abs().amax(1)
    top = 254.0 if root else 127.0
    scales.copy_(_scales(largest, top))
    parts = (blocks * (2.0**16 / scales)[:, None]).clamp(-top * 2.0**16, top * 2.0**16)
    part = parts.round().int().view(-1)[: flat.numel()]
    q = part + (2**15 if bits is None else bits) >> 16
    if root:
        q = torch.where((magnitude > 0) & (q < 1), 1, q)
    to.copy_(torch.where(magnitude.isfinite(), q, 255 if root else -128))


def _scales(largest: Tensor, top: float) -> Tensor:
    """Return the scales of blocks by their largest magnitudes, rounded up to 16 bits."""
    bits = (largest / top).view(torch.int32).add(0xFF).bitwise_and(-0x100)
    short = bits.view(torch.float32) * top < largest
    scales = (bits + 0x100 * short.int()).view(torch.float32)
    scales = scales.clamp(SMALLEST_SCALE, LARGEST_SCALES[top])
    return torch.where(largest > 0, scales, 1.0)


def _round_bfloat16(x: Tensor, bits: Tensor) -> Tensor:
    """Round to bfloat16's numbers, up with the probability that the lost bits are worth."""
    raw = x.contiguous().view(torch.int32).long()
    rounded = ((raw + bits) & 0xFFFF0000).to(torch.int32).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x)


def _mix(x: Any) -> Any:
    """Return a hash of 32 bits, of ints and of int64 tensors."""
    x = x & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)


def _blocks(flat: Tensor) -> Tensor:
    """Return rows of BLOCK elements, the last one padded with zeros."""
    return torch.nn.functional.pad(flat, (0, -flat.numel() % BLOCK)).view(-1, BLOCK)


def _memory_order(x: Tensor) -> Tensor:
    """Return a dense tensor as a vector over its memory."""
    order = sorted(range(x.ndim), key=x.stride().__getitem__, reverse=True)
    return x.permute(order).reshape(-1)


def _like(flat: Tensor, x: Tensor) -> Tensor:
    """Return a vector in memory order as a tensor of x's shape and layout."""
    result = torch.empty_like(x, dtype=flat.dtype)
    _memory_order(result).copy_(flat)
    return result
