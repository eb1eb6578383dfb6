"""Four families of online convex problems on the box [-1, 1]^10, fixed before the first round.

A family draws, for several seeds at once, everything the losses f_1, f_2, ... depend on; a round
evaluates loss and (sub)gradient at points (..., seeds, d). ``best`` is the point that a player with
hindsight would have played in each of the first rounds, by a closed form or, for the logistic loss,
by L-BFGS-B on the box.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from hvadam_bench.studies.theory.result import Array

DIMENSION, SEEDS = 10, 5
BOX = (-1.0, 1.0)
SPIKE, PERIOD = 500.0, 301


class Stream(Protocol):
    """Losses of all rounds and seeds, whose gradients have no coordinate above ``steepest``."""

    name: str
    about: str
    steepest: float

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        """Return loss (..., seeds) and gradient (..., seeds, d) of round t = 0, 1, ... at theta."""
        ...

    def best(self, rounds: int) -> tuple[Array, Array]:
        """Return the best fixed points (seeds, d) of the first rounds, and their losses (seeds)."""
        ...


class Linear(Stream):
    """Losses <g_t, θ> of gradients (rounds, seeds, d): a corner is best, -sign of their sum."""

    def __init__(self, name: str, about: str, steepest: float, gradients: Array) -> None:
        self.name, self.about, self.steepest = name, f"linear losses{about}", steepest
        self.gradients = gradients

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        g = self.gradients[t]
        return np.einsum("...i,...i", theta, g), np.broadcast_to(g, theta.shape)

    def best(self, rounds: int) -> tuple[Array, Array]:
        total = self.gradients[:rounds].sum(0)
        return -np.sign(total), -abs(total).sum(-1)


def signs(rounds: int) -> Linear:
    """Draw random signs, the adversary against whom every player has regret of order √T."""
    g = np.random.default_rng(1).choice([-1.0, 1.0], size=(rounds, SEEDS, DIMENSION))
    about = " with random signs: whoever plays, the expected regret is d·√(2T/π)"
    return Linear("signs", about, 1.0, g)


def spikes(rounds: int) -> Linear:
    """Draw the sequence on which Adam fails: rare large slopes against many small ones.

    Since the small ones add up to less, -1 is best; an optimizer that forgets the spike before the
    next one drifts to +1. The phases differ between coordinates.
    """
    phase = np.random.default_rng(2).integers(PERIOD, size=(SEEDS, DIMENSION))
    g = np.where(np.arange(rounds)[:, None, None] % PERIOD == phase, SPIKE, -1.0)
    about = ", slope +500 once in 301 rounds and -1 else: Adam forgets the spikes"
    return Linear("spikes", about, SPIKE, g)


class Logistic(Stream):
    """Logistic regression on a stream of labels that follow a noisy linear rule."""

    name, steepest = "logistic", 1.0
    about = "logistic regression, one fresh example per round, noisy labels"

    def __init__(self, rounds: int) -> None:
        rng = np.random.default_rng(3)
        x = rng.uniform(-1, 1, size=(rounds, SEEDS, DIMENSION))
        truth = rng.uniform(-1.5, 1.5, size=(SEEDS, DIMENSION))  # partly outside of the box
        positive = rng.random((rounds, SEEDS)) < expit(np.einsum("tsi,si->ts", x, truth))
        self.rows = np.where(positive, 1, -1)[..., None] * x  # the loss sees only their product

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        margin = np.einsum("...i,...i", theta, self.rows[t])
        return np.logaddexp(0, -margin), -expit(-margin)[..., None] * self.rows[t]

    def best(self, rounds: int) -> tuple[Array, Array]:
        rows = self.rows[:rounds]
        best = np.stack([self._minimize(rows[:, seed]) for seed in range(rows.shape[1])])
        return best, np.logaddexp(0, -np.einsum("tsi,si->ts", rows, best)).sum(0)

    @staticmethod
    def _minimize(rows: Array) -> Array:
        def mean(theta: Array) -> tuple[float, Array]:
            margin = rows @ theta
            return np.logaddexp(0, -margin).mean(), -expit(-margin) @ rows / len(rows)

        start, options = np.zeros(rows.shape[1]), {"ftol": 1e-15, "gtol": 1e-9}
        bounds = [BOX] * len(start)
        found = minimize(mean, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        return np.asarray(found.x)


class Valley(Stream):
    """Five diagonal valleys 4|x - y - a_t| + |x + y - c_t| whose place is shifted every round.

    Absolute losses in the rotated coordinates: medians are best, and lie inside the box.
    """

    name, steepest = "valley", 5.0
    about = (
        "five valleys 4|x-y-a| + |x+y-c|, non-smooth and diagonal, shifted at random every round"
    )

    def __init__(self, rounds: int) -> None:
        rng = np.random.default_rng(4)
        shift = rng.normal(scale=0.25, size=(rounds, SEEDS, DIMENSION // 2, 2))
        self.across, self.along = shift[..., 0], shift[..., 1] + 1.0

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        x, y = theta[..., 0::2], theta[..., 1::2]
        across, along = x - y - self.across[t], x + y - self.along[t]
        loss = (4 * abs(across) + abs(along)).sum(-1)
        across, along = 4 * np.sign(across), np.sign(along)
        return loss, np.stack([along + across, along - across], axis=-1).reshape(theta.shape)

    def best(self, rounds: int) -> tuple[Array, Array]:
        across, along = self.across[:rounds], self.along[:rounds]
        difference, total = np.median(across, axis=0), np.median(along, axis=0)
        loss = (4 * abs(across - difference) + abs(along - total)).sum((0, 2))
        pairs = np.stack([(total + difference) / 2, (total - difference) / 2], axis=-1)
        best = pairs.reshape(-1, DIMENSION)
        assert (abs(best) <= 1).all(), "a median outside of the box is not the best point in it"
        return best, loss


STREAMS: tuple[Callable[[int], Stream], ...] = (signs, Logistic, Valley, spikes)
