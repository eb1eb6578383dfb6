"""Low-bit state: rounding is fair and repeatable, and what is kept is near what was given.

A quantum is the distance between two neighbours that can be kept: of bfloat16 at a number, of an
8-bit block its scale. s is kept by its root, so its quanta are counted on roots.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hvadam.torch import storage
from hvadam.torch.storage import BLOCK

KINDS = {"bfloat16": torch.bfloat16, "int8": torch.int8, "int8 root": torch.uint8}
kinds = pytest.mark.parametrize("kind", KINDS)


def keep(
    x: Tensor, kind: str, bits: Tensor | int | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Encode; return what is stored, decoded, and the scales."""
    values = torch.empty_like(x, dtype=KINDS[kind])
    scales = None if kind == "bfloat16" else torch.empty(-(-x.numel() // BLOCK))
    if isinstance(bits, int):
        bits = torch.full((x.numel(),), bits)
    storage.encode(x, values, scales, bits)
    return values, storage.decode(values, scales), scales


Key = tuple[int, int, int, int]  # seed, parameter, step, stream


def hashed(key: Key, count: int) -> Tensor:
    return storage.random_bits(*key, begin=0, like=torch.empty(count))


def random_bits(count: int, seed: int = 0, step: int = 1) -> Tensor:
    return hashed((seed, 3, step, 0), count) & 0xFFFF


def in_memory(x: Tensor) -> Tensor:
    """A dense tensor's numbers in the order of its memory."""
    return x.as_strided((x.numel(),), (1,))


def quanta(x: Tensor, kind: str, scales: Tensor | None) -> Tensor:
    """The quantum at every element."""
    if scales is None:
        exponent = torch.frexp(x.double().abs().clamp(min=2.0**-126)).exponent
        return torch.ldexp(torch.ones_like(x, dtype=torch.float64), exponent - 8)
    flat = scales.double().repeat_interleave(BLOCK)[: x.numel()]
    return torch.empty_like(x, dtype=torch.float64).copy_(as_laid_out(flat, x))


def as_laid_out(flat: Tensor, x: Tensor) -> Tensor:
    """A vector over x's memory, in x's shape."""
    return flat.as_strided(x.shape, x.stride()) if x.numel() else flat.view(x.shape)


def error_in_quanta(x: Tensor, kept: Tensor, kind: str, scales: Tensor | None) -> Tensor:
    quantum = quanta(x, kind, scales)
    a, b = (y.double().sqrt() if kind == "int8 root" else y.double() for y in (x, kept))
    return (b - a) / quantum


def sample(count: int, kind: str, seed: int = 0) -> Tensor:
    x = torch.randn(count, generator=torch.Generator().manual_seed(seed))
    return x.square() if kind == "int8 root" else x


# Random bits


def mix(x: int) -> int:
    x &= 0xFFFFFFFF
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    return x ^ x >> 16


@pytest.mark.parametrize(
    "key", [(0, 0, 1, 0), (0, 0, 1, 1), (7, 5, 100, 0), (2**32 - 1, 9999, 2**24, 1)]
)
def test_bits_are_the_documented_hash(key: Key) -> None:
    """A checkpoint goes on alike in a later version only if the hash stays."""
    seed, index, step, stream = key
    start = mix(mix(mix(seed) + index) + 2 * step + stream)
    expected: list[int] = []
    for element in range(1000):
        word, turn = mix(start + element // 64 * 16 + element % 16), element // 16 % 4 * 8
        expected.append((word >> turn | word << 32 - turn) % 2**32)
    assert hashed(key, 1000).tolist() == expected
    assert storage.bits_for("m", hashed(key, 1000)).tolist() == [x % 2**16 for x in expected]
    assert storage.bits_for("s", hashed(key, 1000)).tolist() == [x >> 8 & 0xFFFF for x in expected]
    later = storage.random_bits(*key, begin=192, like=torch.empty(100))
    assert later.tolist() == expected[192:292]


def test_bits_depend_on_every_part_of_the_key() -> None:
    """Any other seed, parameter, step, stream or element: other bits, as if drawn anew.

    Of 65536 independent pairs of 16-bit numbers 1 agrees on average, and 10 hardly ever (1e-7).
    """
    key, count = (3, 4, 5, 0), 65536
    bits = hashed(key, count)
    others = {"element": torch.cat([bits[1:], bits[:1]])}
    for part, name in enumerate(("seed", "parameter", "step", "stream")):
        for by in (1,) if name == "stream" else (1, 2, 1000):
            others[f"{name} + {by}"] = hashed(changed(key, part, by), count)
    for name, other in others.items():
        for shift in (0, 8):
            same = (bits >> shift & 0xFFFF) == (other >> shift & 0xFFFF)
            assert int(same.sum()) < 10, name
    # The upper byte of m's bits is the lower one of s's, by which half of a quantum hardly moves.
    assert (bits & 0xFFFF != bits >> 8 & 0xFFFF).sum() > count - 10
    assert torch.equal(bits, hashed(key, count))


def changed(key: Key, part: int, by: int) -> Key:
    seed, index, step, stream = (x + by * (i == part) for i, x in enumerate(key))
    return seed, index, step, stream


@pytest.mark.parametrize("along", ["elements", "steps", "parameters", "seeds"])
@pytest.mark.parametrize("shift", [0, 8], ids=["m and v", "s"])
def test_bits_are_uniform(along: str, shift: int) -> None:
    """Chi² of 64 bins has mean 63 and deviation 11; the mean and the correlation of neighbours are
    within 6 deviations too (each by chance once in 10^8)."""
    count, key = 4096, (1, 2, 3, 0)
    part_of_key = {"seeds": 0, "parameters": 1, "steps": 2}
    if along == "elements":
        bits = hashed(key, count)
    else:
        bits = torch.cat([hashed(changed(key, part_of_key[along], i), 1) for i in range(count)])
    part = (bits >> shift & 0xFFFF).double() / 2**16
    bins = torch.histc(part, 64, 0, 1)
    assert ((bins - count / 64).square() / (count / 64)).sum() < 63 + 6 * math.sqrt(2 * 63)
    assert abs(part.mean() - 0.5) < 6 * math.sqrt(1 / 12 / count)
    centered = part - part.mean()
    assert abs((centered[1:] * centered[:-1]).mean()) < 6 / 12 / math.sqrt(count)


# Rounding


@kinds
def test_a_million_roundings_are_fair_and_know_nothing_of_their_neighbours(kind: str) -> None:
    """The mean error is within 5 standard errors of 0, and so is the correlation of the errors of
    elements that lie next to each other, or share a word: 16, 32 and 48 apart."""
    count = 2**20
    x = 1.0 + torch.rand(count, generator=torch.Generator().manual_seed(0))
    x[::BLOCK] = 2.0  # one scale for all blocks
    bits = hashed((0, 3, 1, 0), count)
    for name in "ms":
        _, kept, scales = keep(x, kind, storage.bits_for(name, bits))
        error = error_in_quanta(x, kept, kind, scales)
        assert abs(error.mean()) < 5 * error.std() / math.sqrt(count) + 2.0**-16
        centered = (error - error.mean()) / error.std()
        for apart in (1, 2, 15, 16, 17, 32, 48, 64):
            correlation = (centered[apart:] * centered[:-apart]).mean()
            assert abs(correlation) < 5 / math.sqrt(count), (name, apart)


def test_the_roundings_of_m_and_s_know_nothing_of_each_other() -> None:
    """Roundings of one element share a byte: the upper one of m's bits, the lower one of s's."""
    count = 2**20
    x = 1.0 + torch.rand(count, generator=torch.Generator().manual_seed(0))
    bits = hashed((0, 3, 1, 0), count)
    m, s = (keep(x, "bfloat16", storage.bits_for(name, bits))[1] - x for name in "ms")
    m, s = ((y - y.mean()) / y.std() for y in (m, s))
    assert abs((m * s).mean()) < 5 / math.sqrt(count)


@kinds
def test_rounding_is_fair(kind: str) -> None:
    """The mean of what is kept is what was given.

    One rounding is off by half a quantum at most in root mean square. So the mean of n is off by
    6 * 0.5/√n with probability 2e-9, and the 16 bits add a bias of 2^-16. For roots the claim is on
    the root, from one quantum up: below it, 1 is kept (see below).
    """
    repeats, seeds = 256, 8
    block = sample(BLOCK, kind)
    if kind == "int8 root":
        block = block + block.max() / 250**2
    total = torch.zeros(BLOCK, dtype=torch.float64)
    for seed in range(seeds):
        x = block.repeat(repeats)
        bits = random_bits(x.numel(), seed=seed, step=seed * 7 + 1)
        _, kept, scales = keep(x, kind, bits)
        total += error_in_quanta(x, kept, kind, scales).view(repeats, BLOCK).mean(0)
    assert (total / seeds).abs().max() < 6 * 0.5 / math.sqrt(repeats * seeds) + 2.0**-16


@pytest.mark.parametrize("kind", ["bfloat16", "int8"])
def test_a_trend_below_a_quantum_is_not_lost(kind: str) -> None:
    """An average with β = 0.999 moves by less than half a quantum at a time, long before it is
    there: rounded to nearest bfloat16 it would stand still, at random it arrives."""
    g = 0.75 + 0.25 * torch.rand(BLOCK, generator=torch.Generator().manual_seed(0))
    average, steps = torch.zeros(BLOCK), 700
    for step in range(steps):
        average = keep(average + 0.001 * (g - average), kind, random_bits(BLOCK, step=step))[1]
    assert abs((average / g).mean() / (1 - 0.999**steps) - 1) < 0.01
    if kind == "bfloat16":
        still = keep(0.4 * g, kind, None)[1]
        assert torch.equal(keep(still + 0.001 * (g - still), kind, None)[1], still)


@kinds
@pytest.mark.parametrize("bits", [0, 1, 0x7FFF, 0xFFFF, "random"])
def test_nothing_is_off_by_more_than_a_quantum(kind: str, bits: int | str) -> None:
    x = sample(10 * BLOCK + 77, kind)
    chosen = random_bits(x.numel()) if isinstance(bits, str) else bits
    _, kept, scales = keep(x, kind, chosen)
    assert error_in_quanta(x, kept, kind, scales).abs().max() <= 1 + 1e-4


@kinds
def test_without_bits_the_nearest_is_kept(kind: str) -> None:
    x = sample(10 * BLOCK + 77, kind)
    _, kept, scales = keep(x, kind, None)
    error = error_in_quanta(x, kept, kind, scales).abs()
    if kind == "int8 root":  # what is above zero stays above it
        error = error[x.sqrt() > 0.5 * quanta(x, kind, scales)]
    assert error.max() <= 0.5 + 1e-4


@pytest.mark.parametrize("bits", [None, 0, 0x8000, 0xFFFF])
def test_what_can_be_kept_is_kept(bits: int | None) -> None:
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.bfloat16).float()
    _, kept, _ = keep(every, "bfloat16", bits)
    assert torch.equal(kept.isnan(), every.isnan())
    assert torch.equal(kept.nan_to_num(0.0), every.nan_to_num(0.0))
    for exponent in (-90, -3, 0, 60):
        whole = torch.arange(-127, 128).float() * 2.0**exponent
        values, kept, scales = keep(whole, "int8", bits)
        assert torch.equal(kept, whole)
        assert values.tolist() == list(range(-127, 128))
        roots = torch.arange(255).float() * 2.0 ** (exponent / 2 // 1)
        _, kept, scales = keep(roots.square(), "int8 root", bits)
        assert torch.equal(kept, roots.square())
        assert scales is not None
        assert scales.item() == roots[1]


@pytest.mark.parametrize("bits", [None, 0, 0xFFFF, "random"])
def test_what_was_kept_stays_whatever_the_bits(bits: int | str | None) -> None:
    """Scales have 16 bits, so that q * scale is exact: decoded and encoded again, nothing moves."""
    count = 500 * BLOCK
    _, kept, scales = keep(sample(count, "int8"), "int8", random_bits(count))
    chosen: Any = random_bits(count, step=2) if isinstance(bits, str) else bits
    _, again, new_scales = keep(kept, "int8", chosen)
    assert scales is not None
    assert new_scales is not None
    largest = kept.view(-1, BLOCK).abs().amax(1)
    full = largest == 127 * scales  # else the largest was rounded down, and the scale may shrink
    assert full.double().mean() > 0.5
    assert torch.equal(new_scales[full], scales[full])
    assert torch.equal(again.view(-1, BLOCK)[full], kept.view(-1, BLOCK)[full])


# The ends of the range


@kinds
@pytest.mark.parametrize("bits", [None, 0, 0xFFFF])
def test_a_number_that_is_not_finite_is_lost_alone(kind: str, bits: int | None) -> None:
    x = sample(3 * BLOCK, kind)
    clean = x.clone()
    bad = {5: math.nan, BLOCK - 1: math.inf, BLOCK: math.nan, 2 * BLOCK - 1: math.inf}
    bad[17] = -math.inf
    for i, value in bad.items():
        x[i] = value
    clean[list(bad)] = 0.0
    _, kept, scales = keep(x, kind, bits)
    _, expected, clean_scales = keep(clean, kind, bits)
    rest = torch.ones_like(x, dtype=torch.bool)
    rest[list(bad)] = False
    assert torch.equal(kept[rest], expected[rest])
    if kind == "bfloat16":
        assert torch.equal(kept[17:18], x[17:18])
        assert kept[BLOCK - 1] == math.inf
        assert kept[[5, BLOCK]].isnan().all()
    else:
        assert kept[~rest].isnan().all()
        assert scales is not None
        assert clean_scales is not None
        assert torch.equal(scales, clean_scales)


@pytest.mark.parametrize("kind", ["int8", "int8 root"])
@pytest.mark.parametrize("fill", [0.0, math.nan, math.inf])
def test_a_block_without_numbers_has_scale_one(kind: str, fill: float) -> None:
    x = torch.cat([torch.full((BLOCK,), fill), sample(BLOCK, kind), torch.full((3,), fill)])
    for bits in (None, 0, 0xFFFF):
        _, kept, scales = keep(x, kind, bits)
        assert scales is not None
        assert scales[[0, 2]].tolist() == [1.0, 1.0]
        empty = torch.cat([kept[:BLOCK], kept[-3:]])
        assert bool((empty == 0).all() if fill == 0 else empty.isnan().all())


@pytest.mark.parametrize("bits", [None, 0, 1, 0xFFFF])
def test_s_above_zero_stays_above_zero(bits: int | None) -> None:
    """Or the step would divide by ε alone. s is never below the smallest ε, 2^-126."""
    exponents = torch.linspace(-126, 100, 64)
    for largest in (2.0**-126, 1e-30, 1e-12, 1.0, 1e30):
        x = (2.0**exponents).clamp(max=largest)
        _, kept, _ = keep(x, "int8 root", bits)
        assert (kept > 0).all()
        assert kept.isfinite().all()
        _, kept, _ = keep(torch.cat([x, torch.zeros(10)]), "int8 root", bits)
        assert (kept[-10:] == 0).all()


@pytest.mark.parametrize("kind", ["int8", "int8 root"])
@pytest.mark.parametrize("bits", [None, 0, 1, 0xFFFF])
@pytest.mark.parametrize("exponent", [-149, -130, -126, -121, -112, -108, -104, -102, -90])
def test_tiny_numbers_never_grow(exponent: int, bits: int | None, kind: str) -> None:
    """They may become zero or the smallest quantum, 2^-110, but nothing of another size: the
    average of gradients that stopped passes through all these on its way to zero."""
    x = sample(BLOCK, kind).double().mul(2.0**exponent).float()
    _, kept, scales = keep(x, kind, bits)
    assert scales is not None
    if kind == "int8":
        smallest = max(float(x.abs().max()) / 127, storage.SMALLEST_SCALE)
        assert smallest <= scales.item() <= smallest * (1 + 2.0**-15)
        assert error_in_quanta(x, kept, kind, scales).abs().max() <= 1 + 1e-4
    else:
        assert kept.max() <= 2 * x.max()


# Layouts


def laid_out(x: Tensor, layout: str) -> Tensor:
    if layout == "transposed":
        return x.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "channels last":
        return x.contiguous(memory_format=torch.channels_last)
    return x.contiguous()


@kinds
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels last"])
def test_numbers_are_kept_in_the_order_of_memory(layout: str, kind: str) -> None:
    """Blocks and random bits run along memory, whatever the shape says; so other kernels agree."""
    x = laid_out(sample(3 * 5 * 7 * 11, kind).view(3, 5, 7, 11), layout)
    bits = random_bits(x.numel())
    values, kept, scales = keep(x, kind, bits)
    assert values.stride() == kept.stride() == x.stride()
    flat_values, flat_kept, flat_scales = keep(in_memory(x).clone(), kind, bits)
    assert torch.equal(in_memory(values), flat_values)
    assert torch.equal(in_memory(kept), flat_kept)
    if scales is not None and flat_scales is not None:
        assert torch.equal(scales, flat_scales)
    assert error_in_quanta(x, kept, kind, scales).abs().max() <= 1 + 1e-4


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels last"])
@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16", "int8"])
def test_fresh_state_is_zero_and_laid_out_like_its_parameter(state_dtype: str, layout: str) -> None:
    p = laid_out(torch.randn(3, 5, 7, 11, dtype=torch.bfloat16), layout)
    state = storage.empty_state(p, state_dtype)
    low_bit = state_dtype == "int8"
    names = [x for pair in storage.SCALES.items() for x in (pair if low_bit else pair[:1])]
    assert list(state) == names
    dtypes = storage.DTYPES.get(state_dtype, (torch.float32, torch.float32))
    for name, scales in storage.SCALES.items():
        assert state[name].dtype == dtypes[name == "exp_avg_var"]
        assert state[name].stride() == p.stride()
        assert storage.decode(state[name], state.get(scales)).count_nonzero() == 0
        if low_bit:
            assert state[scales].tolist() == [1.0] * math.ceil(p.numel() / BLOCK)


@st.composite
def tensors(draw: st.DrawFn) -> tuple[Tensor, str]:
    """Draw tensors of any shape and layout, with numbers of very different size."""
    kind = draw(st.sampled_from(list(KINDS)))
    shape = draw(st.lists(st.integers(0, 20), max_size=3))
    order = draw(st.permutations(range(len(shape))))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    x = torch.randn([shape[i] for i in order], generator=generator, dtype=torch.float64)
    spread = draw(st.integers(0, 8))
    x *= 10.0 ** (draw(st.integers(-30, 30)) - spread * torch.rand(x.shape, generator=generator))
    x = (x.abs() if kind == "int8 root" else x).float()
    return x.permute(sorted(range(len(shape)), key=order.__getitem__)), kind


@given(drawn=tensors(), bits=st.sampled_from([None, 0, 0xFFFF, "random"]))
def test_drawn_tensors(drawn: tuple[Tensor, str], bits: int | str | None) -> None:
    x, kind = drawn
    chosen: Any = random_bits(x.numel()) if isinstance(bits, str) else bits
    values, kept, scales = keep(x, kind, chosen)
    assert values.stride() == kept.stride() == x.stride()
    assert kept.shape == x.shape
    assert kept.isfinite().all()
    assert not (error_in_quanta(x, kept, kind, scales).abs() > 1 + 1e-4).any()
    if scales is not None:
        assert (scales > 0).all()
    if kind == "int8 root":
        assert torch.equal(kept > 0, x > 0)


@pytest.mark.parametrize("kind", ["int8", "int8 root"])
@pytest.mark.parametrize("bits", [0, 0xFFFF])
def test_the_largest_numbers_keep_their_place(bits: int, kind: str) -> None:
    """Neither they nor their neighbours become the code of NaN, infinite or less than they were."""
    edge = torch.finfo(torch.float32).max
    if kind == "int8 root":
        edge /= 1.1  # for a root that is rounded up
    for largest in (edge, edge / 2, edge / 1.9, 1.0000001, 1.9999999, 126.99999, 253.99998):
        x = torch.tensor([largest, largest * (1 - 2.0**-23), largest / 2])
        _, kept, _ = keep(x, kind, bits)
        if kind == "int8":
            x, kept = torch.cat([x, -x]), torch.cat([kept, keep(-x, kind, bits)[1]])
        assert kept.isfinite().all()
        torch.testing.assert_close(kept, x, rtol=0.02, atol=0.0)
