"""What was found in valleys: the content of ``results/valley.json`` and ``condition.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from hvadam_bench.analysis import effects
from hvadam_bench.contenders import OURS

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

Quartiles = tuple[float | None, float | None, float | None]  # None: so many diverged
Shares = Mapping[str, float]  # contender -> share of the starts


@dataclass(frozen=True)
class RegimeResult:
    """How a contender fared with one learning rate."""

    lr: float
    loss: Quartiles  # after the budget
    late: Quartiles  # after the horizon
    steps: float | None  # the median first step at the target
    reached: int  # starts from which the target was reached
    diverged: int


@dataclass(frozen=True)
class ContenderResult:
    """How a contender fared on a function."""

    tuning: Mapping[str, float | None]  # learning rate -> median loss on the starts to choose by
    common: RegimeResult
    tuned: RegimeResult


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
        contenders: Everyone who ran.
        racers: The paper's four.
        wins: Regime and criterion -> who wins among the racers, how often.
        wins_of_all: The shares among everyone, where more than the racers ran.
        duels: Regime and criterion -> contender -> rival -> share of starts that the first wins.
        map: Regime and criterion -> a letter per start, as ``measure.winners`` gives.
    """

    angle: float
    dimension: int
    starts: int
    contenders: Mapping[str, ContenderResult]
    racers: tuple[str, ...]
    wins: Mapping[str, Shares]
    wins_of_all: Mapping[str, Shares]
    duels: Mapping[str, Mapping[str, Shares]]
    map: Mapping[str, str]

    def verdict(self, regime: Regime, criterion: Criterion) -> Verdict:
        """Judge HVAdam versus each of the paper's others by a criterion."""
        met = self.duels[key(regime, criterion)][OURS]
        return judge_duels({name: met[name] for name in OTHERS}, self.starts)

    def ahead_of_ours(self, regime: Regime) -> tuple[tuple[str, float], ...]:
        """Return who ends lower than HVAdam from more than half of the starts, most often first."""
        duels = self.duels[key(regime, "lowest")][OURS]
        ahead = sorted((share, name) for name, share in duels.items() if share < 0.5)
        return tuple((name, 1 - share) for share, name in ahead)


@dataclass(frozen=True)
class AngleResult:
    """How a contender fared on f2 at one angle, with one learning rate."""

    angle: float
    lr: float
    loss: Quartiles
    diverged: int


@dataclass(frozen=True)
class TurnResult:
    """How a contender fared as the valley of f2 turned, angle by angle."""

    common: tuple[AngleResult, ...]
    tuned: tuple[AngleResult, ...]  # with the best rate at each angle


Turn = Mapping[str, TurnResult]  # by contender


@dataclass(frozen=True)
class Comparison:
    """The race on the paper's functions.

    Attributes:
        versions: What it was made with.
        steps: The budget.
        horizon: How long a run may take to reach the target.
        target: The loss at which a run has converged.
        last: Steps over which the loss at the end is averaged.
        common_lr: The paper's learning rate for all.
        grid: Cells across and along the valley; one start is drawn in each.
        sample: Starts of the angle study.
        tuning_starts: Starts on which learning rates are chosen.
        functions: By name.
        angle: The angle study, by dimension.
    """

    versions: Mapping[str, str]
    steps: int
    horizon: int
    target: float
    last: int
    common_lr: float
    grid: tuple[int, int]
    sample: int
    tuning_starts: int
    functions: Mapping[str, FunctionResult]
    angle: Mapping[str, Turn]

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
class Point:
    """The fewest steps to the end of valleys of one condition number.

    Attributes:
        condition: The largest eigenvalue over the smallest.
        steps: At the best rate, the median over the valleys; None if most did not converge.
        rate: The best one; None if no rate converged.
    """

    condition: float
    steps: int | None
    rate: float | None


@dataclass(frozen=True)
class Growth:
    """How one racer's cost grows in one dimension."""

    points: tuple[Point, ...]  # by condition number
    exponent: (
        float | None
    )  # p of steps ~ conditionᵖ, fitted to what converged; None if fewer than 3


@dataclass(frozen=True)
class Response:
    """The loss that is left after so many steps with noise on the gradients."""

    noise: float  # in lengths of the gradient
    left: float  # as a share of the loss at the start, the median over the valleys
    rate: float  # the best one


@dataclass(frozen=True)
class Conditioning:
    """The race down quadratics of growing condition numbers."""

    versions: Mapping[str, str]
    seeds: int
    arrived: float
    most: int
    growth: Mapping[str, Mapping[str, Growth]]  # dimension -> racer
    noise: Mapping[str, tuple[Response, ...]]  # racer
    noisy_condition: float
    noisy_dimension: int
    noisy_steps: int


def key(regime: Regime, criterion: Criterion) -> str:
    """Return where the tables of a function keep a regime and a criterion."""
    return f"{regime} {criterion}"


def judge_duels(shares: Shares, starts: int) -> Verdict:
    """Judge HVAdam versus rivals by the shares of so many starts that it wins.

    A split start counts half for each.

    Example:
        >>> judge_duels({"adam": 0.9, "sgd_ema": 0.5}, 400)
        Verdict(word='equal', duels={'adam': (0.9, 'ahead'), 'sgd_ema': (0.5, 'equal')})
    """
    return _judge_duels(tuple(shares.items()), starts)


@lru_cache  # pages and claims ask for the same ones
def _judge_duels(shares: tuple[tuple[str, float], ...], starts: int) -> Verdict:
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


def best_other(turn: Turn, regime: Regime, end: int) -> tuple[str, AngleResult]:
    """Return the best of the paper's others at an angle, by its median loss."""
    found = {name: getattr(turn[name], regime)[end] for name in OTHERS}
    return min(
        found.items(), key=lambda one: math.inf if one[1].loss[1] is None else one[1].loss[1]
    )
