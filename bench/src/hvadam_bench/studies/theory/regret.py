"""Appendix C: regret in online convex problems, versus every term of its bound.

The update is `update.step` with α1/√t, α2/t and AMSGrad's maximum. All families and variants are
stepped together: arrays are (families, variants, seeds, d). A family draws, for all seeds at once,
everything that its losses depend on; a round evaluates loss (..., seeds) and (sub)gradient, and
``best`` is the point (seeds, d) that a player with hindsight would have played in each of the first
rounds, with its loss in total.

With w_t = ‖s_t^{1/4}(θ_t - θ*)‖ the proof bounds the regret by five sums, here measured with the
best fixed point θ* of all rounds:

    P  Σ (w_t² - ‖s_t^{1/4}(θ_{t+1} - θ*)‖²) / (2 α_{1,t} (1-β_{1,t}))
    Q  Σ α_{1,t} (‖s_t^{-1/4} m_t‖² + β_{1,t} ‖s_t^{-1/4} m_{t-1}‖²) / (2 (1-β_{1,t}))
    R  Σ β_{1,t} w_t² / (2 α_{1,t} (1-β_{1,t}))
    S  Σ α_{2,t}² ‖s_t^{1/4} b_t v_t‖² / (2 α_{1,t} (1-β_{1,t}))
    U  Σ α_{2,t} (w_t + ‖α_{1,t} s_t^{-1/4} m_t‖) ‖s_t^{1/4} b_t v_t‖ / (α_{1,t} (1-β_{1,t}))

and then each sum by a term that knows only constants. ``b_t`` stands where the paper writes δ_t,
and both m_t and m_{t-1} in Q, which the paper merges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from hvadam.core.hyperparams import Hyperparams
from hvadam_bench.studies.theory.result import Array, checkpoints, curve, power
from hvadam_bench.studies.theory.update import Runs, step

DIMENSION, SEEDS, BOX = 10, 5, (-1.0, 1.0)
HYPER = Hyperparams(lr=1.0, betas=(0.9, 0.99), eps=1e-8, gamma=0.5, bounds=BOX)
ALPHA1, ALPHA2 = HYPER.lr, HYPER.lr * HYPER.hidden_scale
LAMBDA = 0.9
# The decay of β1, and whether s takes the maximum that the theorem needs.
VARIANTS = {"theorem": (1.0, True), "corollary": (LAMBDA, True), "no maximum": (1.0, False)}
SPIKE, PERIOD = 500.0, 301


def study(rounds: int, advance: Callable[[float], None]) -> dict[str, Any]:
    """Play every family, and return its regret versus the bound and every sum of the proof."""
    streams = [draw(rounds) for draw in STREAMS]
    times = checkpoints(rounds)
    seen = play(streams, times, advance)
    best = np.stack([[stream.best(t)[1] for stream in streams] for t in times.tolist()])
    regret = seen.pop("loss") - best[:, :, None]
    families = [
        {
            "name": stream.name,
            "about": stream.about,
            "steepest": stream.steepest,
            "variants": [
                describe(
                    stream, name, times, regret[:, i, j], {k: seen[k][..., i, j, :] for k in seen}
                )
                for j, name in enumerate(VARIANTS)
            ],
        }
        for i, stream in enumerate(streams)
    ]
    forgetful = [stream.name for stream in streams].index("spikes")
    adam = play_adam(streams[forgetful], times) - best[:, forgetful]
    return {
        "rounds": rounds,
        "seeds": SEEDS,
        "dimension": DIMENSION,
        "box": BOX,
        "alpha1": ALPHA1,
        "alpha2": ALPHA2,
        "beta1": HYPER.betas[0],
        "beta2": HYPER.betas[1],
        "eps": HYPER.eps,
        "gamma": HYPER.gamma,
        "beta1_decay": LAMBDA,
        "steps": times,
        "families": families,
        "adam_on_spikes": curve(times, adam.T, power),
    }


def play(
    streams: Sequence[Stream], times: Array, advance: Callable[[float], None]
) -> dict[str, Array]:
    """Play all rounds of all families, each from the middle of the box.

    Returns:
        At every checkpoint (checkpoints, families, variants, seeds) the "loss" of the player in
        total, the "root" Σ_i s_{t,i}^{1/2} and the "gain", the largest b_t so far; over all rounds
        the "floor", the smallest s_{1,i}, "root_max" and "hidden_max", the largest s_{t,i}^{1/2}
        and |v_{t,i}|, and the "sums" P, Q, R, S, U (sums, families, variants, seeds).
    """
    shape = (len(streams), len(VARIANTS), SEEDS)
    runs = Runs(np.zeros((*shape, DIMENSION)))
    star = np.stack([stream.best(int(times[-1]))[0] for stream in streams])[:, None]
    decay, monotone = (np.array(x)[:, None, None] for x in zip(*VARIANTS.values(), strict=True))
    g = np.empty_like(runs.theta)
    loss, gain, floor, root_max, hidden_max = (np.zeros(shape) for _ in range(5))
    sums = np.zeros((5, *shape))
    kept: dict[int, tuple[Array, ...]] = dict.fromkeys(times.tolist(), ())
    for t in range(1, int(times[-1]) + 1):
        for i, stream in enumerate(streams):
            here, g[i] = stream.play(t - 1, runs.theta[i])
            loss[i] += here
        offset, m, factor = runs.theta - star, runs.m, decay ** (t - 1)
        rates = {"adaptive_decay": t**-0.5, "hidden_decay": 1 / t, "beta1_decay": factor}
        step(runs, g, HYPER, **rates, monotone=monotone)
        sums += _sums(runs, offset, m, star, t, HYPER.betas[0] * factor[..., 0])
        gain = np.maximum(gain, runs.gain)
        root_max = np.maximum(root_max, runs.root.max(-1))
        hidden_max = np.maximum(hidden_max, abs(runs.v).max(-1))
        if t == 1:
            floor = (runs.root**2).min(-1)
        if t in kept:
            kept[t] = (loss.copy(), runs.root.sum(-1), gain)
        if t % 1000 == 0:
            advance(1000 / int(times[-1]))
    series = map(np.stack, zip(*kept.values(), strict=True))
    ends = {"floor": floor, "root_max": root_max, "hidden_max": hidden_max, "sums": sums}
    return dict(zip(("loss", "root", "gain"), series, strict=True)) | ends


def play_adam(stream: Stream, times: Array) -> Array:
    """Play Adam under the same rates, without bias correction; total loss (checkpoints, seeds)."""
    beta1, beta2 = HYPER.betas
    theta, m, s = (np.zeros((SEEDS, DIMENSION)) for _ in range(3))
    losses: list[Array] = []
    for t in range(1, int(times[-1]) + 1):
        loss, g = stream.play(t - 1, theta)
        losses.append(loss)
        m, s = beta1 * m + (1 - beta1) * g, beta2 * s + (1 - beta2) * g * g
        theta = np.clip(theta - ALPHA1 * t**-0.5 * m / (np.sqrt(s) + HYPER.eps), *BOX)
    return np.cumsum(losses, axis=0)[times - 1]


def _sums(runs: Runs, offset: Array, m_before: Array, star: Array, t: int, beta1: Array) -> Array:
    """Return what round t adds to P, Q, R, S and U; ``offset`` is θ_t - θ*."""
    alpha1, alpha2 = ALPHA1 / math.sqrt(t), ALPHA2 / t

    def square(x: Array, weight: Array) -> Array:
        return np.einsum("...i,...i,...i", weight, x, x)

    near, after = square(offset, runs.root), square(runs.theta - star, runs.root)
    momentum, momentum_before = (square(x, 1 / runs.root) for x in (runs.m, m_before))
    hidden = runs.gain**2 * square(runs.v, runs.root)
    product = (np.sqrt(near) + alpha1 * np.sqrt(momentum)) * np.sqrt(hidden)
    return np.stack(
        [
            (near - after) / (2 * alpha1),
            alpha1 / 2 * (momentum + beta1 * momentum_before),
            beta1 * near / (2 * alpha1),
            alpha2**2 * hidden / (2 * alpha1),
            alpha2 * product / alpha1,
        ]
    ) / (1 - beta1)


def bound(
    t: Array, seen: dict[str, Any], steepest: float, decay: float, *, corrected: bool
) -> dict[str, Array]:
    """Return the terms of the bound after t rounds, as printed or with what its proof needs.

    A projection bounds ‖v‖₂ by ‖m‖₂, hence |v_i| only by √d·G/2, and |g_i - v_i| by κ·G with
    κ = (1+√d)/2. So corrected s^{1/2} <= κ·G/√γ, and by what the ε of every step adds.

    Args:
        t: T.
        seen: As `play` has it: "root", c_r as "gain" and c as "floor".
        steepest: The bound on gradients, G/2.
        decay: λ of the corollary; 1 is the theorem.
        corrected: Whether the bound is corrected.
    """
    d, width, g = DIMENSION, BOX[1] - BOX[0], 2 * steepest
    ceiling = g / math.sqrt(HYPER.gamma)  # of s^{1/2}
    if corrected:
        kappa = (1 + math.sqrt(d)) / 2
        ceiling = math.sqrt((kappa * ceiling) ** 2 + HYPER.eps / (1 - HYPER.betas[1])) + HYPER.eps
    roots, logs, hidden = np.sqrt(t), 1 + np.log(t), ALPHA2 * seen["gain"]
    rest = 1 / (1 - HYPER.betas[0])
    beta1 = weighted_beta1(t, HYPER.betas[0], decay)
    return {
        "P": width**2 * roots * rest / (2 * ALPHA1) * seen["root"],
        "Q": d * g**2 * ALPHA1 * roots * rest / 2 / np.sqrt(seen["floor"]),
        "R": d * width**2 * ceiling * rest / (2 * ALPHA1) * beta1,
        "S": 3 * hidden**2 * d * g**2 * ceiling * rest / (8 * ALPHA1),
        "U1": hidden * d * g * ceiling * width * roots * rest / ALPHA1,
        "U2": hidden * d * g**2 * logs * rest / 4 * np.sqrt(ceiling) / seen["floor"] ** 0.25,
    }


def weighted_beta1(rounds: Array, beta1: float, decay: float) -> Array:
    """Return Σ √t·β_{1,t} for a constant β1, and the corollary's β1/(1-λ)² for λ < 1."""
    if decay < 1:
        return np.broadcast_to(beta1 / (1 - decay) ** 2, rounds.shape)
    return beta1 * np.cumsum(np.sqrt(np.arange(1, np.max(rounds) + 1)))[rounds - 1]


def describe(
    stream: Stream, name: str, times: Array, regret: Array, seen: dict[str, Array]
) -> dict[str, Any]:
    """Set regret (checkpoints, seeds) against the sums of the proof, and these against their terms.

    Seeds differ in c, c_r and s_T: of terms and bounds their mean is reported.
    """
    shown = curve(times, regret.T, power)
    if shown is None:
        return {"name": name, "curve": None, "constants": None, "proof": None}
    decay, monotone = VARIANTS[name]

    def against(corrected: bool) -> dict[str, Any]:
        terms = bound(times[:, None], seen, stream.steepest, decay, corrected=corrected)
        spread = {term: np.broadcast_to(x, regret.shape) for term, x in terms.items()}
        total = np.sum(list(spread.values()), axis=0)
        return {
            "terms": {term: x[-1].mean() for term, x in spread.items()},
            "total": total.mean(1),
            "holds": bool((regret <= total).all()),
        }

    constants = {
        "trivial": DIMENSION * stream.steepest * (BOX[1] - BOX[0]) * times[-1],
        "gain_max": seen["gain"].max(),
        "floor": seen["floor"].min(),
        "root_max": seen["root_max"].max(),
        "root_max_printed": 2 * stream.steepest / math.sqrt(HYPER.gamma),
        "hidden_max": seen["hidden_max"].max(),
        "hidden_max_printed": stream.steepest,
    }
    proof = monotone and {  # the theorem says nothing of those without the maximum
        "sums": dict(zip("PQRSU", seen["sums"].mean(1), strict=True)),
        "within_sums": bool((regret[-1] <= seen["sums"].sum(0)).all()),
        "printed": against(corrected=False),
        "corrected": against(corrected=True),
    }
    return {"name": name, "curve": shown, "constants": constants, "proof": proof or None}


class Linear:
    """Losses <g_t, θ> of gradients (rounds, seeds, d): a corner is best, -sign of their sum."""

    def __init__(self, name: str, about: str, steepest: float, gradients: Array) -> None:
        self.name, self.about, self.steepest = name, f"linear losses{about}", steepest
        self.gradients = gradients

    def play(self, t: int, theta: Array) -> tuple[Array, Array]:
        """Return loss and gradient of round t."""
        g = self.gradients[t]
        return np.einsum("...i,...i", theta, g), np.broadcast_to(g, theta.shape)

    def best(self, rounds: int) -> tuple[Array, Array]:
        """Return the best points and their losses."""
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


class Logistic:
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
        """Return loss and gradient of round t."""
        margin = np.einsum("...i,...i", theta, self.rows[t])
        return np.logaddexp(0, -margin), -expit(-margin)[..., None] * self.rows[t]

    def best(self, rounds: int) -> tuple[Array, Array]:
        """Return the best points and their losses."""
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


class Valley:
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
        """Return loss and gradient of round t."""
        x, y = theta[..., 0::2], theta[..., 1::2]
        across, along = x - y - self.across[t], x + y - self.along[t]
        loss = (4 * abs(across) + abs(along)).sum(-1)
        across, along = 4 * np.sign(across), np.sign(along)
        return loss, np.stack([along + across, along - across], axis=-1).reshape(theta.shape)

    def best(self, rounds: int) -> tuple[Array, Array]:
        """Return the best points and their losses."""
        across, along = self.across[:rounds], self.along[:rounds]
        difference, total = np.median(across, axis=0), np.median(along, axis=0)
        loss = (4 * abs(across - difference) + abs(along - total)).sum((0, 2))
        pairs = np.stack([(total + difference) / 2, (total - difference) / 2], axis=-1)
        best = pairs.reshape(-1, DIMENSION)
        assert (abs(best) <= 1).all(), "a median outside of the box is not the best point in it"
        return best, loss


Stream = Linear | Logistic | Valley
STREAMS: tuple[Callable[[int], Stream], ...] = (signs, Logistic, Valley, spikes)
