"""The passes in Triton's language; ``triton.py`` loads this file on first use, nobody else does.

A launch runs one program per chunk: CHUNK elements of one tensor, in tiles of ROWS blocks of
storage.BLOCK. Tensors are found by their addresses in a table on the device, one row each; options
lie in another, one row per param group, in double. Addresses are cast to pointers here.

Legend, as in ``batch.py``: theta parameters, g gradients, m their average, v the hidden vector, s
the preconditioner; bias1 and bias2 correct the bias of m and s.

bfloat16 is read and written as 16-bit integers, divisions and roots round as IEEE says: a GPU gives
what the interpreter gives, except for the order in which a chunk's dots are added.
"""

# No future annotations: Triton reads them.
# ruff: noqa: N803
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

import triton
import triton.language as tl

from hvadam.torch.kernels import storage

ROWS = tl.constexpr(4)
BLOCK = tl.constexpr(storage.BLOCK)
TILE = tl.constexpr(4 * storage.BLOCK)
CHUNK = tl.constexpr(16 * storage.BLOCK)  # elements that one program takes
LANES = tl.constexpr(128)  # tensors, or chunks, that a program of the small launches takes

# Columns of the table, which ``triton.py`` fills in this order.
THETA, G, M, V, S, STEP = (tl.constexpr(i) for i in range(6))
M_SCALES, V_SCALES, S_SCALES, PENDING = (tl.constexpr(i) for i in range(6, 10))
SIZE, SCOPE, INDEX, GROUP = (tl.constexpr(i) for i in range(10, 14))
COLUMNS = tl.constexpr(14)

# Columns of the options.
LR, BETA1, ONE_BETA1, BETA2, ONE_BETA2, EPS = (tl.constexpr(i) for i in range(6))
GAMMA, DECAY, COUPLED, HIDDEN_SCALE, LOW, HIGH = (tl.constexpr(i) for i in range(6, 12))
SIGN, SEED, FACTOR = (tl.constexpr(i) for i in range(12, 15))
OPTIONS = tl.constexpr(15)

# What ``prepare`` works out for each tensor, in double. Keys are 32-bit integers.
BIAS1, BIAS2, BIAS1_BEFORE, WEIGHT, ALONG = (tl.constexpr(i) for i in range(5))
AVERAGE_KEY, HIDDEN_KEY, PENDING_KEY = (tl.constexpr(i) for i in range(5, 8))
WORK = tl.constexpr(8)

# How m, v and s are kept.
FULL, BFLOAT16, INT8 = (tl.constexpr(i) for i in range(3))


@triton.jit
def prepare(table, options, work, count, ADVANCE: tl.constexpr, LATE: tl.constexpr):
    """Count the step of every tensor, and work out what follows from the count."""
    row = tl.program_id(0) * LANES + tl.arange(0, LANES)
    mask = row < count
    at = table + row.to(tl.int64) * COLUMNS
    o = options + tl.load(at + GROUP, mask, 0) * OPTIONS
    w = work + row.to(tl.int64) * WORK
    counter = tl.load(at + STEP, mask, 0).to(tl.pointer_type(tl.float32))
    before = tl.load(counter, mask, 0.0)
    t = before
    if ADVANCE:
        t = before + 1.0
        tl.store(counter, t, mask)
    one_beta1 = tl.load(o + ONE_BETA1, mask, 1.0)
    tl.store(w + BIAS1, _bias(one_beta1, t), mask)
    tl.store(w + BIAS2, _bias(tl.load(o + ONE_BETA2, mask, 1.0), t), mask)
    key = _hash(_whole(tl.load(o + SEED, mask, 0.0)))
    key = _hash(_sum(key, tl.load(at + INDEX, mask, 0).to(tl.uint32)))
    tl.store(w + AVERAGE_KEY, _hash(_sum(key, 2 * _whole(t))).to(tl.float64), mask)
    tl.store(w + HIDDEN_KEY, _hash(_sum(key, 2 * _whole(t) + 1)).to(tl.float64), mask)
    if LATE:
        pending = tl.load(at + PENDING, mask, 0).to(tl.pointer_type(tl.float64))
        tl.store(w + BIAS1_BEFORE, _bias(one_beta1, before), mask)
        tl.store(w + WEIGHT, tl.load(pending, mask, 0.0), mask)
        tl.store(w + ALONG, tl.load(pending + 1, mask, 0.0), mask)
        tl.store(w + PENDING_KEY, _hash(_sum(key, 2 * _whole(before) + 1)).to(tl.float64), mask)


@triton.jit
def squares(table, chunks, partial, G_TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """The sum of squares of each chunk's gradients."""
    at, begin, end, slot = _chunk(table, chunks)
    lane = _lane()
    total = tl.full([ROWS, BLOCK], 0, tl.float64)
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        g = _read(at + G, start, lane, _mask(lane, end - start, ALIGNED), G_TYPE, ALIGNED)
        g = g.to(tl.float64)
        total += g * g
    tl.store(partial + slot, _total(total))


@triton.jit
def first(
    *(table, options, work, chunks, partial),
): ...
