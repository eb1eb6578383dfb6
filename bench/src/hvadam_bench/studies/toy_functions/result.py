"""What the race on the toy functions found: the content of ``results/valley.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from hvadam_bench.analysis import effects
from hvadam_bench.contenders import OURS
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results

PAPER_FOUR = ("sgd_ema", "adam", "adabelief", OURS)

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

# Of duels: each start counts as 100 points for who wins it, and 55 starts to 45 matter.
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

    def under(self, regime: Regime) -> RegimeResult:
        """Return the result with one learning rate."""
        return self.common if regime == "common" else self.tuned


class Verdict(NamedTuple):
    """How HVAdam stands beside all its rivals: ahead of each, behind one, or between.

    Attributes:
        word: "ahead" of each of them; "behind" at least one; "equal" to those it is not ahead of;
            else "undecided".
        duels: Rival -> share of starts that HVAdam wins, and the verdict on that.
    """

    word: effects.Verdict
    duels: Mapping[str, tuple[float, effects.Verdict]]


@dataclass(frozen=True)
class FunctionResult:
    """All that is reported of one function.

    Attributes:
        angle: In degrees.
        dimension: Of the plane or space.
        starts: How many runs each contender made.
        contenders: Everyone who ran.
        racers: The paper's four if all of them ran, else everyone.
        wins: Regime and criterion (as ``key`` gives) -> who wins among the racers, how often.
        wins_of_all: The shares among everyone, where more than the racers ran.
        duels: Regime and criterion -> contender -> rival -> share of starts that the first wins.
        map: Regime and criterion -> a letter per start, as ``summary.winners`` gives; in the plane.
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
        """Judge HVAdam, which must be a racer, beside each of the others by a criterion."""
        met = self.duels[key(regime, criterion)][OURS]
        return judge_duels({name: met[name] for name in self.racers if name != OURS}, self.starts)

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

    @property
    def median(self) -> float | None:
        """Return the median loss; None if most runs diverged."""
        return self.loss[1]


@dataclass(frozen=True)
class TurnResult:
    """How a contender fared as the valley of f2 turned, angle by angle."""

    common: tuple[AngleResult, ...]
    tuned: tuple[AngleResult, ...]

    def under(self, regime: Regime) -> tuple[AngleResult, ...]:
        """Return the results with the paper's learning rate, or with the best at each angle."""
        return self.common if regime == "common" else self.tuned


Turn = Mapping[str, TurnResult]  # by contender


class Beside(NamedTuple):
    """HVAdam's median loss at an angle, beside that of the best of the paper's others."""

    angle: float
    own: float | None
    rival: str
    rivals: float | None


@dataclass(frozen=True)
class Comparison:
    """The whole study.

    Attributes:
        versions: Of what it was made with.
        steps: The budget.
        horizon: How long a run may take to reach the target.
        target: The loss that counts as arrived.
        last: Steps over which the loss at the end is averaged.
        common_lr: The paper's learning rate for all.
        grid: Cells across and along the valley; one start is drawn in each.
        sample: Starts of the angle study.
        tuning_starts: Starts on which learning rates are chosen.
        functions: By label.
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
        """Sort the functions by the verdict on HVAdam, where it is a racer; best verdict first."""
        said = {
            label: function.verdict(regime, criterion).word
            for label, function in self.functions.items()
            if OURS in function.racers
        }
        found: dict[effects.Verdict, tuple[str, ...]] = {}
        for word in get_args(effects.Verdict):
            if labels := tuple(label for label in said if said[label] == word):
                found[word] = labels
        return found

    def save(self, path: Path) -> None:
        """Write the JSON form, one object a line."""
        plain = _results.to_json(self)
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text = text.replace('},"', '},\n"')
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> Comparison:
        """Read what ``save`` wrote."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))


def key(regime: Regime, criterion: Criterion) -> str:
    """Return where the tables of a function keep a regime and a criterion."""
    return f"{regime} {criterion}"


def judge_duels(shares: Shares, starts: int) -> Verdict:
    """Judge HVAdam beside rivals by the shares of so many starts that it wins.

    A split start counts half for each.

    Example:
        >>> judge_duels({"adam": 0.9, "sgd_ema": 0.5}, 400)
        Verdict(word='equal', duels={'adam': (0.9, 'ahead'), 'sgd_ema': (0.5, 'equal')})
    """
    found: dict[str, effects.Effect] = {}
    for name, share in shares.items():
        halves = round(2 * share * starts)
        points = [min(max(50.0 * (halves - 2 * at), 0.0), 100.0) for at in range(starts)]
        found[name] = effects.compare(points, [100 - x for x in points], SCALE)
    judged = effects.judge(found)
    said: dict[str, effects.Verdict] = {name: one.verdict for name, one in judged.items()}
    order: tuple[effects.Verdict, ...] = ("behind", "undecided", "equal", "ahead")
    word = min(said.values(), key=order.index)
    return Verdict(word, {name: (share, said[name]) for name, share in shares.items()})


def compare_ends(turn: Turn, regime: Regime) -> tuple[Beside, ...]:
    """Set HVAdam beside the best of the paper's others at the first and at the last angle.

    Returns:
        Nothing if HVAdam, or all of the others, did not run.
    """
    others = [name for name in PAPER_FOUR if name in turn and name != OURS]
    if OURS not in turn or not others:
        return ()

    def at(end: int) -> Beside:
        medians = {name: turn[name].under(regime)[end].median for name in others}
        losses = {name: math.inf if x is None else x for name, x in medians.items()}
        rival = min(losses, key=lambda name: losses[name])
        own = turn[OURS].under(regime)[end]
        return Beside(own.angle, own.median, rival, medians[rival])

    return at(0), at(-1)
