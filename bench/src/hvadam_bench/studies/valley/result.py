"""What was found in valleys: the content of ``results/valley.json`` and ``condition.json``.

Below their classes: how the losses of many runs become the shares, medians and verdicts in them.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from hvadam_bench.analysis import effects
from hvadam_bench.contenders import OURS
from hvadam_bench.studies.valley.functions import Array, Problem

if TYPE_CHECKING:
    from hvadam_bench.studies.valley.race import Outcome

PAPER_FOUR = ("sgd_ema", "adam", "adabelief", OURS)
OTHERS = PAPER_FOUR[:-1]

# With which learning rate a contender runs: the paper's for all, or the one chosen for it.
Regime = Literal["common", "tuned"]
REGIMES: Mapping[Regime, str] = {"common": "common rate", "tuned": "own best rate"}
# What is compared on each start: the loss after the budget, the loss after the horizon, the first
# step at the target. The smaller wins, and infinite never does.
Criterion = Literal["lowest", "late", "first"]
CRITERIA: tuple[Criterion, ...] = ("lowest", "late", "first")
# The criteria that the paper claims HVAdam to be best by.
CLAIMED: tuple[Criterion, ...] = ("lowest", "first")
TIE, NOBODY = "=", "-"

# A duel's scale: each start counts as 100 points for its winner, and 55 starts to 45 matter.
SCALE = effects.Scale("points", 10.0)

_SAME = 1e-9  # relative: closer than this is rounding
_CONVERGED = 1e-12  # losses below it are equal
# Steps of Fromage are as long as a share of the distance from the origin, so where that is the
# minimum it is told the answer. It runs, but is left out of who wins among all.
_KNOWS_THE_ORIGIN = "fromage"

Values = Mapping[str, Array]  # contender -> a value per start
Shares = Mapping[str, float]  # contender -> share of the starts
Table = Mapping[str, Any]  # one object of the JSON file, as its owner describes it


class Verdict(NamedTuple):
    """How HVAdam stands versus all its rivals: ahead of each, behind one, or between.

    Attributes:
        word: "ahead" of each of them; "behind" at least one; "equal" to those it is not ahead of;
            or "undecided".
        duels: Rival -> share of starts that HVAdam wins, and the verdict on that.
    """

    word: effects.Verdict
    duels: Mapping[str, tuple[float, effects.Verdict]]


@dataclass(frozen=True)
class FunctionResult:
    """All that is reported of one function; ``key`` says how regime and criterion are written.

    Attributes:
        angle: In degrees.
        dimension: Of the plane or space.
        starts: How many runs each contender made.
        contenders: Contender -> ``tuning`` (learning rate -> median loss on the starts to choose
            by), and for each regime ``lr``; ``loss`` and ``late``, the quartiles after the budget
            and after the horizon, None where so many diverged; ``steps``, the median first step at
            the target, if any; and from how many starts runs ``reached`` it and ``diverged``.
        racers: The paper's four.
        wins: Regime and criterion -> who wins among the racers, how often.
        wins_of_all: The shares among everyone, where more than the racers ran.
        duels: Regime and criterion -> contender -> rival -> share of starts that the first wins.
        map: Regime and criterion -> a letter per start, as ``winners`` gives.
    """

    angle: float
    dimension: int
    starts: int
    contenders: Mapping[str, Table]
    racers: tuple[str, ...]
    wins: Mapping[str, Shares]
    wins_of_all: Mapping[str, Shares]
    duels: Mapping[str, Mapping[str, Shares]]
    map: Mapping[str, str]

    def verdict(self, regime: Regime, criterion: Criterion) -> Verdict:
        """Judge HVAdam versus each of the paper's others by a criterion."""
        met = self.duels[key(regime, criterion)][OURS]
        return judge_duels(tuple((name, met[name]) for name in OTHERS), self.starts)

    def ahead_of_ours(self, regime: Regime) -> list[tuple[str, float]]:
        """Return who ends lower than HVAdam from more than half of the starts, most often first."""
        duels = self.duels[key(regime, "lowest")][OURS]
        ahead = sorted((share, name) for name, share in duels.items() if share < 0.5)
        return [(name, 1 - share) for share, name in ahead]


@dataclass(frozen=True)
class Comparison:
    """The race on the paper's functions.

    ``angle`` says what happens as f2 turns: dimension -> contender -> regime -> angle by angle the
    ``angle``, the ``lr`` (tuned at each), the quartiles of the ``loss`` and how many ``diverged``.
    """

    versions: Mapping[str, str]  # what it was made with
    steps: int  # the budget
    horizon: int  # how long a run may take to reach the target
    target: float  # the loss at which a run has converged
    last: int  # steps over which the loss at the end is averaged
    common_lr: float  # the paper's, for all
    grid: tuple[int, int]  # cells across and along the valley; one start is drawn in each
    sample: int  # starts of the angle study
    tuning_starts: int  # on which learning rates are chosen
    functions: Mapping[str, FunctionResult]
    angle: Mapping[str, Mapping[str, Mapping[Regime, Any]]]

    def functions_by_verdict(
        self, regime: Regime, criterion: Criterion
    ) -> dict[effects.Verdict, tuple[str, ...]]:
        """Sort the functions by the verdict on HVAdam, the best one first."""
        said = {name: one.verdict(regime, criterion).word for name, one in self.functions.items()}
        return {
            word: tuple(name for name in said if said[name] == word)
            for word in get_args(effects.Verdict)
            if word in said.values()
        }


@dataclass(frozen=True)
class Conditioning:
    """The race down quadratics of growing condition numbers.

    ``growth`` is dimension -> racer -> ``points``, which have for each ``condition`` number the
    median ``steps`` at the best ``rate``, None if most did not converge; and ``exponent``, the p of
    steps ~ conditionᵖ, None if fewer than three converged. ``noise`` is racer -> for each ``noise``
    in lengths of the gradient, the median share of the loss ``left`` at the best ``rate``.
    """

    versions: Mapping[str, str]  # what it was made with
    seeds: int  # valleys of a kind
    arrived: float  # the share of the start's loss at which a run has converged
    most: int  # steps of a run
    growth: Mapping[str, Mapping[str, Table]]
    noise: Mapping[str, Any]
    noisy_condition: float
    noisy_dimension: int
    noisy_steps: int


def key(regime: Regime, criterion: Criterion) -> str:
    """Return where the tables of a function keep a regime and a criterion."""
    return f"{regime} {criterion}"


@lru_cache  # pages and claims ask for the same ones
def judge_duels(shares: tuple[tuple[str, float], ...], starts: int) -> Verdict:
    """Judge HVAdam versus rivals by the shares of so many starts that it wins.

    A split start counts half for each.
    """
    found: dict[str, effects.Effect] = {}
    for name, share in shares:
        halves = round(2 * share * starts)
        points = [min(max(50.0 * (halves - 2 * at), 0.0), 100.0) for at in range(starts)]
        found[name] = effects.compare(points, [100 - x for x in points], SCALE)
    said: dict[str, effects.Verdict] = {
        name: one.verdict for name, one in effects.judge(found).items()
    }
    order: tuple[effects.Verdict, ...] = ("behind", "undecided", "equal", "ahead")
    word = min(said.values(), key=order.index)
    return Verdict(word, {name: (share, said[name]) for name, share in shares})


@dataclass(frozen=True)
class Heat:
    """How a contender fared on a problem at one angle."""

    angle: float
    tuning: Mapping[float, float]  # learning rate -> median loss, infinite if most diverged
    lrs: Mapping[Regime, float]
    outcomes: Mapping[Regime, Outcome]


def summarize(problem: Problem, heats: Mapping[str, Heat]) -> FunctionResult:
    """Return all that is reported of one problem."""
    values = {
        key(regime, criterion): {
            name: judge(heat.outcomes[regime], criterion) for name, heat in heats.items()
        }
        for regime in REGIMES
        for criterion in CRITERIA
    }
    told = () if problem.minimiser.any() else (_KNOWS_THE_ORIGIN,)
    fair = [name for name in heats if name not in told]
    four = {k: {name: own[name] for name in PAPER_FOUR} for k, own in values.items()}
    everyone = {k: {name: own[name] for name in fair} for k, own in values.items()}
    return FunctionResult(
        angle=problem.angles[0],
        dimension=problem.dimension,
        starts=len(heats[OURS].outcomes["common"].loss),
        contenders={
            name: {
                "tuning": {f"{lr:g}": _number(loss) for lr, loss in heat.tuning.items()},
                **_by_regime(heat),
            }
            for name, heat in heats.items()
        },
        racers=PAPER_FOUR,
        wins={k: shares(own) for k, own in four.items()},
        wins_of_all={k: shares(own) for k, own in everyone.items()} if len(heats) > 4 else {},
        duels={k: _duels(own) for k, own in values.items()},
        map={k: winners(own) for k, own in four.items()},
    )


def judge(outcome: Outcome, criterion: Criterion) -> Array:
    """Return the value of each start under a criterion; the smaller wins."""
    if criterion == "first":
        return np.where(outcome.reached < 0, math.inf, outcome.reached)
    loss = outcome.loss if criterion == "lowest" else outcome.late_loss
    return np.maximum(loss, _CONVERGED)


def shares(racers: Values) -> Shares:
    """Return the share of starts that each wins; a tie is split among those who tie."""
    best = _best(racers)
    split = best / np.maximum(best.sum(0), 1)
    return {name: round(float(row.mean()), 4) for name, row in zip(racers, split, strict=True)}


def winners(racers: Values) -> str:
    """Return a letter per start: a for the first racer and so on, = for a tie, - for nobody."""
    best = _best(racers)
    letters = np.array(list(string.ascii_lowercase))[best.argmax(0)]
    count = best.sum(0)
    return "".join(np.where(count == 1, letters, np.where(count == 0, NOBODY, TIE)))


def turn(heats: Sequence[Heat]) -> dict[Regime, list[dict[str, Any]]]:
    """Return what a contender reached at each angle."""
    kept = ("lr", "loss", "diverged")
    found = [(heat.angle, _by_regime(heat)) for heat in heats]
    return {
        regime: [{"angle": angle, **{k: own[regime][k] for k in kept}} for angle, own in found]
        for regime in REGIMES
    }


def _duels(values: Values) -> dict[str, Shares]:
    """Let the paper's four meet each other, and HVAdam everyone."""
    return {
        a: {b: _duel(values[a], values[b]) for b in (values if a == OURS else PAPER_FOUR) if b != a}
        for a in PAPER_FOUR
    }


def _duel(own: Array, other: Array) -> float:
    """Return the share of starts on which one beats another; ties and failures count half."""
    won = _best({"own": own, "other": other})
    return round(float(np.mean(0.5 + 0.5 * won[0] - 0.5 * won[1])), 4)


def _best(racers: Values) -> np.ndarray:
    """Return who is best, within rounding, as (racers, starts)."""
    values = np.stack(list(racers.values()))
    low = values.min(0)
    return np.isfinite(values) & (values <= low + _SAME * np.abs(low))


def _by_regime(heat: Heat) -> dict[Regime, dict[str, Any]]:
    return {
        regime: {
            "lr": heat.lrs[regime],
            "loss": _quartiles(outcome.loss),
            "late": _quartiles(outcome.late_loss),
            "steps": _quartiles(judge(outcome, "first"))[1],
            "reached": int((outcome.reached >= 0).sum()),
            "diverged": int((outcome.diverged >= 0).sum()),
        }
        for regime, outcome in heat.outcomes.items()
    }


def _quartiles(values: Array) -> list[float | None]:
    """Return the quartiles; None where most of that share diverged."""
    found = np.quantile(values, (0.25, 0.5, 0.75), method="inverted_cdf")
    return [_number(x) for x in found]


def _number(x: float) -> float | None:
    """Round to five digits; None for what is not finite."""
    return float(f"{x:.5g}") if math.isfinite(x) else None
