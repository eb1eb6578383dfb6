"""From runs to numbers: quartiles, who wins on how many starts, and a map of the winners."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import numpy as np

from hvadam_bench.studies.toy_functions.functions import Array
from hvadam_bench.studies.toy_functions.heats import HeatResult
from hvadam_bench.studies.toy_functions.race import Outcome
from hvadam_bench.studies.toy_functions.result import (
    CRITERIA,
    NOBODY,
    OURS,
    PAPER_FOUR,
    REGIMES,
    TIE,
    ContenderResult,
    Criterion,
    FunctionResult,
    Quartiles,
    RegimeResult,
    Shares,
    key,
)

_SAME = 1e-9  # relative: closer than this is rounding
_ARRIVED = 1e-12  # losses below it are equal
# Steps of Fromage are as long as a share of the distance from the origin, so where that is the
# minimum it is told the answer. It runs, but is left out of who wins among all.
_KNOWS_THE_ORIGIN = "fromage"

Values = dict[str, Array]  # contender -> a value per start


def summarize(results: Sequence[HeatResult]) -> FunctionResult:
    """Return all that is reported of one problem."""
    problem = results[0].problem
    names = [result.contender for result in results]
    four = [name for name in PAPER_FOUR if name in names]
    racers = four if len(four) == len(PAPER_FOUR) else names
    told = () if problem.minimiser.any() else (_KNOWS_THE_ORIGIN,)
    fair = [name for name in names if name not in told] if len(names) > len(racers) else []
    values = {
        key(regime, criterion): {
            result.contender: judge(result.outcomes[regime], criterion) for result in results
        }
        for regime in REGIMES
        for criterion in CRITERIA
    }
    return FunctionResult(
        angle=problem.angle,
        dimension=problem.dimension,
        starts=len(results[0].outcomes["common"].loss),
        contenders={result.contender: _contender(result) for result in results},
        racers=tuple(racers),
        wins={k: shares(_of(racers, own)) for k, own in values.items()},
        wins_of_all={k: shares(_of(fair, own)) for k, own in values.items()} if fair else {},
        duels={k: _duels(racers, own) for k, own in values.items()},
        map={k: winners(_of(racers, own)) for k, own in values.items()}
        if problem.dimension == 2
        else {},
    )


def judge(outcome: Outcome, criterion: Criterion) -> Array:
    """Return the value of each start under a criterion; the smaller wins."""
    if criterion == "first":
        return np.where(outcome.reached < 0, math.inf, outcome.reached)
    loss = outcome.loss if criterion == "lowest" else outcome.late_loss
    return np.maximum(loss, _ARRIVED)


def shares(racers: Values) -> Shares:
    """Return the share of starts that each wins; a tie is split among those who tie.

    Example:
        >>> shares({"a": np.array([1.0, 2.0]), "b": np.array([1.0, 3.0])})
        {'a': 0.75, 'b': 0.25}
    """
    best = _best(racers)
    split = best / np.maximum(best.sum(0), 1)
    return {name: round(float(row.mean()), 4) for name, row in zip(racers, split, strict=True)}


def winners(racers: Values) -> str:
    """Return a letter per start: a for the first racer and so on, = for a tie, - for nobody.

    Example:
        >>> winners({"x": np.array([1.0, 2.0, np.inf]), "y": np.array([1.0, 3.0, np.inf])})
        '=a-'
    """
    best = _best(racers)
    letters = np.array(list(string.ascii_lowercase))[best.argmax(0)]
    count = best.sum(0)
    return "".join(np.where(count == 1, letters, np.where(count == 0, NOBODY, TIE)))


def duel(own: Array, other: Array) -> float:
    """Return the share of starts on which one beats another; ties and failures count half."""
    won = _best({"own": own, "other": other})
    neither = ~won.any(0)
    return round(float(np.mean(won[0] - 0.5 * (won[0] & won[1]) + 0.5 * neither)), 4)


def quartiles(values: Array) -> Quartiles:
    """Return the quartiles; None where most of that share diverged."""
    found = np.quantile(values, (0.25, 0.5, 0.75), method="inverted_cdf")
    low, median, high = (number(x) for x in found)
    return low, median, high


def number(x: float) -> float | None:
    """Round to five digits; None for what is not finite."""
    return float(f"{x:.5g}") if math.isfinite(x) else None


def count_diverged(outcome: Outcome) -> int:
    """Return how many starts diverged."""
    return int((outcome.diverged >= 0).sum())


def _of(names: Sequence[str], values: Values) -> Values:
    return {name: values[name] for name in names}


def _duels(racers: Sequence[str], values: Values) -> dict[str, Shares]:
    """Let the racers meet each other, and HVAdam everyone."""
    return {
        a: {b: duel(values[a], values[b]) for b in (values if a == OURS else racers) if b != a}
        for a in racers
    }


def _best(racers: Values) -> np.ndarray:
    """Return who is best, within rounding, as (racers, starts)."""
    values = np.stack(list(racers.values()))
    low = values.min(0)
    return np.isfinite(values) & (values <= low + _SAME * np.abs(low))


def _contender(result: HeatResult) -> ContenderResult:
    return ContenderResult(
        tuning={f"{lr:g}": number(loss) for lr, loss in result.tuning.items()},
        common=_regime(result.lrs["common"], result.outcomes["common"]),
        tuned=_regime(result.lrs["tuned"], result.outcomes["tuned"]),
    )


def _regime(lr: float, outcome: Outcome) -> RegimeResult:
    return RegimeResult(
        lr=lr,
        loss=quartiles(outcome.loss),
        late=quartiles(outcome.late_loss),
        steps=quartiles(judge(outcome, "first"))[1],
        reached=int((outcome.reached >= 0).sum()),
        diverged=count_diverged(outcome),
    )
