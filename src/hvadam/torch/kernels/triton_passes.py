"""The passes in Triton's language; ``triton.py`` loads this file on first use, nobody else does.

A launch runs one program per chunk: CHUNK elements of one tensor, in tiles of ROWS blocks of
``storage.BLOCK``. Tensors are found by their addresses, in a table on the device with one row for
each; options lie in another, one row per param group, in double.

Legend, as in ``batch.py``: theta parameters, g gradients, m their average, v the hidden vector, s
the preconditioner; bias1 = 1 - beta1**t and bias2 = 1 - beta2**t.

A GPU gives what the interpreter gives, but for the order in which the dots of a chunk are added:
divisions and roots round as IEEE says, bfloat16 is converted in integers (the interpreter's own
conversion is not to nearest), and the launches forbid fused multiply-adds.
"""

# Triton reads the annotations, so they are not postponed; and it gives a compile-time branch one
# type only where it is a statement.
# ruff: noqa: SIM108
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

import sys

import triton
import triton.language as tl

from hvadam.torch.kernels import triton_table
from hvadam.torch.kernels.triton_memory import (
    BLOCK,
    COLUMNS,
    GROUP,
    INDEX,
    ROWS,
    SCOPE,
    STEP,
    THETA,
    TILE,
    G,
    M,
    S,
    V,
    inside,
    keep,
    kept_state,
    lanes,
    mixed,
    own_chunk,
    read,
    write,
)

LARGEST = tl.constexpr((2.0 - 2.0**-23) * 2.0**127)  # float
LARGEST_DOUBLE = tl.constexpr(sys.float_info.max)
LANES = tl.constexpr(128)  # tensors, or chunks, that a program of the small launches takes at once

# Columns of the options, and of what `prepare` works out for each tensor.
OPTIONS, WORK = tl.constexpr(len(triton_table.OPTIONS)), tl.constexpr(triton_table.WORK)
LR, ONE_BETA1, BETA2, ONE_BETA2, EPS, GAMMA, DECAY, COUPLED_DECAY, HIDDEN_SCALE, *_rest = (
    tl.constexpr(i) for i in range(len(triton_table.OPTIONS))
)
LOW, HIGH, SIGN, SEED, FACTOR = _rest
BIAS1, BIAS2, AVERAGE_KEY, HIDDEN_KEY = (tl.constexpr(i) for i in range(triton_table.WORK))


@triton.jit
def prepare(table, options, work, count):
    """Count the step of every tensor, and work out what follows from the count."""
    row = tl.program_id(0) * LANES + tl.arange(0, LANES)
    mask = row < count
    at = table + row.to(tl.int64) * COLUMNS
    w = work + row.to(tl.int64) * WORK
    o = options + tl.load(at + GROUP, mask, 0) * OPTIONS
    counter = tl.load(at + STEP, mask, 0).to(tl.pointer_type(tl.float32))
    t = tl.load(counter, mask, 0.0) + 1.0
    tl.store(counter, t, mask)
    one_beta1 = tl.load(o + ONE_BETA1, mask, 1.0)
    one_beta2 = tl.load(o + ONE_BETA2, mask, 1.0)
    tl.store(w + BIAS1, _bias(one_beta1, t), mask)
    tl.store(w + BIAS2, _bias(one_beta2, t), mask)

    key = mixed(tl.load(o + SEED, mask, 0.0).to(tl.int64)) + tl.load(at + INDEX, mask, 0)
    tl.store(w + AVERAGE_KEY, _key(key, t, 0), mask)
    tl.store(w + HIDDEN_KEY, _key(key, t, 1), mask)


@triton.jit
def squares(table, chunks, partial, G_TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Sum the squares of each chunk's gradients."""
    row, begin, end, slot = own_chunk(table, chunks)
    lane = lanes()
    total = tl.full([ROWS, BLOCK], 0, tl.float64)
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = inside(lane, end - start, ALIGNED)
        g = read(table + row * COLUMNS, G, start, lane, mask, G_TYPE, tl.float64, ALIGNED)
        total += g * g
    tl.store(partial + slot, _total(total))


@triton.jit
def first(
    table,
    options,
    work,
    chunks,
    partial,
    THETA_TYPE: tl.constexpr,
    G_TYPE: tl.constexpr,
    REAL: tl.constexpr,
    KEPT: tl.constexpr,
    ADAM: tl.constexpr,
    COUPLED: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Update m and s from g, and sum the dots of each chunk."""
    row, begin, end, slot = own_chunk(table, chunks)
    at = table + row * COLUMNS
    w = work + row * WORK
    o = options + tl.load(at + GROUP) * OPTIONS
    beta2, one_beta2 = tl.load(o + BETA2).to(REAL), tl.load(o + ONE_BETA2).to(REAL)
    one_beta1 = tl.load(o + ONE_BETA1).to(REAL)
    eps, gamma = tl.load(o + EPS).to(REAL), tl.load(o + GAMMA).to(REAL)
    factor = (tl.load(o + SIGN) * tl.load(o + FACTOR)).to(REAL)
    coupled_decay = tl.load(o + COUPLED_DECAY).to(REAL)
    inverse = 1.0 / tl.load(w + BIAS1)

    lane = lanes()
    dd = tl.full([ROWS, BLOCK], 0, tl.float64)
    dv = tl.full([ROWS, BLOCK], 0, tl.float64)
    mm = tl.full([ROWS, BLOCK], 0, tl.float64)
    vv = tl.full([ROWS, BLOCK], 0, tl.float64)
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = inside(lane, end - start, ALIGNED)
        g = read(at, G, start, lane, mask, G_TYPE, REAL, ALIGNED) * factor
        m = kept_state(at, M, start, lane, mask, KEPT, REAL, ALIGNED)
        v = kept_state(at, V, start, lane, mask, KEPT, REAL, ALIGNED)
        s = kept_state(at, S, start, lane, mask, KEPT, REAL, ALIGNED)
        if COUPLED:
            theta = read(at, THETA, start, lane, mask, THETA_TYPE, REAL, ALIGNED)
            g += coupled_decay * theta

        m = _toward(m, g, one_beta1)
        if ADAM:
            s = s * beta2 + one_beta2 * g * g
        else:
            dev_v = (g - v) * (g - v)
            dev_m = (g - m) * (g - m)
            # Where squares overflow, neither 0 ∞ nor ∞/∞, which are no numbers.
            below = dev_m + gamma * _finite(dev_v) + eps
            ratio = _quotient(dev_v, _finite(below))
            s = s * beta2 + one_beta2 * ratio * dev_v + eps
        m = keep(m, w + AVERAGE_KEY, at, M, start, lane, mask, KEPT, REAL, ALIGNED)
        s = keep(s, w + AVERAGE_KEY, at, S, start, lane, mask, KEPT, REAL, ALIGNED)

        # The difference too is taken in double: rounded to float it would cost half the cosine's
        # digits where v and m_hat are nearly parallel.
        wide_m = tl.where(mask, m.to(tl.float64) * inverse, 0.0)
        wide_v = tl.where(mask, v.to(tl.float64), 0.0)
        d = wide_v - wide_m
        dd += d * d
        dv += d * wide_v
        mm += wide_m * wide_m
        vv += wide_v * wide_v
    tl.store(partial + slot * 4, _total(dd))
    tl.store(partial + slot * 4 + 1, _total(dv))
    tl.store(partial + slot * 4 + 2, _total(mm))
    tl.store(partial + slot * 4 + 3, _total(vv))


@triton.jit
def fold(partial, ends, dots):
    """Add the dots of a scope's chunks, in their own order: one program per scope."""
    scope = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(ends + scope), tl.load(ends + scope + 1)
    lane = tl.arange(0, LANES)[:, None]
    column = tl.arange(0, 4)[None, :]
    total = tl.full([LANES, 4], 0, tl.float64)
    for i in range((end - begin + LANES - 1) // LANES):
        slot = begin + i * LANES + lane
        total += tl.load(partial + slot * 4 + column, slot < end, 0.0)
    to = dots + scope * 4 + column
    tl.store(to, tl.load(to) + tl.reduce(total, 0, tl.standard._sum_combine, keep_dims=True))


@triton.jit
def second(
    table,
    options,
    work,
    chunks,
    mix,
    gain,
    THETA_TYPE: tl.constexpr,
    REAL: tl.constexpr,
    KEPT: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Move v and theta, with one mix and one gain per scope."""
    row, begin, end, _slot = own_chunk(table, chunks)
    at = table + row * COLUMNS
    w = work + row * WORK
    o = options + tl.load(at + GROUP) * OPTIONS
    scope = tl.load(at + SCOPE)
    weight = 1.0 - tl.load(mix + scope)
    along = tl.load(o + LR) * tl.load(o + HIDDEN_SCALE) * tl.load(gain + scope)
    bias1 = tl.load(w + BIAS1).to(REAL)

    lane = lanes()
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = inside(lane, end - start, ALIGNED)
        v = kept_state(at, V, start, lane, mask, KEPT, REAL, ALIGNED)
        m_hat = _quotient(kept_state(at, M, start, lane, mask, KEPT, REAL, ALIGNED), bias1)
        v = _toward(v, m_hat, weight.to(REAL))
        v = keep(v, w + HIDDEN_KEY, at, V, start, lane, mask, KEPT, REAL, ALIGNED)
        theta = read(at, THETA, start, lane, mask, THETA_TYPE, REAL, ALIGNED)
        s = kept_state(at, S, start, lane, mask, KEPT, REAL, ALIGNED)
        theta = _adaptive_step(theta, m_hat, s, w, o, REAL)
        theta = tl.where(along == 0, theta, theta - along.to(REAL) * v)
        theta = _projected(theta, o, REAL)
        write(theta, at, THETA, start, lane, mask, THETA_TYPE, ALIGNED)


# ---- the steps ----


@triton.jit
def _toward(x, y, weight):
    """Return x + weight (y - x) as torch's lerp computes it, exact at both ends."""
    near = x + weight * (y - x)
    far = y - (y - x) * (1.0 - weight)
    return tl.where(tl.abs(weight) < 0.5, near, far)


@triton.jit
def _adaptive_step(theta, m_hat, s, w, o, REAL: tl.constexpr):
    """Return theta after decay and the adaptive step; at rate 0 theta is left alone."""
    lr = tl.load(o + LR)
    shrink = (1.0 - lr * tl.load(o + DECAY)).to(REAL)
    root = _root(_quotient(s, tl.load(w + BIAS2).to(REAL)))
    step = lr.to(REAL) * _quotient(m_hat, root + tl.load(o + EPS).to(REAL))
    return tl.where(lr == 0, theta, theta * shrink - step)


@triton.jit
def _projected(theta, o, REAL: tl.constexpr):
    """Return theta in its box; NaN passes, and a step at rate 0 does not project."""
    low, high = tl.load(o + LOW).to(REAL), tl.load(o + HIGH).to(REAL)
    moved = tl.where(theta < low, low, theta)
    moved = tl.where(moved > high, high, moved)
    return tl.where(tl.load(o + LR) == 0, theta, moved)


# ---- numbers ----


@triton.jit
def _bias(one_beta, t):
    """Return 1 - beta**t in double, by squaring: out of 1 - beta, so that nothing cancels."""
    count = tl.minimum(t, 1073741824.0).to(tl.int32)
    power = one_beta  # 1 - beta**(2**i)
    bias = one_beta * 0.0
    for _ in range(31):
        bias = tl.where((count & 1) == 1, bias + power * (1.0 - bias), bias)
        power = power * (2.0 - power)
        count = count >> 1
    return bias


@triton.jit
def _key(key, t, STREAM: tl.constexpr):
    """Return the key of a step's random bits, as a double, which holds 32 bits exactly."""
    return mixed(mixed(key) + 2 * t.to(tl.int64) + STREAM).to(tl.float64)


@triton.jit
def _quotient(x, y):
    """Return x / y, rounded as IEEE says."""
    if x.dtype == tl.float64:
        result = x / y
    else:
        result = tl.div_rn(x, y)
    return result


@triton.jit
def _finite(x):
    """Return x, or the largest number of its type in place of infinity; NaN passes."""
    if x.dtype == tl.float64:
        result = tl.where(x > LARGEST_DOUBLE, LARGEST_DOUBLE, x)
    else:
        result = tl.where(x > LARGEST, LARGEST, x)
    return result


@triton.jit
def _root(x):
    """Return the square root of x, rounded as IEEE says."""
    if x.dtype == tl.float64:
        result = tl.sqrt(x)
    else:
        result = tl.sqrt_rn(x)
    return result


@triton.jit
def _total(x):
    """Return the sum of all elements."""
    # Not tl.sum: it is interpreted only if the interpreter was asked for before triton was loaded.
    return tl.reduce(tl.reduce(x, 1, tl.standard._sum_combine), 0, tl.standard._sum_combine)
