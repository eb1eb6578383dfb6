"""The thirty lines against the reference, and their copies against them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam.core import algorithm
from hvadam.core.algorithm import State, hvadam_step
from hvadam.core.reference import ScopeState, Slot, step

ROOT = Path(__file__).parents[2]
SOURCE = inspect.getsource(hvadam_step)
# With them the copies run where they are pasted.
IMPORTS = """\
import numpy as np
from hvadam.core.algorithm import State, Vector
from numpy.linalg import norm


"""


def assert_equal_to_the_reference(
    start: np.ndarray, gradient: Callable[[np.ndarray, int], np.ndarray], steps: int
) -> ScopeState:
    """Teacher-forced: both start every step from the reference's state."""
    slot, scope = Slot(start), ScopeState()
    for t in range(steps):
        g = gradient(slot.theta, t)
        mine = State(slot.t, slot.m, slot.s, slot.v, scope.delta, scope.t2)
        theta = hvadam_step(slot.theta, g, mine)
        step(scope, [slot], [g])
        np.testing.assert_allclose(theta, slot.theta, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mine.v, slot.v, rtol=1e-9, atol=1e-12 * abs(g).max())
        np.testing.assert_allclose(mine.s, slot.s, rtol=1e-12)
        assert (mine.t, mine.age) == (slot.t, scope.t2)
        assert mine.delta == pytest.approx(scope.delta, rel=1e-9, abs=1e-12)
    return scope


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(2, 40),
    noise=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
)
def test_equals_the_reference_on_drawn_valleys(seed: int, size: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    turned, _ = np.linalg.qr(rng.normal(size=(size, size)))
    curvature = turned @ np.diag(np.logspace(0, 3, size)) @ turned.T
    assert_equal_to_the_reference(
        rng.normal(size=size),
        lambda theta, _: curvature @ theta + noise * rng.normal(size=size),
        100,
    )


def test_equals_the_reference_over_restarts() -> None:
    """Gradients that only shrink make v collapse: the alignment falls and the vector restarts."""
    rng = np.random.default_rng(0)
    way = rng.normal(size=20)
    scope = assert_equal_to_the_reference(
        np.ones(20), lambda _, t: 0.9 ** (t % 50) * (way + 1e-4 * rng.normal(size=20)), 400
    )
    assert scope.restarts > 0


def test_a_constant_gradient_is_its_own_trend() -> None:
    g = np.array([3.0, -1.0, 0.5])
    scope = assert_equal_to_the_reference(np.ones(3), lambda *_: g, 50)
    assert scope.cosine == 1.0


def test_running_freely_it_finds_the_valley() -> None:
    """f = 4|x - y| + |x + y|, the paper's Fig. 3: two steps find the trend (1, 1)."""
    theta, state = np.zeros(2), State()
    for g in ((5.0, -3.0), (-3.0, 5.0)):
        theta = hvadam_step(theta, np.array(g), state)
    np.testing.assert_allclose(state.v, (1, 1), rtol=1e-12)


def test_it_is_about_thirty_lines() -> None:
    body = [line for line in SOURCE.splitlines() if line.strip()]
    assert len(body) <= 32


@pytest.mark.parametrize("page", ["README.md", "docs/method.md"])
def test_the_copies_are_the_source(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    copy = f"```python\n{IMPORTS}{SOURCE}```"
    assert copy in text, f"copy hvadam_step of {algorithm.__name__} to {page}"
