"""How the Triton passes reach memory: chunks, tiles, and the ways in which m, v and s are kept.

A program takes one chunk, in tiles of ROWS blocks of ``storage.BLOCK`` elements. ``at`` is the
tensor's row in the table, ``start`` the first element of a tile, ``lane`` the place of each element
from there. Low-bit state is rounded as in ``storage.py``, to the same bits.
"""

# Triton reads the annotations, so they are not postponed; and it gives a compile-time branch one
# type only where it is a statement.
# ruff: noqa: SIM108, SIM300
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

from hvadam.torch import storage
from hvadam.torch.kernels import triton_table

BLOCK = tl.constexpr(storage.BLOCK)
ROWS = tl.constexpr(4)
TILE = tl.constexpr(4 * storage.BLOCK)
CHUNK = tl.constexpr(triton_table.CHUNK)
ALIGNMENT = tl.constexpr(triton_table.ALIGNMENT)

# Columns of the table.
COLUMNS = tl.constexpr(len(triton_table.COLUMNS))
THETA, G, M, V, S, STEP, M_SCALES, V_SCALES, S_SCALES, SIZE, SCOPE, INDEX, GROUP = (
    tl.constexpr(i) for i in range(len(triton_table.COLUMNS))
)
SCALES = tl.constexpr(M_SCALES.value - M.value)  # from a column of numbers to that of their scales
SMALLEST_SCALE = tl.constexpr(storage.SMALLEST_SCALE)
LARGEST_SCALE, LARGEST_ROOT_SCALE = (
    tl.constexpr(storage.LARGEST_SCALES[x]) for x in (127.0, 254.0)
)
SHARING, GROUP_SIZE = tl.constexpr(storage.SHARING), tl.constexpr(storage.GROUP)
FULL, BFLOAT16 = tl.constexpr(triton_table.FULL), tl.constexpr(triton_table.BFLOAT16)


@triton.jit
def own_chunk(table, chunks):
    """Return this program's tensor, which part of it to take, and the place of the result."""
    cell = chunks + tl.program_id(0).to(tl.int64) * 3
    row = tl.load(cell)
    begin = tl.load(cell + 1) * CHUNK
    end = tl.minimum(begin + CHUNK, tl.load(table + row * COLUMNS + SIZE))
    return row, begin, end, tl.load(cell + 2)


@triton.jit
def lanes():
    """Return the places of the elements of a tile."""
    return tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]


@triton.jit
def inside(lane, left, ALIGNED: tl.constexpr):
    """Return which elements of a tile there are, when so many are left."""
    left = tl.minimum(left, TILE).to(tl.int32)
    if ALIGNED:
        left = tl.multiple_of(left, ALIGNMENT)
    return lane < left


@triton.jit
def read(
    at,
    COLUMN: tl.constexpr,
    start,
    lane,
    mask,
    TYPE: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Read theta, g, or state that is kept in full; 0 outside."""
    if TYPE == tl.bfloat16:
        raw = tl.load(_pointer(at, COLUMN, start, lane, tl.uint16, ALIGNED), mask, 0)
        x = (raw.to(tl.uint32) << 16).to(tl.float32, bitcast=True).to(REAL)
    else:
        x = tl.load(_pointer(at, COLUMN, start, lane, TYPE, ALIGNED), mask, 0.0).to(REAL)
    return x


@triton.jit
def write(
    x, at, COLUMN: tl.constexpr, start, lane, mask, TYPE: tl.constexpr, ALIGNED: tl.constexpr
):
    """Write back what `read` reads, rounded to nearest, ties to even."""
    if TYPE == tl.bfloat16:
        raw = x.to(tl.uint32, bitcast=True)
        half = (raw.to(tl.int64) + 0x7FFF + ((raw >> 16) & 1)) >> 16
        half = tl.where((raw & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, half)
        to = _pointer(at, COLUMN, start, lane, tl.uint16, ALIGNED)
        tl.store(to, half.to(tl.uint16), mask)
    else:
        tl.store(_pointer(at, COLUMN, start, lane, TYPE, ALIGNED), x.to(TYPE), mask)


@triton.jit
def kept_state(
    at,
    COLUMN: tl.constexpr,
    start,
    lane,
    mask,
    KEPT: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Read m, v or s as it is kept."""
    if KEPT == FULL:
        x = read(at, COLUMN, start, lane, mask, REAL, REAL, ALIGNED)
    elif KEPT == BFLOAT16:
        x = read(at, COLUMN, start, lane, mask, tl.bfloat16, REAL, ALIGNED)
    else:
        scales, used = _scales(at, COLUMN, start)
        scale = tl.load(scales, used, 1.0)
        if COLUMN == S:
            q = tl.load(_pointer(at, COLUMN, start, lane, tl.uint8, ALIGNED), mask, 0)
            x = q.to(tl.float32) * scale
            x = tl.where(q == 255, float("nan"), x * x)
        else:
            q = tl.load(_pointer(at, COLUMN, start, lane, tl.int8, ALIGNED), mask, 0)
            x = tl.where(q == -128, float("nan"), q.to(tl.float32) * scale)
    return x


@triton.jit
def keep(
    x,
    key,
    at,
    COLUMN: tl.constexpr,
    start,
    lane,
    mask,
    KEPT: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Keep m, v or s, and return what is kept. s takes other random bits than m."""
    if KEPT == FULL:
        write(x, at, COLUMN, start, lane, mask, REAL, ALIGNED)
        kept = x
    else:
        bits = _bits(tl.load(key), start, lane)
        if COLUMN == S:
            bits = (bits >> 8) & 0xFFFF
        else:
            bits = bits & 0xFFFF
        if KEPT == BFLOAT16:
            kept = _keep_bfloat16(x, bits, at, COLUMN, start, lane, mask, ALIGNED)
        else:
            kept = _keep_int8(x, bits, at, COLUMN, start, lane, mask, ALIGNED)
    return kept


@triton.jit
def _keep_bfloat16(x, bits, at, COLUMN: tl.constexpr, start, lane, mask, ALIGNED: tl.constexpr):
    """Keep state as bfloat16, rounded by random bits, and return what is kept."""
    raw = x.to(tl.uint32, bitcast=True)
    magnitude = raw & 0x7FFFFFFF
    rounded = (raw.to(tl.int64) + bits).to(tl.uint32) & 0xFFFF0000
    rounded = tl.where(magnitude >= 0x7F800000, raw & 0xFFFF0000, rounded)
    rounded = tl.where(magnitude > 0x7F800000, 0x7FC00000, rounded)
    to = _pointer(at, COLUMN, start, lane, tl.uint16, ALIGNED)
    tl.store(to, (rounded >> 16).to(tl.uint16), mask)
    return rounded.to(tl.float32, bitcast=True)


@triton.jit
def _keep_int8(x, bits, at, COLUMN: tl.constexpr, start, lane, mask, ALIGNED: tl.constexpr):
    """Keep state in 8 bits with a scale per block, and return what is kept."""
    magnitude = x
    if COLUMN == S:
        magnitude = tl.sqrt_rn(x)
    finite = tl.abs(magnitude) < float("inf")
    magnitude = tl.where(finite & mask, magnitude, 0.0)
    largest = tl.reduce(tl.abs(magnitude), 1, tl.standard._elementwise_max, keep_dims=True)
    top = 254.0 if COLUMN == S else 127.0
    raw = (tl.div_rn(largest, top).to(tl.int32, bitcast=True) + 0xFF) & -0x100
    short = raw.to(tl.float32, bitcast=True) * top < largest
    scale = (raw + tl.where(short, 0x100, 0)).to(tl.float32, bitcast=True)
    scale = tl.minimum(scale, LARGEST_ROOT_SCALE if COLUMN == S else LARGEST_SCALE)
    scale = tl.where(largest > 0, tl.maximum(scale, SMALLEST_SCALE), 1.0)
    scales, used = _scales(at, COLUMN, start)
    tl.store(scales, scale, used)

    part = magnitude * tl.div_rn(tl.full([ROWS, 1], 65536.0, tl.float32), scale)
    part = tl.minimum(tl.maximum(part, -65536.0 * top), 65536.0 * top)
    q = (_to_nearest(part) + bits.to(tl.int32)) >> 16
    if COLUMN == S:
        q = tl.where((magnitude > 0) & (q < 1), 1, q)
        stored = tl.where(finite, q, 255).to(tl.uint8)
        tl.store(_pointer(at, COLUMN, start, lane, tl.uint8, ALIGNED), stored, mask)
        root = q.to(tl.float32) * scale
        kept = root * root
    else:
        stored = tl.where(finite, q, -128).to(tl.int8)
        tl.store(_pointer(at, COLUMN, start, lane, tl.int8, ALIGNED), stored, mask)
        kept = q.to(tl.float32) * scale
    return tl.where(finite, kept, float("nan"))


@triton.jit
def _to_nearest(x):
    """Return floats below 2^24 as whole numbers, halves to even."""
    whole = tl.floor(x)
    rest = x - whole  # exact
    low = whole.to(tl.int32)
    return low + tl.where((rest > 0.5) | ((rest == 0.5) & ((low & 1) == 1)), 1, 0)


@triton.jit
def _scales(at, COLUMN: tl.constexpr, start):
    """Return where the scales of a tile's blocks lie, and which blocks there are."""
    block = tl.arange(0, ROWS)[:, None]
    base = tl.load(at + COLUMN + SCALES).to(tl.pointer_type(tl.float32))
    return base + start // BLOCK + block, start + block * BLOCK < tl.load(at + SIZE)


@triton.jit
def _pointer(at, COLUMN: tl.constexpr, start, lane, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Return pointers to a tile's elements, in the array that a column of the table names."""
    pointer = tl.load(at + COLUMN).to(tl.pointer_type(TYPE))
    if ALIGNED:
        pointer = tl.multiple_of(pointer, ALIGNMENT)
    return pointer + start + lane


# ---- random bits: `storage.random_bits` ----


@triton.jit
def _bits(key, start, lane):
    """Return 32 random bits for each element of a tile."""
    element = start + lane
    word = mixed(key.to(tl.int64) + element // SHARING * GROUP_SIZE + element % GROUP_SIZE)
    turn = element // GROUP_SIZE % 4 * 8
    return ((word >> turn) | ((word << (32 - turn)) & 0xFFFFFFFF)).to(tl.uint32)


@triton.jit
def mixed(x):
    """Return `storage._mix` of 32 bits, in 64: Triton may check sums and products in fewer."""
    x = x & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)
