"""The reference against the paper's worked example and theorem, and the authors' traces."""

from __future__ import annotations

import authors
import exact
import numpy as np
import pytest

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam.core.scalars import GAINS, INITIAL, advance


def test_figure_3() -> None:
    """f = 4|x - y| + |x + y|: two steps find the hidden vector (1, 1).

    The paper prints -1.2105 for the average's y at step 2; the value is +1.2105.
    """
    slot, scope = Slot(np.zeros(2), Hyperparams(lr=0.0)), ScopeState()
    m_hats = [(5, -3), (0.7895, 1.2105), (2.3432, -0.3432), (0.7895, 1.2105), (1.8177, 0.1823)]
    for t, m_hat in enumerate(m_hats, start=1):
        step(scope, [slot], [np.array([5.0, -3.0] if t % 2 else [-3.0, 5.0])])
        np.testing.assert_allclose(slot.m / (1 - 0.9**t), m_hat, atol=5e-5)
        np.testing.assert_allclose(slot.v, (5, -3) if t == 1 else (1, 1), rtol=1e-12)


@pytest.mark.parametrize("trace", authors.load(), ids=lambda trace: trace.kind)
def test_reproduces_the_authors_traces(trace: authors.Trace) -> None:
    hyper = Hyperparams(restart_rule="authors", **trace.options)
    slots = [Slot(theta, hyper) for theta in trace.theta0]
    scopes = [ScopeState() for _ in trace.groups]
    for t, grads in enumerate(trace.grads, start=1):
        for scope, group in zip(scopes, trace.groups, strict=True):
            step(scope, [slots[i] for i in group], [grads[i] for i in group])
        if t in trace.kept:
            theta = np.concatenate([slot.theta.ravel() for slot in slots])
            error = abs(theta - trace.kept[t]).max() / abs(trace.kept[t]).max()
            assert error < authors.TOLERANCE
    assert sum(scope.restarts for scope in scopes) == trace.restarts


@pytest.mark.parametrize("dimension", [2, 3, 10, 50])
@pytest.mark.parametrize("sigma", [0.1, 3.0])
def test_theorem_b_bounds_the_distance_to_the_hidden_vector(dimension: int, sigma: float) -> None:
    """m_t = v* + ζ_t, ζ_t ⟂ v*, ‖ζ_t‖ half-normal and independent: T·E‖v_T - v*‖ <= σ·sqrt(2π)."""
    runs = 2000
    rng = np.random.default_rng(dimension)
    v_star = np.zeros(dimension)
    v_star[0] = 1.0
    v = np.zeros((runs, dimension))
    scalars = np.tile(np.array(INITIAL), (runs, 1))
    for t in range(1, 101):
        zeta = rng.normal(size=(runs, dimension))
        zeta[:, 0] = 0.0
        zeta *= abs(rng.normal(scale=sigma, size=(runs, 1))) / np.linalg.norm(
            zeta, axis=1, keepdims=True
        )
        m = v_star + zeta
        d = v - m
        dots = np.stack([(x * y).sum(1) for x, y in ((d, d), (d, v), (m, m), (v, v))], axis=1)
        mix, _, scalars = advance(
            np,
            scalars,
            dots,
            beta2=0.999,
            threshold=0.0,
            gain=GAINS["linear"],
            restart_rule="paper",
            rounding=2.0**-52,
        )
        v = mix[:, None] * v + (1 - mix[:, None]) * m
        assert t * np.linalg.norm(v - v_star, axis=1).mean() <= sigma * np.sqrt(2 * np.pi)


def test_ratio_stays_under_one_over_gamma() -> None:
    """η < 1/γ, seen through s: with β2 = 0 it is η·p + ε."""
    rng = np.random.default_rng(0)
    for gamma in (0.1, 0.5, 2.0):
        slot = Slot(rng.normal(size=100), Hyperparams(gamma=gamma, betas=(0.9, 0.0), eps=1e-12))
        scope = ScopeState()
        for _ in range(50):
            g, v = rng.normal(size=100), slot.v
            step(scope, [slot], [g])
            assert ((slot.s - 1e-12) / (g - v) ** 2 < 1 / gamma).all()


def test_is_as_far_from_sixty_digits_as_float64_must_be() -> None:
    """Where s is not averaged, a gradient that meets v leaves few digits of a step to anybody."""
    hyper = Hyperparams(lr=exact.LR, betas=(exact.B1, exact.B2), hidden_gain="linear")
    slots, scope = [Slot(np.zeros(shape), hyper) for shape in exact.SHAPES], ScopeState()
    grads = exact.gradients(161, 12)
    worst = 0.0
    for g, step_taken in zip(grads, exact.run(grads), strict=True):
        for slot in slots:
            slot.theta = np.zeros_like(slot.theta)
        before = joined([slot.v for slot in slots])
        step(scope, slots, [g[:120].reshape(40, 3), g[120:]])
        update, after = (joined([getattr(slot, x) for slot in slots]) for x in ("theta", "v"))
        v_error = max(abs(before - step_taken.v_before).max(), abs(after - step_taken.v).max())
        assert v_error < 1e-12 * np.linalg.norm(step_taken.m_hat)
        error = abs(update - step_taken.update)
        assert (error <= exact.allowed(step_taken, g, v_error)).all()
        worst = max(worst, error.max() / abs(step_taken.update).max())
    assert worst > 1e-9  # though v has twelve digits


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([x.ravel() for x in arrays])


def test_holds_where_sums_are_not_numbers() -> None:
    """<v - m̂, v> has ∞ and -∞ to add, and where squares overflow the sum does."""
    for gradient in ([np.inf, -np.inf, 1.0], [1e200, -1e200, 1.0]):
        slot, scope = Slot(np.ones(3)), ScopeState()
        with np.errstate(all="ignore"):
            for g in ([1.0, 2.0, 3.0], gradient, [1.0, 1.0, 1.0]):
                step(scope, [slot], [np.array(g)])
        assert scope.holds == 2
        finite = [np.isfinite(x) for x in gradient]
        assert np.isfinite(slot.theta).tolist() == finite
        assert np.isfinite(slot.v).tolist() == finite
        assert np.isfinite(slot.s).tolist() == [False, False, True]
