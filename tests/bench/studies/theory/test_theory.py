"""The study of the theorems: the update that they speak of, its problems and its bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hvadam.core import reference
from hvadam.core.hyperparams import Hyperparams
from hvadam.core.scalars import FIELDS
from hvadam_bench.studies.theory import nonconvex, regret
from hvadam_bench.studies.theory.nonconvex import SAMPLES, Constants
from hvadam_bench.studies.theory.regret import DIMENSION, SEEDS, STREAMS, spikes
from hvadam_bench.studies.theory.result import interval, power
from hvadam_bench.studies.theory.update import Runs, step


def turning(steps: int, shape: tuple[int, ...]) -> np.ndarray:
    """A trend that turns now and then, under noise, so that hidden vectors grow and restart."""
    rng = np.random.default_rng(0)
    trend = np.repeat(rng.normal(size=(steps // 50 + 1, *shape)), 50, axis=0)[:steps]
    return trend + 0.5 * rng.normal(size=(steps, *shape))


def test_is_the_reference_where_there_is_nothing_to_correct() -> None:
    """β1 = 0 leaves m unbiased; a rate times √(1-β2^t) makes up for the bias of s."""
    hyper = Hyperparams(lr=0.01, betas=(0.0, 0.9), restart_threshold=0.4, bounds=(-0.4, 0.4))
    start = np.random.default_rng(1).uniform(-0.3, 0.3, size=(3, 5))
    runs = Runs(start)
    slots = [reference.Slot(theta, hyper) for theta in start]
    scopes = [reference.ScopeState() for _ in slots]
    for t, g in enumerate(turning(300, (3, 5)), start=1):
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
    for g in turning(200, (2, 4)):
        step(runs, g, hyper)
        step(plain, g, hyper, monotone=False)
        fell |= bool((plain.root < largest).any())
        largest = np.maximum(largest, plain.root)
        assert (runs.root == largest).all()
    assert fell

    # one flag per run: the first takes the maximum, the second does not
    mixed = Runs(np.zeros((2, 4)))
    for g in turning(200, (2, 4)):
        step(mixed, g, hyper, monotone=np.array([[True], [False]]))
    assert (mixed.root == [runs.root[0], plain.root[1]]).all()


@pytest.mark.parametrize("hidden_scale", [0.5, 2.0])
def test_schedules_reach_their_step(hidden_scale: float) -> None:
    """θ' = θ - α1·a·m/root - α2·h·b·v, and β1 decays."""
    hyper = Hyperparams(lr=0.1, hidden_scale=hidden_scale)
    runs = Runs(np.zeros((2, 3)))
    for t, g in enumerate(turning(60, (2, 3)), start=1):
        before, m = runs.theta, runs.m
        a, h, decay = t**-0.5, np.array([[1 / t], [2 / t]]), 0.95 ** (t - 1)
        step(runs, g, hyper, adaptive_decay=a, hidden_decay=h, beta1_decay=decay)
        np.testing.assert_allclose(runs.m, 0.9 * decay * m + (1 - 0.9 * decay) * g)
        hidden = 0.1 * hidden_scale * h * runs.gain[:, None] * runs.v
        np.testing.assert_allclose(runs.theta, before - 0.1 * a * runs.m / runs.root - hidden)
    assert (runs.gain > 0).all()


@pytest.mark.parametrize("family", STREAMS)
def test_families_are_convex_and_hindsight_is_best(family: Any) -> None:
    rounds = 700
    stream, rng = family(rounds), np.random.default_rng(0)
    best, least = stream.best(rounds)
    others = np.concatenate(
        [rng.uniform(-1, 1, size=(30, SEEDS, DIMENSION)), best + 0 * best[None]]
    )
    others[:10] = np.clip(best + 0.01 * rng.normal(size=others[:10].shape), -1, 1)
    total = np.zeros(others.shape[:2])
    for t in range(rounds):
        loss, g = stream.play(t, others)
        total += loss
        assert abs(g).max() <= stream.steepest
        under = loss + ((np.roll(others, 1, axis=0) - others) * g).sum(-1)
        assert (under <= np.roll(loss, 1, axis=0) + 1e-9).all()
    assert abs(best).max() <= 1
    np.testing.assert_allclose(total[-1], least, rtol=1e-9)
    assert (total >= least - 1e-6 * abs(least)).all()


def test_regret_stays_under_the_sums_and_each_sum_under_its_term() -> None:
    for family in regret.study(400, lambda share: None)["families"]:
        constant, decaying, without = family["variants"]
        for proof in (constant["proof"], decaying["proof"]):
            assert proof["within_sums"]
            terms = proof["corrected"]["terms"]
            for name, total in proof["sums"].items():
                assert total <= sum(x for term, x in terms.items() if term[0] == name)
            assert sum(terms.values()) == pytest.approx(proof["corrected"]["total"][-1])
        assert (constant["curve"]["mean"] != decaying["curve"]["mean"]).any()
        assert without["proof"] is None  # the theorem says nothing of it


def test_the_printed_bound_is_the_papers() -> None:
    """Each term by hand, for d = 10, D = 2, G = 2, T = 100, λ = 1/2 and all constants 1."""
    seen = {"root": 1.0, "gain": 1.0, "floor": 1.0}
    found = regret.bound(np.array(100), seen, 1.0, 0.5, corrected=False)
    expected = {"P": 200.0, "Q": 2000.0, "R": 2036.5, "S": 424.3, "U1": 11313.7, "U2": 942.7}
    assert {name: round(float(value), 1) for name, value in found.items()} == expected


def test_the_corollary_majorizes_the_sum_it_replaces() -> None:
    t = np.arange(1, 2001)
    for decay in (0.5, 0.9, 0.99):
        total = np.cumsum(np.sqrt(t) * 0.9 * decay ** (t - 1))
        assert (total <= regret.weighted_beta1(t, 0.9, decay)).all()
    np.testing.assert_allclose(regret.weighted_beta1(t, 0.9, 1.0), np.cumsum(0.9 * np.sqrt(t)))


def test_adam_forgets_the_spikes() -> None:
    times = np.array([3000, 12000])
    stream = spikes(12000)
    paid = regret.play_adam(stream, times)
    gap = paid - [stream.best(int(t))[1] for t in times]
    assert (gap[1] / gap[0] > 3.5).all()  # linear: 4


def _waves(problem: Any, theta: np.ndarray) -> float:
    return float((1 - np.cos(problem.a @ theta + problem.phase)).mean())


def _committee(problem: Any, theta: np.ndarray) -> float:
    output = np.tanh(problem.x @ theta.reshape(3, -1).T).mean(-1)
    return float(((output - problem.y) ** 2).mean() / 2)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [(nonconvex.Waves, _waves), (nonconvex.Committee, _committee)],
    ids=["waves", "committee"],
)
def test_problems_meet_the_assumptions(kind: type[Any], loss: Any) -> None:
    problem, rng = kind(), np.random.default_rng(0)
    points = 3 * rng.normal(size=(50, nonconvex.DIMENSION))
    weights = np.eye(SAMPLES)[rng.integers(SAMPLES, size=50)]
    full, single = problem.gradients(points, weights)
    assert abs(single).max() <= problem.constants.steepest
    np.testing.assert_allclose(problem.gradients(points, np.ones(SAMPLES) / SAMPLES)[1], full)
    for theta, g in zip(points, full, strict=True):
        assert 0 <= loss(problem, theta) <= problem.constants.ceiling
        direction = rng.normal(size=theta.shape)
        ahead, behind = (loss(problem, theta + h * direction) for h in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx(g @ direction, abs=1e-8)
        near = theta + 0.1 * direction
        change = np.linalg.norm(problem.gradients(near, weights[0])[0] - g)
        assert change <= problem.constants.lipschitz * np.linalg.norm(near - theta)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_bound_falls_at_its_rate(corrected: bool) -> None:
    constants = Constants(lipschitz=1.0, steepest=1.0, ceiling=2.0, least=0.5, most=2.0)
    for k in (0.6, 0.75):
        far = [float(nonconvex.bound(10.0**e, k, constants, corrected=corrected)) for e in (60, 62)]
        assert math.log10(far[1] / far[0]) / 2 == pytest.approx(k - 1, abs=0.01)
    scaled = [
        float(nonconvex.bound(10.0**e, 0.5, constants, corrected=corrected)) * 10 ** (e / 2)
        for e in (60, 120, 180)
    ]
    assert scaled[1] - scaled[0] == pytest.approx(scaled[2] - scaled[1])  # linear in log T
    assert scaled[1] > scaled[0]
    start = nonconvex.useful_from(0.5, constants, corrected=corrected)
    values = [
        float(nonconvex.bound(10.0**e, 0.5, constants, corrected=corrected))
        for e in (start - 0.01, start + 0.01)
    ]
    assert values[0] > nonconvex.DIMENSION > values[1]


def test_fits_recover_what_made_the_data() -> None:
    t = np.array([1.0, 10.0, 100.0, 1000.0])
    samples = t**-0.7 * np.random.default_rng(0).uniform(0.5, 1.5, size=(200, 4))
    everywhere = t > 0
    fit = interval(t, samples, everywhere)
    assert fit is not None
    assert fit["low"] < -0.7 < fit["high"]
    assert power(t, np.array([3 * t**-0.5]), everywhere) == pytest.approx(-0.5)
    assert power(t, np.array([[1.0, 0.0, 1.0, 1.0]]), everywhere) is None
