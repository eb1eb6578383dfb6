"""Appendix C: regret in online convex problems, versus every term of its bound.

The update is `update.step` with α1/√t, α2/t and AMSGrad's maximum. All families and
variants are stepped together: arrays are (families, variants, seeds, d).

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
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hvadam.core.hyperparams import Hyperparams
from hvadam_bench.studies.theory.fits import Array, checkpoints, power
from hvadam_bench.studies.theory.streams import BOX, DIMENSION, STREAMS, Stream
from hvadam_bench.studies.theory.update import Runs, step

SEEDS = 5
HYPER = Hyperparams(lr=1.0, betas=(0.9, 0.99), eps=1e-8, gamma=0.5, bounds=BOX)
LAMBDA = 0.9
SUMS = ("P", "Q", "R", "S", "U")


# The decay of β1, and whether s takes the maximum that the theorem needs.
VARIANTS = {"theorem": (1.0, True), "corollary": (LAMBDA, True), "no maximum": (1.0, False)}


class Trace(NamedTuple):
    """What was seen of the runs; (checkpoints, families, variants, seeds) unless said otherwise."""

    times: Array  # (checkpoints)
    loss: Array  # of the player, in total
    root: Array  # Σ_i s_{T,i}^{1/2}
    gain: Array  # the largest b_t so far
    floor: Array  # the smallest s_{1,i} (families, variants, seeds)
    root_max: Array  # the largest s_{t,i}^{1/2}, likewise
    hidden_max: Array  # the largest |v_{t,i}|, likewise
    sums: Array  # P, Q, R, S, U after the last round (sums, families, variants, seeds)


def study(
    rounds: int, seeds: int = SEEDS, advance: Callable[[float], None] = lambda share: None
) -> dict[str, Any]:
    """Play every family, and return what `Regret` has."""
    streams = [stream(rounds, seeds) for stream in STREAMS]
    times = checkpoints(rounds)
    trace = play(streams, times, seeds, advance)
    best = np.stack([[stream.best(t)[1] for stream in streams] for t in times.tolist()])
    regret = trace.loss - best[:, :, None]
    forgetful = [stream.name for stream in streams].index("spikes")
    adam = play_adam(streams[forgetful], times, seeds) - best[:, forgetful]
    return {
        "rounds": rounds,
        "seeds": seeds,
        "dimension": DIMENSION,
        "box": BOX,
        "alpha1": HYPER.lr,
        "alpha2": HYPER.lr * HYPER.hidden_scale,
        "beta1": HYPER.betas[0],
        "beta2": HYPER.betas[1],
        "eps": HYPER.eps,
        "gamma": HYPER.gamma,
        "beta1_decay": LAMBDA,
        "steps": times,
        "families": [
            {
                "name": stream.name,
                "about": stream.about,
                "steepest": stream.steepest,
                "variants": [
                    describe(stream, name, regret[:, i, j], trace, (i, j))
                    for j, name in enumerate(VARIANTS)
                ],
            }
            for i, stream in enumerate(streams)
        ],
        "adam_on_spikes": _curve(times, adam),
    }


def play(
    streams: list[Stream],
    times: Array,
    seeds: int,
    advance: Callable[[float], None] = lambda share: None,
) -> Trace:
    """Play all rounds of all families, each from the middle of the box."""
    rounds = int(times[-1])
    shape = (len(streams), len(VARIANTS), seeds)
    runs = Runs(np.zeros((*shape, DIMENSION)))
    star = np.stack([stream.best(rounds)[0] for stream in streams])[:, None]
    decay, monotone = (np.array(x)[:, None, None] for x in zip(*VARIANTS.values(), strict=True))
    g = np.empty_like(runs.theta)
    loss, largest_gain, root_max, hidden_max = (np.zeros(shape) for _ in range(4))
    floor, sums = np.zeros(shape), np.zeros((len(SUMS), *shape))
    seen: list[tuple[Array, Array, Array]] = []
    wanted = set(times.tolist())
    for t in range(1, rounds + 1):
        for i, stream in enumerate(streams):
            here, g[i] = stream.play(t - 1, runs.theta[i])
            loss[i] += here
        theta, m = runs.theta, runs.m
        factor = decay ** (t - 1)
        step(
            runs,
            g,
            HYPER,
            adaptive_decay=t**-0.5,
            hidden_decay=1 / t,
            beta1_decay=factor,
            monotone=monotone,
        )
        sums += _sums(runs, theta - star, m, star, t, HYPER.betas[0] * factor[..., 0])
        largest_gain = np.maximum(largest_gain, runs.gain)
        root_max = np.maximum(root_max, runs.root.max(-1))
        hidden_max = np.maximum(hidden_max, abs(runs.v).max(-1))
        if t == 1:
            floor = (runs.root**2).min(-1)
        if t in wanted:
            seen.append((loss.copy(), runs.root.sum(-1), largest_gain))
        if t % 1000 == 0:
            advance(1000 / rounds)
    losses, roots, gains = (np.stack(x) for x in zip(*seen, strict=True))
    return Trace(times, losses, roots, gains, floor, root_max, hidden_max, sums)


def play_adam(stream: Stream, times: Array, seeds: int) -> Array:
    """Play Adam under the same rates, without bias correction; total loss (checkpoints, seeds)."""
    beta1, beta2 = HYPER.betas
    theta, m, s = (np.zeros((seeds, DIMENSION)) for _ in range(3))
    total = np.zeros(seeds)
    seen: list[Array] = []
    wanted = set(times.tolist())
    for t in range(1, int(times[-1]) + 1):
        loss, g = stream.play(t - 1, theta)
        total += loss
        m, s = beta1 * m + (1 - beta1) * g, beta2 * s + (1 - beta2) * g * g
        theta = np.clip(theta - HYPER.lr * t**-0.5 * m / (np.sqrt(s) + HYPER.eps), *BOX)
        if t in wanted:
            seen.append(total.copy())
    return np.stack(seen)


def _sums(runs: Runs, offset: Array, m_before: Array, star: Array, t: int, beta1: Array) -> Array:
    """Return what round t adds to P, Q, R, S and U; ``offset`` is θ_t - θ*."""
    alpha1, alpha2 = HYPER.lr / math.sqrt(t), HYPER.lr * HYPER.hidden_scale / t
    root = runs.root

    def square(x: Array, weight: Array) -> Array:
        return np.einsum("...i,...i,...i", weight, x, x)

    inverse = 1 / root
    near, after = square(offset, root), square(runs.theta - star, root)
    momentum, momentum_before = square(runs.m, inverse), square(m_before, inverse)
    hidden = runs.gain**2 * square(runs.v, root)
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
    rounds: Array | int,
    *,
    steepest: float,
    root: Array | float,
    gain: Array | float,
    floor: Array | float,
    decay: float,
    corrected: bool,
) -> dict[str, Array]:
    """Return the terms of the bound after ``rounds``, as printed or with what its proof needs.

    Args:
        rounds: T.
        steepest: The bound on gradients, G/2.
        root: Σ_i s_{T,i}^{1/2}.
        gain: c_r, the largest b_t.
        floor: c, under every s_{t,i}.
        decay: λ of the corollary; 1 is the theorem.
        corrected: A projection bounds ‖v‖₂ by ‖m‖₂, hence |v_i| only by √d·G/2, and |g_i - v_i| by
            κ·G with κ = (1+√d)/2. So s^{1/2} <= κ·G/√γ, and by what the ε of every step adds.

    Example:
        >>> terms = bound(100, steepest=1.0, root=1.0, gain=1.0, floor=1.0, decay=0.5,
        ...     corrected=False)
        >>> {name: round(float(value), 1) for name, value in terms.items()}  # d = 10, D = 2
        {'P': 200.0, 'Q': 2000.0, 'R': 2036.5, 'S': 424.3, 'U1': 11313.7, 'U2': 942.7}
    """
    d, width, g = DIMENSION, BOX[1] - BOX[0], 2 * steepest
    alpha1, beta1, gamma = HYPER.lr, HYPER.betas[0], HYPER.gamma
    alpha2 = alpha1 * HYPER.hidden_scale
    ceiling = g / math.sqrt(gamma)  # of s^{1/2}
    if corrected:
        kappa = (1 + math.sqrt(d)) / 2
        ceiling = math.sqrt((kappa * ceiling) ** 2 + HYPER.eps / (1 - HYPER.betas[1])) + HYPER.eps
    t, roots, logs = np.asarray(rounds), np.sqrt(rounds), 1 + np.log(rounds)
    rest = 1 / (1 - beta1)
    return {
        "P": width**2 * roots * rest / (2 * alpha1) * root,
        "Q": d * g**2 * alpha1 * roots * rest / 2 / np.sqrt(floor),
        "R": d * width**2 * ceiling * rest / (2 * alpha1) * weighted_beta1(t, beta1, decay),
        "S": 3 * (alpha2 * gain) ** 2 * d * g**2 * ceiling * rest / (8 * alpha1),
        "U1": alpha2 * gain * d * g * ceiling * width * roots * rest / alpha1,
        "U2": alpha2 * gain * d * g**2 * logs * rest / 4 * np.sqrt(ceiling) / floor**0.25,
    }


def weighted_beta1(rounds: Array, beta1: float, decay: float) -> Array:
    """Return Σ √t·β_{1,t} for a constant β1, and the corollary's β1/(1-λ)² for λ < 1."""
    if decay < 1:
        return np.broadcast_to(beta1 / (1 - decay) ** 2, rounds.shape)
    return beta1 * np.cumsum(np.sqrt(np.arange(1, np.max(rounds) + 1)))[rounds - 1]


def describe(
    stream: Stream, name: str, regret: Array, trace: Trace, place: tuple[int, int]
) -> dict[str, Any]:
    """Describe the regret (checkpoints, seeds) of one family and variant versus its bound."""
    curve = _curve(trace.times, regret)
    if curve is None:
        return {"name": name, "curve": None, "constants": None, "proof": None}
    constants = {
        "trivial": DIMENSION * stream.steepest * (BOX[1] - BOX[0]) * trace.times[-1],
        "gain_max": trace.gain[:, *place].max(),
        "floor": trace.floor[place].min(),
        "root_max": trace.root_max[place].max(),
        "root_max_printed": 2 * stream.steepest / math.sqrt(HYPER.gamma),
        "hidden_max": trace.hidden_max[place].max(),
        "hidden_max_printed": stream.steepest,
    }
    decay, monotone = VARIANTS[name]
    # The theorem says nothing of those without the maximum.
    proof = _proof(stream, decay, regret, trace, place) if monotone else None
    return {"name": name, "curve": curve, "constants": constants, "proof": proof}


def _proof(
    stream: Stream, decay: float, regret: Array, trace: Trace, place: tuple[int, int]
) -> dict[str, Any]:
    """Set the regret against the sums of the proof, and these against the terms of the bound."""
    sums = trace.sums[:, *place]

    def against(corrected: bool) -> dict[str, Any]:
        terms = bound(
            trace.times[:, None],
            steepest=stream.steepest,
            root=trace.root[:, *place],
            gain=trace.gain[:, *place],
            floor=trace.floor[place],
            decay=decay,
            corrected=corrected,
        )
        spread = {name: np.broadcast_to(x, regret.shape) for name, x in terms.items()}
        total = np.sum(list(spread.values()), axis=0)
        return {
            # Seeds differ in c, c_r and s_T: what is reported is their mean.
            "terms": {name: x[-1].mean() for name, x in spread.items()},
            "total": total.mean(1),
            "holds": bool((regret <= total).all()),
        }

    return {
        "sums": dict(zip(SUMS, sums.mean(1), strict=True)),
        "within_sums": bool((regret[-1] <= sums.sum(0)).all()),
        "printed": against(corrected=False),
        "corrected": against(corrected=True),
    }


def _curve(times: Array, regret: Array) -> dict[str, Any] | None:
    """Return regret (checkpoints, seeds) over the seeds, and its exponent in the last decade."""
    if not np.isfinite(regret).all():
        return None
    mean = regret.mean(1)
    slope = power(times, mean, times >= times[-1] / 10)
    return {"mean": mean, "low": regret.min(1), "high": regret.max(1), "slope": slope}
