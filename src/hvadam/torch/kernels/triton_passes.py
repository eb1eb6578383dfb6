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
# ruff: noqa: SIM108, SIM300
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

from hvadam.torch.kernels import storage, triton_table

BLOCK = tl.constexpr(storage.BLOCK)
ROWS = tl.constexpr(4)  # blocks in a tile
TILE = tl.constexpr(4 * storage.BLOCK)
CHUNK = tl.constexpr(triton_table.CHUNK)
LANES = tl.constexpr(128)  # tensors, or chunks, that a program of the small launches takes at once

# Columns of the table, of the options, and of what `prepare` works out for each tensor.
COLUMNS, OPTIONS = tl.constexpr(len(triton_table.COLUMNS)), tl.constexpr(len(triton_table.OPTIONS))
WORK = tl.constexpr(triton_table.WORK)
THETA, G, M, V, S, STEP, M_SCALES, V_SCALES, S_SCALES, PENDING, SIZE, SCOPE, INDEX, GROUP = (
    tl.constexpr(i) for i in range(len(triton_table.COLUMNS))
)
LR, BETA1, ONE_BETA1, BETA2, ONE_BETA2, EPS, GAMMA, DECAY, COUPLED_DECAY, HIDDEN_SCALE, *_rest = (
    tl.constexpr(i) for i in range(len(triton_table.OPTIONS))
)
LOW, HIGH, SIGN, SEED, FACTOR = _rest
BIAS1, BIAS2, BIAS1_BEFORE, WEIGHT, ALONG, AVERAGE_KEY, HIDDEN_KEY, PENDING_KEY = (
    tl.constexpr(i) for i in range(triton_table.WORK)
)
FULL, BFLOAT16 = tl.constexpr(triton_table.FULL), tl.constexpr(triton_table.BFLOAT16)


@triton.jit
def prepare(table, options, work, count, ADVANCE: tl.constexpr, LATE: tl.constexpr):
    """Count the step of every tensor, and work out what follows from the count."""
    row = tl.program_id(0) * LANES + tl.arange(0, LANES)
    mask = row < count
    at = table + row.to(tl.int64) * COLUMNS
    w = work + row.to(tl.int64) * WORK
    o = options + tl.load(at + GROUP, mask, 0) * OPTIONS
    counter = tl.load(at + STEP, mask, 0).to(tl.pointer_type(tl.float32))
    before = tl.load(counter, mask, 0.0)
    t = before
    if ADVANCE:
        t = before + 1.0
        tl.store(counter, t, mask)
    one_beta1 = tl.load(o + ONE_BETA1, mask, 1.0)
    one_beta2 = tl.load(o + ONE_BETA2, mask, 1.0)
    tl.store(w + BIAS1, _bias(one_beta1, t), mask)
    tl.store(w + BIAS2, _bias(one_beta2, t), mask)

    key = _hash(tl.load(o + SEED, mask, 0.0).to(tl.int64).to(tl.uint32))
    key = _hash(_sum(key, tl.load(at + INDEX, mask, 0).to(tl.uint32)))
    twice = 2 * t.to(tl.int64)
    twice_before = 2 * before.to(tl.int64)
    tl.store(w + AVERAGE_KEY, _hash(_sum(key, twice.to(tl.uint32))).to(tl.float64), mask)
    tl.store(w + HIDDEN_KEY, _hash(_sum(key, (twice + 1).to(tl.uint32))).to(tl.float64), mask)
    if LATE:
        pending_key = _hash(_sum(key, (twice_before + 1).to(tl.uint32)))
        pending = tl.load(at + PENDING, mask, 0).to(tl.pointer_type(tl.float64))
        tl.store(w + BIAS1_BEFORE, _bias(one_beta1, before), mask)
        tl.store(w + WEIGHT, tl.load(pending, mask, 0.0), mask)
        tl.store(w + ALONG, tl.load(pending + 1, mask, 0.0), mask)
        tl.store(w + PENDING_KEY, pending_key.to(tl.float64), mask)


@triton.jit
def squares(table, chunks, partial, G_TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """The sum of squares of each chunk's gradients."""
    row, begin, end, slot = _chunk(table, chunks)
    lane = _lane()
    total = tl.full([ROWS, BLOCK], 0, tl.float64)
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = _mask(lane, end - start, ALIGNED)
        g = _read(table + row * COLUMNS + G, start, lane, mask, G_TYPE, tl.float64, ALIGNED)
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
    LATE: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """m and s from g, and the dots of each chunk.

    The late step does before what is pending, and takes the adaptive step after.
    """
    row, begin, end, slot = _chunk(table, chunks)
    at = table + row * COLUMNS
    w = work + row * WORK
    o = options + tl.load(at + GROUP) * OPTIONS
    beta1, one_beta1 = tl.load(o + BETA1).to(REAL), tl.load(o + ONE_BETA1).to(REAL)
    beta2, one_beta2 = tl.load(o + BETA2).to(REAL), tl.load(o + ONE_BETA2).to(REAL)
    eps, gamma = tl.load(o + EPS).to(REAL), tl.load(o + GAMMA).to(REAL)
    factor = (tl.load(o + SIGN) * tl.load(o + FACTOR)).to(REAL)
    coupled_decay = tl.load(o + COUPLED_DECAY).to(REAL)
    inverse = 1.0 / tl.load(w + BIAS1)

    lane = _lane()
    dd = tl.full([ROWS, BLOCK], 0, tl.float64)
    dv = tl.full([ROWS, BLOCK], 0, tl.float64)
    mm = tl.full([ROWS, BLOCK], 0, tl.float64)
    vv = tl.full([ROWS, BLOCK], 0, tl.float64)
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = _mask(lane, end - start, ALIGNED)
        g = _read(at + G, start, lane, mask, G_TYPE, REAL, ALIGNED) * factor
        m = _open(at + M, at + M_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        v = _open(at + V, at + V_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        s = _open(at + S, at + S_SCALES, start, lane, mask, KEPT, True, REAL, ALIGNED)
        theta = g
        if COUPLED or LATE:
            theta = _read(at + THETA, start, lane, mask, THETA_TYPE, REAL, ALIGNED)
        if LATE:
            bias1_before = tl.load(w + BIAS1_BEFORE).to(REAL)
            v = _toward(v, _quotient(m, bias1_before), tl.load(w + WEIGHT).to(REAL))
            bits = _bits(tl.load(w + PENDING_KEY), start, lane) & 0xFFFF
            v = _keep(v, bits, at + V, at + V_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
            theta = _step_along(theta, v, tl.load(w + ALONG), o, REAL)
        if COUPLED:
            g += coupled_decay * theta

        m = m * beta1 + one_beta1 * g
        if ADAM:
            s = s * beta2 + one_beta2 * g * g
        else:
            dev_v = (g - v) * (g - v)
            dev_m = (g - m) * (g - m)
            ratio = _quotient(dev_v, dev_m + gamma * dev_v + eps)
            s = s * beta2 + one_beta2 * ratio * dev_v + eps
        bits = _bits(tl.load(w + AVERAGE_KEY), start, lane)
        low = bits & 0xFFFF
        m = _keep(m, low, at + M, at + M_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        high = bits >> 16
        s = _keep(s, high, at + S, at + S_SCALES, start, lane, mask, KEPT, True, REAL, ALIGNED)
        if LATE:
            theta = _adaptive_step(theta, m, s, w, o, REAL)
            theta = _projected(theta, tl.load(o + LR), o, REAL)
            _write(theta, at + THETA, start, lane, mask, THETA_TYPE, ALIGNED)

        # The difference too is taken in double: rounded to float it would cost half the cosine's
        # digits where v and m_hat are nearly parallel.
        m_hat = tl.where(mask, m.to(tl.float64) * inverse, 0.0)
        v_wide = tl.where(mask, v.to(tl.float64), 0.0)
        d = v_wide - m_hat
        dd += d * d
        dv += d * v_wide
        mm += m_hat * m_hat
        vv += v_wide * v_wide
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
    PENDING_ONLY: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """v and theta, with one mix and one gain per scope; or only what is pending."""
    row, begin, end, _slot = _chunk(table, chunks)
    at = table + row * COLUMNS
    w = work + row * WORK
    o = options + tl.load(at + GROUP) * OPTIONS
    if PENDING_ONLY:
        weight, along = tl.load(w + WEIGHT), tl.load(w + ALONG)
    else:
        scope = tl.load(at + SCOPE)
        weight = 1.0 - tl.load(mix + scope)
        along = tl.load(o + LR) * tl.load(o + HIDDEN_SCALE) * tl.load(gain + scope)
    bias1 = tl.load(w + BIAS1).to(REAL)

    lane = _lane()
    for i in range((end - begin + TILE - 1) // TILE):
        start = begin + i * TILE
        mask = _mask(lane, end - start, ALIGNED)
        m = _open(at + M, at + M_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        v = _open(at + V, at + V_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        v = _toward(v, _quotient(m, bias1), weight.to(REAL))
        bits = _bits(tl.load(w + HIDDEN_KEY), start, lane) & 0xFFFF
        v = _keep(v, bits, at + V, at + V_SCALES, start, lane, mask, KEPT, False, REAL, ALIGNED)
        theta = _read(at + THETA, start, lane, mask, THETA_TYPE, REAL, ALIGNED)
        if PENDING_ONLY:
            theta = _step_along(theta, v, along, o, REAL)
        else:
            s = _open(at + S, at + S_SCALES, start, lane, mask, KEPT, True, REAL, ALIGNED)
            theta = _adaptive_step(theta, m, s, w, o, REAL)
            theta = tl.where(along == 0, theta, theta - along.to(REAL) * v)
            theta = _projected(theta, tl.load(o + LR), o, REAL)
        _write(theta, at + THETA, start, lane, mask, THETA_TYPE, ALIGNED)


@triton.jit
def defer(table, options, mix, gain, count, SETTLED: tl.constexpr):
    """Note for every tensor what is now pending: nothing once it is settled."""
    row = tl.program_id(0) * LANES + tl.arange(0, LANES)
    mask = row < count
    at = table + row.to(tl.int64) * COLUMNS
    pending = tl.load(at + PENDING, mask, 0).to(tl.pointer_type(tl.float64))
    if SETTLED:
        tl.store(pending, tl.full([LANES], 0, tl.float64), mask)
        tl.store(pending + 1, tl.full([LANES], 0, tl.float64), mask)
    else:
        o = options + tl.load(at + GROUP, mask, 0) * OPTIONS
        scope = tl.load(at + SCOPE, mask, 0)
        rate = tl.load(o + LR, mask, 0.0) * tl.load(o + HIDDEN_SCALE, mask, 0.0)
        tl.store(pending, 1.0 - tl.load(mix + scope, mask, 0.0), mask)
        tl.store(pending + 1, rate * tl.load(gain + scope, mask, 0.0), mask)


# ---- the steps ----


@triton.jit
def _toward(v, m_hat, weight):
    """v + weight (m_hat - v), exact at both ends."""
    near = v + weight * (m_hat - v)
    far = m_hat - (m_hat - v) * (1.0 - weight)
    return tl.where(tl.abs(weight) < 0.5, near, far)


@triton.jit
def _adaptive_step(theta, m, s, w, o, REAL: tl.constexpr):
    lr = tl.load(o + LR)
    keep = (1.0 - lr * tl.load(o + DECAY)).to(REAL)
    m_hat = _quotient(m, tl.load(w + BIAS1).to(REAL))
    root = _root(_quotient(s, tl.load(w + BIAS2).to(REAL)))
    step = lr.to(REAL) * _quotient(m_hat, root + tl.load(o + EPS).to(REAL))
    return tl.where(lr == 0, theta, theta * keep - step)


@triton.jit
def _step_along(theta, v, along, o, REAL: tl.constexpr):
    """The pending step along v, and the projection."""
    moved = _projected(theta - along.to(REAL) * v, along, o, REAL)
    return tl.where(along == 0, theta, moved)


@triton.jit
def _projected(theta, rate, o, REAL: tl.constexpr):
    """theta in its box; NaN passes. A step at rate 0 moves nothing, so it does not project."""
    low, high = tl.load(o + LOW).to(REAL), tl.load(o + HIGH).to(REAL)
    inside = tl.where(theta < low, low, theta)
    inside = tl.where(inside > high, high, inside)
    return tl.where(rate == 0, theta, inside)


# ---- numbers ----


@triton.jit
def _bias(one_beta, t):
    """1 - beta**t in double, by squaring. Built from 1 - beta, so that nothing cancels."""
    count = tl.minimum(tl.maximum(t, 1.0), 1073741824.0).to(tl.int32)  # 0: nothing to correct yet
    power = one_beta  # 1 - beta**(2**i)
    bias = one_beta * 0.0
    for _ in range(31):
        bias = tl.where((count & 1) == 1, bias + power * (1.0 - bias), bias)
        power = power * (2.0 - power)
        count = count >> 1
    return bias


@triton.jit
def _quotient(x, y):
    if x.dtype == tl.float64:
        result = x / y
    else:
        result = tl.div_rn(x, y)
    return result


@triton.jit
def _root(x):
    if x.dtype == tl.float64:
        result = tl.sqrt(x)
    else:
        result = tl.sqrt_rn(x)
    return result


@triton.jit
def _total(x):
    # Not tl.sum: it is interpreted only if the interpreter was asked for before triton was loaded.
    return tl.reduce(tl.reduce(x, 1, tl.standard._sum_combine), 0, tl.standard._sum_combine)


@triton.jit
def _sum(x, y):
    return tl.add(x, y, sanitize_overflow=False)


@triton.jit
def _hash(x):
    """`storage._mix`, in 32 bits."""
    x = tl.mul(x ^ (x >> 16), 0x7FEB352D, sanitize_overflow=False)
    x = tl.mul(x ^ (x >> 15), 0x846CA68B, sanitize_overflow=False)
    return x ^ (x >> 16)


@triton.jit
def _bits(key, start, lane):
    """The random bits of a tile's elements."""
    base = _sum(key.to(tl.int64).to(tl.uint32), start.to(tl.uint32))
    return _hash(_sum(base, lane.to(tl.uint32)))


# ---- memory ----


@triton.jit
def _chunk(table, chunks):
    """The tensor of this program, its part of it, and where its result goes."""
    chunk = chunks + tl.program_id(0).to(tl.int64) * 3
    row = tl.load(chunk)
    begin = tl.load(chunk + 1) * CHUNK
    end = tl.minimum(begin + CHUNK, tl.load(table + row * COLUMNS + SIZE))
    return row, begin, end, tl.load(chunk + 2)


@triton.jit
def _lane():
    return tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]


@triton.jit
def _mask(lane, left, ALIGNED: tl.constexpr):
    left = tl.minimum(left, TILE).to(tl.int32)
    if ALIGNED:
        left = tl.multiple_of(left, 16)
    return lane < left


@triton.jit
def _pointer(cell, start, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Where a tile starts in the array whose address is in a cell of the table."""
    address = tl.load(cell)
    if ALIGNED:
        address = tl.multiple_of(address, 16)
    return address.to(tl.pointer_type(TYPE)) + start


@triton.jit
def _read(cell, start, lane, mask, TYPE: tl.constexpr, REAL: tl.constexpr, ALIGNED: tl.constexpr):
    if TYPE == tl.bfloat16:
        raw = tl.load(_pointer(cell, start, tl.uint16, ALIGNED) + lane, mask, 0)
        x = (raw.to(tl.uint32) << 16).to(tl.float32, bitcast=True).to(REAL)
    else:
        x = tl.load(_pointer(cell, start, TYPE, ALIGNED) + lane, mask, 0.0).to(REAL)
    return x


@triton.jit
def _write(x, cell, start, lane, mask, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    if TYPE == tl.bfloat16:
        raw = x.to(tl.uint32, bitcast=True)
        odd = (raw >> 16) & 1
        half = _sum(raw, odd + 0x7FFF) >> 16  # to nearest, ties to even
        half = tl.where((raw & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, half)
        tl.store(_pointer(cell, start, tl.uint16, ALIGNED) + lane, half.to(tl.uint16), mask)
    else:
        tl.store(_pointer(cell, start, TYPE, ALIGNED) + lane, x.to(TYPE), mask)


@triton.jit
def _scale_pointer(cell, start):
    block = tl.arange(0, ROWS)[:, None]
    return tl.load(cell).to(tl.pointer_type(tl.float32)) + start // BLOCK + block


@triton.jit
def _any(mask):
    """Which blocks of a tile have elements."""
    return tl.reduce(mask.to(tl.int32), 1, tl.standard._elementwise_max, keep_dims=True) > 0


@triton.jit
def _open(
    cell,
    scales,
    start,
    lane,
    mask,
    KEPT: tl.constexpr,
    ROOT: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """m, v or s as kept; see `storage`. s is kept by its root where it is kept in 8 bits."""
    if KEPT == FULL:
        x = _read(cell, start, lane, mask, REAL, REAL, ALIGNED)
    elif KEPT == BFLOAT16:
        x = _read(cell, start, lane, mask, tl.bfloat16, REAL, ALIGNED)
    else:
        scale = tl.load(_scale_pointer(scales, start), _any(mask), 1.0)
        if ROOT:
            q = tl.load(_pointer(cell, start, tl.uint8, ALIGNED) + lane, mask, 0)
            x = q.to(tl.float32) * scale
            x = tl.where(q == 255, float("nan"), x * x)
        else:
            q = tl.load(_pointer(cell, start, tl.int8, ALIGNED) + lane, mask, 0)
            x = tl.where(q == -128, float("nan"), q.to(tl.float32) * scale)
    return x


@triton.jit
def _keep(
    x,
    bits,
    cell,
    scales,
    start,
    lane,
    mask,
    KEPT: tl.constexpr,
    ROOT: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Keep m, v or s, rounded by 16 random bits each; returns what is kept."""
    if KEPT == FULL:
        _write(x, cell, start, lane, mask, REAL, ALIGNED)
        kept = x
    elif KEPT == BFLOAT16:
        raw = x.to(tl.uint32, bitcast=True)
        magnitude = raw & 0x7FFFFFFF
        rounded = _sum(raw, bits) & 0xFFFF0000
        rounded = tl.where(magnitude >= 0x7F800000, raw & 0xFFFF0000, rounded)
        rounded = tl.where(magnitude > 0x7F800000, 0x7FC00000, rounded)
        to = _pointer(cell, start, tl.uint16, ALIGNED) + lane
        tl.store(to, (rounded >> 16).to(tl.uint16), mask)
        kept = rounded.to(tl.float32, bitcast=True)
    else:
        magnitude = x
        if ROOT:
            magnitude = tl.sqrt_rn(x)
        finite = tl.abs(magnitude) < float("inf")
        magnitude = tl.where(finite & mask, magnitude, 0.0)
        largest = tl.reduce(tl.abs(magnitude), 1, tl.standard._elementwise_max, keep_dims=True)
        scale = tl.div_rn(largest, 254.0 if ROOT else 127.0)
        scale = tl.where(scale > 0, scale, 1.0)  # of subnormal numbers it may round to 0
        tl.store(_scale_pointer(scales, start), scale, _any(mask))
        part = tl.div_rn(magnitude, scale)
        q = tl.floor(part + bits.to(tl.int32).to(tl.float32) * 0.0000152587890625)  # 2**-16
        if ROOT:
            q = tl.minimum(q, 254.0)
            q = tl.where((part > 0) & (q < 1), 1.0, q)
            stored = tl.where(finite, q, 255.0).to(tl.int32).to(tl.uint8)
            tl.store(_pointer(cell, start, tl.uint8, ALIGNED) + lane, stored, mask)
            kept = (q * scale) * (q * scale)
        else:
            q = tl.minimum(tl.maximum(q, -127.0), 127.0)
            stored = tl.where(finite, q, -128.0).to(tl.int32).to(tl.int8)
            tl.store(_pointer(cell, start, tl.int8, ALIGNED) + lane, stored, mask)
            kept = q * scale
        kept = tl.where(finite, kept, float("nan"))
    return kept
