"""The meter's arithmetic: what algebra says of dots, and of gradients that cannot be read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam.core import meter
from hvadam.core.scalars import Floats

EPS = 2.0**-52


def dots_of(v: Any, m_hat: Any, g: Any) -> list[float]:
    d = v - m_hat
    pairs = ((d, d), (d, v), (m_hat, m_hat), (v, v), (g, g), (g, v), (g, d))
    return [float(a @ b) for a, b in pairs]


def started() -> list[float]:
    return [0.0 if name == "steps_since_restart" else x for name, x in zip_fields()]


def zip_fields() -> list[tuple[str, float]]:
    return list(zip(meter.FIELDS, meter.INITIAL, strict=True))


def shares(v: Any, m_hat: Any, g: Any) -> dict[str, float]:
    _, after = meter.advance(Floats, started(), dots_of(v, m_hat, g), rounding=EPS)
    return {name: dict(zip(meter.FIELDS, after, strict=True))[name] for name in meter.SHARES}


@given(seed=st.integers(0, 10_000), scale=st.floats(-8, 8), d=st.integers(3, 40))
def test_shares_are_those_of_the_vectors_themselves(seed: int, scale: float, d: int) -> None:
    v, m_hat, g = np.random.default_rng(seed).normal(size=(3, d)) * 10.0**scale
    mix, _ = meter.advance(Floats, started(), dots_of(v, m_hat, g), rounding=EPS)
    foot = mix * v + (1 - mix) * m_hat
    z = m_hat - foot
    assert abs(foot @ z) <= 1e-9 * np.linalg.norm(m_hat) ** 2 * (1 + abs(mix))  # a right angle
    cosines = [g @ x / np.linalg.norm(g) / np.linalg.norm(x) for x in (foot, z)]
    found = shares(v, m_hat, g)
    assert found["trend"] == pytest.approx(cosines[0] * abs(cosines[0]), abs=1e-9)
    assert found["zigzag"] == pytest.approx(min(cosines[1], 0) ** 2, abs=1e-9)
    assert found["rest"] == pytest.approx(1 - abs(found["trend"]) - found["zigzag"], abs=1e-12)
    assert found["rest"] >= 0


@pytest.mark.parametrize(
    "g", [np.zeros(4), np.full(4, math.nan), np.full(4, math.inf)], ids=["zero", "nan", "inf"]
)
def test_a_gradient_that_cannot_be_read_leaves_the_averages(g: Any) -> None:
    rng = np.random.default_rng(0)
    v, m_hat = rng.normal(size=(2, 4))
    before = started()
    with np.errstate(invalid="ignore"):
        _, after = meter.advance(Floats, before, dots_of(v, m_hat, g), rounding=EPS)
        found = shares(v, m_hat, g)
    kept = len(meter.FIELDS) - len(meter.SHARES)
    assert after[kept:] == before[kept:]
    assert all(map(math.isnan, found.values()))
    assert math.isnan(meter.reading(after)["rest_average"])


def test_averages_have_no_bias() -> None:
    """A constant share averages to itself from the first reading on."""
    v, m_hat, g = np.random.default_rng(1).normal(size=(3, 6))
    state = started()
    for _ in range(5):
        state = [*started()[: len(meter.policy.FIELDS)], *state[len(meter.policy.FIELDS) :]]
        _, state = meter.advance(Floats, state, dots_of(v, m_hat, g), rounding=EPS)
        read = meter.reading(state)
        for name in meter.SHARES:
            assert read[f"{name}_average"] == pytest.approx(read[name])
