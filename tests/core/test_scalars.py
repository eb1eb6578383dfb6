"""The scalar policy: every row of the state machine, on NumPy, torch and floats alike."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import HiddenGain
from hvadam.core.scalars import FIELDS, GAINS, INITIAL, advance, piecewise

NAN = float("nan")
BETA2 = 0.9


def row(**changes: float) -> list[float]:
    return [changes.get(name, start) for name, start in zip(FIELDS, INITIAL, strict=True)]


def dots_of(v: np.ndarray, m_hat: np.ndarray) -> np.ndarray:
    d = v - m_hat
    return np.stack([d @ d, d @ v, m_hat @ m_hat, v @ v])


def decide(
    scalars: Any, dots: Any, **options: Any
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Run all namespaces, check that they agree, and name the results."""
    given_options = {
        "beta2": BETA2,
        "threshold": 0.1,
        "gain": GAINS["exponential"],
        "restart_rule": "paper",
        "rounding": 2.0**-52,
        **options,
    }
    scalars, dots = np.asarray(scalars, dtype=np.float64), np.asarray(dots, dtype=np.float64)
    with np.errstate(all="raise", under="ignore"):  # what is too small to count may vanish
        mix, gain, after = advance(np, scalars, dots, **given_options)
    for ours, theirs in zip(
        (mix, gain, after),
        advance(torch, torch.from_numpy(scalars), torch.from_numpy(dots), **given_options),
        strict=True,
    ):
        assert theirs.dtype == torch.float64
        np.testing.assert_allclose(theirs.numpy(), ours, rtol=1e-14)
    if scalars.ndim == 1:
        one = policy.decide(policy.Floats, scalars.tolist(), dots.tolist(), **given_options)
        assert all(isinstance(x, float) for x in one)
        np.testing.assert_allclose(one, after, rtol=1e-14)
    return mix, gain, {name: after[..., i] for i, name in enumerate(FIELDS)}


V, M_HAT = np.array([5.0, -3.0]), np.array([15.0, 23.0]) / 19  # Fig. 3, steps 1 and 2
K = dots_of(V, M_HAT)[1] / dots_of(V, M_HAT)[0]
COSINE = np.sqrt(2) / np.linalg.norm(M_HAT)


@pytest.mark.parametrize(
    ("name", "by_the_paper"),
    [
        ("exponential", {0.0: 1e-3, 0.5: 1.0, 1.0: 1e3}),  # 10^(6δ - 3)
        ("linear", {0.0: 0.0, 0.45: 5.0, 0.9: 10.0}),  # δ/0.9 · 10
    ],
)
def test_gains(name: str, by_the_paper: dict[float, float]) -> None:
    assert {delta: GAINS[name](delta) for delta in by_the_paper} == pytest.approx(by_the_paper)


def test_every_gain_is_an_option() -> None:
    """Type checkers and `test_gains` need its name too."""
    assert set(get_args(HiddenGain)) == set(GAINS)
    [mark] = test_gains.pytestmark  # pyright: ignore[reportFunctionMemberAccess]
    assert {case[0] for case in mark.args[1]} == set(GAINS)


def test_start() -> None:
    mix, gain, after = decide(row(alignment_ema=0.7), dots_of(np.zeros(2), M_HAT))
    assert (mix, gain) == (0, 0)
    assert (after["step"], after["steps_since_restart"], after["alignment_ema"]) == (1, 0, 0)
    assert after["hidden_norm"] == after["exp_avg_norm"] == pytest.approx(np.linalg.norm(M_HAT))


def test_update() -> None:
    before = row(step=7, steps_since_restart=3, alignment_ema=0.2)
    mix, gain, after = decide(before, dots_of(V, M_HAT))
    np.testing.assert_allclose(mix * V + (1 - mix) * M_HAT, [1, 1], rtol=1e-14)
    delta = BETA2 * 0.2 + (1 - BETA2) * COSINE
    assert mix == pytest.approx(1 - K)
    assert gain == pytest.approx(10 ** (6 * delta - 3))
    assert (after["step"], after["steps_since_restart"]) == (8, 4)
    assert after["alignment_ema"] == pytest.approx(delta)
    assert after["alignment"] == pytest.approx(COSINE)
    assert after["hidden_norm"] == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("rule", ["paper", "authors"])
def test_restart(rule: str) -> None:
    before = row(steps_since_restart=50, hidden_norm=9.0)
    mix, gain, after = decide(before, dots_of(V, M_HAT), restart_rule=rule)
    assert mix == pytest.approx(1 - K if rule == "paper" else 1)
    assert gain == 0
    assert after["steps_since_restart"] == -1
    assert after["restarts"] == 1
    assert after["hidden_norm"] == pytest.approx(np.sqrt(2) if rule == "paper" else 9.0)


def test_threshold_compares_the_unbiased_average() -> None:
    """On the first update δ̂ is the cosine itself, however small (1 - β2)·cosine is."""
    before = row(steps_since_restart=0)
    assert decide(before, dots_of(V, M_HAT), beta2=0.9999)[2]["restarts"] == 0
    assert decide(before, dots_of(V, M_HAT), threshold=COSINE + 1e-9)[2]["restarts"] == 1


def test_no_averaging() -> None:
    """β2 = 0 is allowed: the average is the last cosine."""
    for before in (row(), row(steps_since_restart=0), row(steps_since_restart=5)):
        after = decide(before, dots_of(V, M_HAT), beta2=0.0)[2]
        assert after["alignment_ema"] in (0, pytest.approx(COSINE))


def test_threshold_zero_never_restarts() -> None:
    before = row(steps_since_restart=50)
    _, gain, after = decide(before, dots_of(V, np.zeros(2)), threshold=0.0)
    assert after["restarts"] == 0
    assert gain == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("before", "dots", "active"),
    [
        (row(steps_since_restart=4, alignment_ema=0.5), dots_of(V, M_HAT), False),
        (row(steps_since_restart=4, alignment_ema=0.5), [NAN, 1, 1, 1], True),
        (row(steps_since_restart=4, alignment_ema=0.5), [1, 1, float("inf"), 1], True),
        (row(), [NAN] * 4, True),
        (row(), [0, 0, 0, 0], True),
    ],
    ids=["no gradients", "nan", "inf", "nan before the start", "nothing to start from"],
)
def test_hold(before: list[float], dots: Any, active: bool) -> None:
    mix, gain, after = decide(before, dots, active=active)
    assert (mix, gain) == (1, 0)
    for name in ("steps_since_restart", "alignment_ema", "restarts", "hidden_norm"):
        assert after[name] == before[FIELDS.index(name)]
    assert (after["step"], after["holds"]) == ((1, 1) if active else (0, 0))


def test_zero_vectors_have_cosine_zero() -> None:
    started = row(steps_since_restart=1)
    for v, m_hat in ((V, np.zeros(2)), (np.zeros(2), V), (np.zeros(2), np.zeros(2))):
        mix, _, after = decide(started, dots_of(v, m_hat), threshold=0.0)
        assert after["alignment"] == 0
        np.testing.assert_array_equal(mix * v + (1 - mix) * m_hat, 0)


def test_equal_vectors_keep_v_with_cosine_one() -> None:
    started = row(steps_since_restart=1)
    mix, _, after = decide(started, dots_of(V, V * (1 + 3e-16)))
    assert (mix, after["alignment"]) == (1, 1)
    assert decide(started, dots_of(V, V * (1 + 1e-7)), rounding=2.0**-23)[0] == 1


def test_scopes_are_independent() -> None:
    """Rows in all states at once, with options of their own, equal the rows taken alone."""
    rows = np.array([row(), row(steps_since_restart=3), row(steps_since_restart=60), row()])
    dots = np.array([dots_of(V, M_HAT), dots_of(M_HAT, V), dots_of(V, M_HAT), [NAN] * 4])
    beta2 = np.array([0.9, 0.99, 0.9, 0.5])
    threshold = np.array([0.1, 0.0, 0.2, 0.1])
    gains = [GAINS["linear"], GAINS["exponential"], GAINS["exponential"], GAINS["linear"]]
    together = advance(
        np,
        rows,
        dots,
        beta2=beta2,
        threshold=threshold,
        gain=piecewise(np, [(gains[0], 1), (gains[1], 2), (gains[3], 1)]),
        restart_rule="paper",
        rounding=2.0**-52,
    )
    for i in range(4):
        alone = advance(
            np,
            rows[i],
            dots[i],
            beta2=beta2[i],
            threshold=threshold[i],
            gain=gains[i],
            restart_rule="paper",
            rounding=2.0**-52,
        )
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_array_equal(ours[i], theirs)


vectors = arrays(np.float64, 4, elements=st.floats(-1e6, 1e6, allow_subnormal=False))


@given(v=vectors, m_hat=vectors)
@example(v=np.full(4, 1.7e-157), m_hat=np.full(4, 1.7e-157))
def test_geometry_of_the_projection(v: np.ndarray, m_hat: np.ndarray) -> None:
    """The new v is orthogonal to v - m̂ and no longer than either; the cosine lies in [0, 1]."""
    mix, _, after = decide(row(steps_since_restart=1), dots_of(v, m_hat), threshold=0.0)
    foot = mix * v + (1 - mix) * m_hat
    size = np.linalg.norm(v) + np.linalg.norm(m_hat)
    gap = np.linalg.norm(v - m_hat)
    slack = 1e-13 * size * (1 + size / gap) if gap > 0 else 1e-13 * size
    assert 0 <= after["alignment"] <= 1
    assert np.linalg.norm(foot) <= np.linalg.norm(v) + slack
    assert np.linalg.norm(foot) <= np.linalg.norm(m_hat) + slack
    assert abs(foot @ m_hat - foot @ foot) <= slack * size
    assert abs(after["hidden_norm"] - np.linalg.norm(foot)) <= slack + 1e-7 * size


CASES = {
    "start": (row(), dots_of(np.zeros(2), M_HAT)),
    "update": (row(steps_since_restart=0, step=1), dots_of(V, M_HAT)),
    "equal": (row(steps_since_restart=3, step=4), dots_of(V, V)),
    "hold": (row(steps_since_restart=3, step=4), np.array([NAN, 1.0, 1.0, 1.0])),
}


@pytest.mark.parametrize("rule", ["paper", "authors"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threshold", [0.1, 0.99])
def test_a_measured_foot_decides_as_the_dots_do(case: str, threshold: float, rule: str) -> None:
    """Told from exact dots or measured on the vector that ``first_mix`` makes, it is one number."""
    scalars, dots = CASES[case]
    options: dict[str, Any] = {"beta2": BETA2, "threshold": threshold, "restart_rule": rule}
    options |= {"gain": GAINS["linear"], "rounding": 2.0**-52}
    fields, each = [np.float64(x) for x in scalars], [np.float64(x) for x in dots]
    told = policy.decide(np, fields, each, **options)
    mix = policy.first_mix(np, fields, each, rounding=2.0**-52)
    moved = mix * V + (1.0 - mix) * (V if case == "equal" else M_HAT)
    measured = policy.decide(np, fields, each, foot=moved @ moved, **options)
    np.testing.assert_allclose(measured, told, rtol=1e-12)
    kept = rule == "authors" and case == "update" and threshold == 0.99
    assert mix == (1.0 - dots[1] / dots[0] if kept else measured[policy.MIX])
    if kept:
        assert measured[policy.MIX] == 1.0


def test_a_measured_foot_is_believed() -> None:
    """Where dots have lost their digits, what was measured counts."""
    scalars, dots = CASES["update"]
    options: dict[str, Any] = {"beta2": BETA2, "threshold": 0.1, "restart_rule": "paper"}
    options |= {"gain": GAINS["linear"], "rounding": 2.0**-52}
    foot = np.float64(0.25 * dots[2])
    after = policy.decide(np, [np.float64(x) for x in scalars], list(dots), foot=foot, **options)
    assert after[FIELDS.index("alignment")] == 0.5
    assert after[policy.MIX] == 1.0 - dots[1] / dots[0]
