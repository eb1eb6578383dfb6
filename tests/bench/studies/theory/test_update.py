"""The theorems' update against the reference, and what it changes."""

from __future__ import annotations

import numpy as np
import pytest

from hvadam.core import reference
from hvadam.core.hyperparams import Hyperparams
from hvadam.core.scalars import FIELDS
from hvadam_bench.studies.theory.update import Runs, step

RNG = np.random.default_rng


def gradients(steps: int, shape: tuple[int, ...]) -> np.ndarray:
    """A trend that turns now and then, under noise, so that hidden vectors grow and restart."""
    rng = RNG(0)
    trend = np.repeat(rng.normal(size=(steps // 50 + 1, *shape)), 50, axis=0)[:steps]
    return trend + 0.5 * rng.normal(size=(steps, *shape))


def test_is_the_reference_where_there_is_nothing_to_correct() -> None:
    """β1 = 0 leaves m unbiased; a rate times √(1-β2^t) makes up for the bias of s."""
    hyper = Hyperparams(lr=0.01, betas=(0.0, 0.9), restart_threshold=0.4, bounds=(-0.4, 0.4))
    start = RNG(1).uniform(-0.3, 0.3, size=(3, 5))
    runs = Runs(start)
    slots = [reference.Slot(theta, hyper) for theta in start]
    scopes = [reference.ScopeState() for _ in slots]
    for t, g in enumerate(gradients(300, (3, 5)), start=1):
        step(runs, g, hyper, adaptive_decay=np.sqrt(1 - 0.9**t), monotone=False)
        for slot, scope, own in zip(slots, scopes, g, strict=True):
            reference.step(scope, [slot], [own])
        np.testing.assert_allclose(runs.theta, [slot.theta for slot in slots], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(runs.v, [slot.v for slot in slots], rtol=1e-7, atol=1e-9)
    restarts = [scope.restarts for scope in scopes]
    assert runs.scalars[..., FIELDS.index("restarts")].tolist() == restarts
    assert min(restarts) > 0
    assert (abs(runs.theta) == 0.4).any()


def test_the_maximum_is_of_everything_before() -> None:
    runs, plain = (Runs(np.zeros((2, 4))) for _ in range(2))
    hyper = Hyperparams(betas=(0.9, 0.9))
    largest = np.zeros((2, 4))
    fell = False
    for g in gradients(200, (2, 4)):
        step(runs, g, hyper)
        step(plain, g, hyper, monotone=False)
        fell |= bool((plain.root < largest).any())
        largest = np.maximum(largest, plain.root)
        assert (runs.root == largest).all()
    assert fell

    # one flag per run: the first takes the maximum, the second does not
    mixed = Runs(np.zeros((2, 4)))
    for g in gradients(200, (2, 4)):
        step(mixed, g, hyper, monotone=np.array([[True], [False]]))
    assert (mixed.root == [runs.root[0], plain.root[1]]).all()


@pytest.mark.parametrize("hidden_scale", [0.5, 2.0])
def test_schedules_reach_their_step(hidden_scale: float) -> None:
    """θ' = θ - α1·a·m/root - α2·h·b·v, and β1 decays."""
    hyper = Hyperparams(lr=0.1, hidden_scale=hidden_scale)
    runs = Runs(np.zeros((2, 3)))
    for t, g in enumerate(gradients(60, (2, 3)), start=1):
        before, m = runs.theta, runs.m
        a, h, decay = t**-0.5, np.array([[1 / t], [2 / t]]), 0.95 ** (t - 1)
        step(runs, g, hyper, adaptive_decay=a, hidden_decay=h, beta1_decay=decay)
        np.testing.assert_allclose(runs.m, 0.9 * decay * m + (1 - 0.9 * decay) * g)
        hidden = 0.1 * hidden_scale * h * runs.gain[:, None] * runs.v
        np.testing.assert_allclose(runs.theta, before - 0.1 * a * runs.m / runs.root - hidden)
    assert (runs.gain > 0).all()
