"""Four families of online convex problems on the box [-1, 1]^10, fixed before the first round.

A family draws, for several seeds at once, everything the losses f_1, f_2, ... depend on; a round
evaluates loss and (sub)gradient at points (..., seeds, d). ``best`` is the point that a player with
hindsight would have played in each of the first rounds, by a closed form or, for the logistic loss,
by L-BFGS-B on the box.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from hvadam_bench.studies.theory.fits import Array

DIMENSION = 10
BOX = (-1.0, 1.0)


class Stream(Protocol):
    """Losses of all rounds and seeds."""

    name: ClassVar[str]
    about: ClassVar[str]
    steepest: ClassVar[float]  # no coordinate of a gradient is larger

    def __init__(self, rounds: int, seeds: int) -> None: ...

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        """Return loss (..., seeds) and gradient (..., seeds, d) of round t = 0, 1, ... at theta."""
        ...

    def best(self, rounds: int) -> tuple[Array, Array]:
        """Return the best fixed points (seeds, d) of the first rounds, and their losses (seeds)."""
        ...


class _Linear(Stream):
    """Losses <g_t, θ>: the best point is a corner, -sign of the sum."""

    gradients: Array  # (rounds, seeds, d)

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        g = self.gradients[t]
        return np.einsum("...i,...i", theta, g), np.broadcast_to(g, theta.shape)

    def best(self, rounds: int) -> tuple[Array, Array]:
        total = self.gradients[:rounds].sum(0)
        return -np.sign(total), -abs(total).sum(-1)


class Signs(_Linear):
    """Random signs, the adversary against whom every player has regret of order √T."""

    name: ClassVar[str] = "signs"
    about: ClassVar[str] = (
        "linear losses with random signs: whoever plays, the expected regret is d·√(2T/π)"
    )
    steepest: ClassVar[float] = 1.0

    def __init__(self, rounds: int, seeds: int) -> None:
        rng = np.random.default_rng(1)
        self.gradients = rng.choice([-1.0, 1.0], size=(rounds, seeds, DIMENSION))


class Spikes(_Linear):
    """The sequence on which Adam fails: rare large slopes against many small ones.

    Once in 301 rounds a coordinate's slope is +500, else -1, so that -1 is best; an optimizer that
    forgets the spike before the next one drifts to +1. The phases differ between coordinates.
    """

    name: ClassVar[str] = "spikes"
    about: ClassVar[str] = (
        "linear losses, slope +500 once in 301 rounds and -1 else: Adam forgets the spikes"
    )
    steepest: ClassVar[float] = 500.0
    period: ClassVar[int] = 301

    def __init__(self, rounds: int, seeds: int) -> None:
        rng = np.random.default_rng(2)
        phase = rng.integers(self.period, size=(seeds, DIMENSION))
        t = np.arange(rounds)[:, None, None]
        self.gradients = np.where(t % self.period == phase, self.steepest, -1.0)


class Logistic(Stream):
    """Logistic regression on a stream of labels that follow a noisy linear rule."""

    name: ClassVar[str] = "logistic"
    about: ClassVar[str] = "logistic regression, one fresh example per round, noisy labels"
    steepest: ClassVar[float] = 1.0

    def __init__(self, rounds: int, seeds: int) -> None:
        rng = np.random.default_rng(3)
        x = rng.uniform(-1, 1, size=(rounds, seeds, DIMENSION))
        truth = rng.uniform(-1.5, 1.5, size=(seeds, DIMENSION))  # partly outside of the box
        label = np.where(
            rng.random((rounds, seeds)) < expit(np.einsum("tsi,si->ts", x, truth)), 1, -1
        )
        self.rows = label[..., None] * x  # the loss sees only their product

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        row = self.rows[t]
        margin = np.einsum("...i,...i", theta, row)
        return np.logaddexp(0, -margin), -expit(-margin)[..., None] * row

    def best(self, rounds: int) -> tuple[Array, Array]:
        points = [self._minimize(self.rows[:rounds, seed]) for seed in range(self.rows.shape[1])]
        best = np.stack(points)
        margins = np.einsum("tsi,si->ts", self.rows[:rounds], best)
        return best, np.logaddexp(0, -margins).sum(0)

    @staticmethod
    def _minimize(rows: Array) -> Array:
        def mean(theta: Array) -> tuple[float, Array]:
            margin = rows @ theta
            return np.logaddexp(0, -margin).mean(), -expit(-margin) @ rows / len(rows)

        found = minimize(
            mean,
            np.zeros(rows.shape[1]),
            jac=True,
            bounds=[BOX] * rows.shape[1],
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        return np.asarray(found.x)


class Valley(Stream):
    """Five diagonal valleys 4|x - y - a_t| + |x + y - c_t| whose place is shifted every round.

    Absolute losses in the rotated coordinates: medians are best, and lie inside the box.
    """

    name: ClassVar[str] = "valley"
    about: ClassVar[str] = (
        "five valleys 4|x-y-a| + |x+y-c|, non-smooth and diagonal, shifted at random every round"
    )
    steepest: ClassVar[float] = 5.0

    def __init__(self, rounds: int, seeds: int) -> None:
        rng = np.random.default_rng(4)
        shift = rng.normal(scale=0.25, size=(rounds, seeds, DIMENSION // 2, 2))
        self.across, self.along = shift[..., 0], shift[..., 1] + 1.0

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        x, y = theta[..., 0::2], theta[..., 1::2]
        across, along = x - y - self.across[t], x + y - self.along[t]
        loss = (4 * abs(across) + abs(along)).sum(-1)
        across, along = 4 * np.sign(across), np.sign(along)
        g = np.empty_like(theta)
        g[..., 0::2], g[..., 1::2] = along + across, along - across
        return loss, g

    def best(self, rounds: int) -> tuple[Array, Array]:
        across, along = self.across[:rounds], self.along[:rounds]
        difference, total = np.median(across, axis=0), np.median(along, axis=0)
        loss = (4 * abs(across - difference) + abs(along - total)).sum((0, 2))
        pairs = np.stack([(total + difference) / 2, (total - difference) / 2], axis=-1)
        best = pairs.reshape(pairs.shape[0], DIMENSION)
        assert (abs(best) <= 1).all(), "a median outside of the box is not the best point in it"
        return best, loss


STREAMS: tuple[type[Stream], ...] = (Signs, Logistic, Valley, Spikes)
