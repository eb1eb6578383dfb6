"""From runs to numbers: quartiles, who wins on how many starts, and a map of the winners."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam.bench.valley.functions import Array
from hvadam.bench.valley.race import PAPER_FOUR, Outcome
from hvadam.bench.valley.study import REGIMES, Result

# What is compared on each start; the smaller wins, and infinite never does.
CRITERIA = ("lowest", "late", "first")
TIE, NOBODY = "=", "-"
_SAME = 1e-9  # relative: closer than this is rounding
_ARRIVED = 1e-12  # losses below it are equal
# Steps of Fromage are as long as a share of the distance from the origin, so where that is the
# minimum it is told the answer. It runs, but is left out of who wins among all.
_KNOWS_THE_ORIGIN = "fromage"

Racers = dict[str, Array]  # contender -> a value per start


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """All that is reported of one problem, as JSON holds it."""
    by_name = {result.contender: result for result in results}
    problem = results[0].problem
    names = list(by_name)
    four = [name for name in PAPER_FOUR if name in by_name]
    main = four if len(four) == len(PAPER_FOUR) else names
    told = () if problem.minimiser.any() else (_KNOWS_THE_ORIGIN,)
    summary: dict[str, Any] = {
        "angle": problem.angle,
        "dimension": problem.dimension,
        "starts": len(results[0].outcomes["common"].loss),
        "contenders": {name: _contender(result) for name, result in by_name.items()},
        "racers": main,
        "wins": {},
        "wins_of_all": {},
        "duels": {},
        "map": {},
    }
    for regime in REGIMES:
        outcomes = {name: result.outcomes[regime] for name, result in by_name.items()}
        for criterion in CRITERIA:
            values = {name: judge(outcome, criterion) for name, outcome in outcomes.items()}
            racers = {name: values[name] for name in main}
            key = f"{regime} {criterion}"
            summary["wins"][key] = shares(racers)
            summary["duels"][key] = {
                a: {
                    b: duel(values[a], values[b])
                    for b in (names if a == "hvadam" else main)
                    if b != a
                }
                for a in main
            }
            if len(names) > len(main):
                fair = {name: values[name] for name in names if name not in told}
                summary["wins_of_all"][key] = shares(fair)
            if problem.dimension == 2:
                summary["map"][key] = winners(racers)
    return summary


def judge(outcome: Outcome, criterion: str) -> Array:
    """The value of each start under a criterion."""
    if criterion == "first":
        return np.where(outcome.reached < 0, math.inf, outcome.reached)
    loss = outcome.loss if criterion == "lowest" else outcome.late_loss
    return np.maximum(loss, _ARRIVED)


def shares(racers: Racers) -> dict[str, float]:
    """The share of starts that each wins; a tie is split among those who tie.

    Example:
        >>> shares({"a": np.array([1.0, 2.0]), "b": np.array([1.0, 3.0])})
        {'a': 0.75, 'b': 0.25}
    """
    best = _best(racers)
    split = best / np.maximum(best.sum(0), 1)
    return {name: round(float(row.mean()), 4) for name, row in zip(racers, split, strict=True)}


def winners(racers: Racers) -> str:
    """One letter per start: a for the first racer and so on, = for a tie, - for nobody.

    Example:
        >>> winners({"x": np.array([1.0, 2.0, np.inf]), "y": np.array([1.0, 3.0, np.inf])})
        '=a-'
    """
    best = _best(racers)
    letters = np.array(list(string.ascii_lowercase))[best.argmax(0)]
    count = best.sum(0)
    return "".join(np.where(count == 1, letters, np.where(count == 0, NOBODY, TIE)))


def duel(own: Array, other: Array) -> float:
    """The share of starts on which one beats another, ties and double failures counting half."""
    won = _best({"own": own, "other": other})
    neither = ~won.any(0)
    return round(float(np.mean(won[0] - 0.5 * (won[0] & won[1]) + 0.5 * neither)), 4)


def quartiles(values: Array) -> list[float | None]:
    """Quartiles as JSON holds them: None where most of that share diverged."""
    found = np.quantile(values, (0.25, 0.5, 0.75), method="inverted_cdf")
    return [number(x) for x in found]


def number(x: float) -> float | None:
    """Five digits; None for what is not finite."""
    return float(f"{x:.5g}") if math.isfinite(x) else None


def _best(racers: Racers) -> np.ndarray:
    """(racers, starts): who is best, within rounding."""
    values = np.stack(list(racers.values()))
    low = values.min(0)
    return np.isfinite(values) & (values <= low + _SAME * np.abs(low))


def _contender(result: Result) -> dict[str, Any]:
    rows: Mapping[str, Outcome] = result.outcomes
    return {
        "tuning": {f"{lr:g}": number(loss) for lr, loss in result.tuning.items()},
        **{
            regime: {
                "lr": result.lrs[regime],
                "loss": quartiles(outcome.loss),
                "late": quartiles(outcome.late_loss),
                "steps": quartiles(judge(outcome, "first"))[1],
                "reached": int((outcome.reached >= 0).sum()),
                "diverged": int((outcome.diverged >= 0).sum()),
            }
            for regime, outcome in rows.items()
        },
    }
