"""The race: every contender on every function, and on f2 as its valley turns.

A *heat* is one contender on one problem: its learning rate is chosen on starts of their own, then
it runs from the reported starts twice, with the paper's common rate and with the chosen one. Every
run is kept in a file, so that a race that was stopped goes on.
"""

from __future__ import annotations

import math
import platform
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from hvadam._version import __version__
from hvadam_bench import contenders
from hvadam_bench.contenders import OURS
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.valley.functions import ACROSS, ALONG, FIELDS, Array, Problem
from hvadam_bench.studies.valley.plan import Plan
from hvadam_bench.studies.valley.result import (
    CRITERIA,
    NOBODY,
    PAPER_FOUR,
    REGIMES,
    TIE,
    AngleResult,
    Comparison,
    ContenderResult,
    Criterion,
    FunctionResult,
    Quartiles,
    Regime,
    RegimeResult,
    Shares,
    TurnResult,
    key,
)

if TYPE_CHECKING:
    from hvadam_bench.studies.valley.race import Outcome

LATE = 3  # the horizon, in budgets
# The angles of f2's valley to the axes. The starts turn with it, so that only these change: a
# method that treats all directions alike draws a level line.
ANGLES = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0)

# Learning rates 1e-4, 3e-4, ..., 1e-1 for everyone, by their place in 1, 3, 10, 30, ... When the
# best is at an end the grid grows there, up to the limits, for everyone alike.
_GRID = range(-8, -1)
_LIMITS = range(-16, 9)
_SAME = 1e-9  # relative: closer than this is rounding
_CONVERGED = 1e-12  # losses below it are equal
# Steps of Fromage are as long as a share of the distance from the origin, so where that is the
# minimum it is told the answer. It runs, but is left out of who wins among all.
_KNOWS_THE_ORIGIN = "fromage"

Values = Mapping[str, Array]  # contender -> a value per start


def measure(plan: Plan, place: Place) -> dict[str, Any]:
    """Race, and draw the paths of each problem; or only draw them from the start that is given."""
    from hvadam_bench.studies.valley import condition, paths

    found: dict[str, Any] = {}
    if plan.problems and not plan.start:
        found["valley"] = compare(plan, place)
    for problem in plan.problems:
        path = paths.draw(problem, plan.contenders, plan.steps, place.out, plan.start)
        place.on_progress(f"drew {path}", 1 / len(plan.problems) if plan.start else 0.0)
    if plan.quadratics:
        found["condition"] = condition.measure(plan.quadratics, place.on_progress)
    return found


def compare(plan: Plan, place: Place) -> Comparison:
    """Run what is not kept yet, and return what all runs say."""
    import torch

    from hvadam_bench.studies.valley.race import COMMON_LR, LAST, TARGET

    folder = place.runs / "valley"
    turned = [Problem("f2", ANGLES, dimension) for dimension in plan.turned]
    kept = sum(1 for _ in folder.rglob("*.npz"))
    place.on_progress(f"resuming: {kept:,} runs are kept in {folder}" if kept else "", 0.0)
    share = 1 / len(plan.contenders) / (len(plan.problems) + len(turned))

    def race(problem: Problem, field: str) -> dict[str, list[Heat]]:
        heats: dict[str, list[Heat]] = {}
        for name in plan.contenders:
            place.on_progress(f"{name} on {problem.name}", 0.0)
            heats[name] = run_heat(problem, name, field, plan.steps, folder)
            place.on_progress("", share)
        return heats

    return Comparison(
        versions={
            "hvadam": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
        steps=plan.steps,
        horizon=LATE * plan.steps,
        target=TARGET,
        last=LAST,
        common_lr=COMMON_LR,
        grid=(ACROSS, ALONG),
        sample=FIELDS["sample"][0],
        tuning_starts=FIELDS["tuning"][0],
        functions={one.name: summarize(one, race(one, "grid")) for one in plan.problems},
        angle={
            str(one.dimension): {name: turn(own) for name, own in race(one, "sample").items()}
            for one in turned
        },
    )


@dataclass(frozen=True)
class Heat:
    """How a contender fared on a problem at one angle."""

    angle: float
    tuning: Mapping[float, float]  # learning rate -> median loss, infinite if most diverged
    lrs: Mapping[Regime, float]
    outcomes: Mapping[Regime, Outcome]


def run_heat(problem: Problem, contender: str, field: str, steps: int, folder: Path) -> list[Heat]:
    """Choose the learning rate at each angle, then run from the starts of a field."""
    from hvadam_bench.studies.valley.race import COMMON_LR, Outcome

    def run(lr: float, field: str, horizon: int) -> list[Outcome]:
        whole = run_or_read(folder, problem, contender, lr, field, steps, horizon)
        columns = [np.split(column, len(problem.angles)) for column in whole]
        return [Outcome(*part) for part in zip(*columns, strict=True)]

    tried: dict[int, list[float]] = {}
    best: list[int] = []
    wanted = set(_GRID)
    while wanted:
        for k in wanted:
            tried[k] = [float(np.median(part.loss)) for part in run(_rate(k), "tuning", steps)]
        places = range(len(problem.angles))
        best = [min(tried, key=lambda k: (tried[k][i], k)) for i in places]
        around = {k + side for k in best for side in (-1, 1)}
        wanted = {k for k in around if k not in tried and k in _LIMITS}
    heats: list[Heat] = []
    for i, (angle, chosen) in enumerate(zip(problem.angles, best, strict=True)):
        tuning = {_rate(k): tried[k][i] for k in sorted(tried)}
        lrs: dict[Regime, float] = {"common": COMMON_LR, "tuned": _rate(chosen)}
        outcomes: dict[Regime, Outcome] = {
            regime: run(lr, field, LATE * steps)[i] for regime, lr in lrs.items()
        }
        heats.append(Heat(angle, tuning, lrs, outcomes))
    return heats


def run_or_read(
    folder: Path,
    problem: Problem,
    contender: str,
    lr: float,
    field: str,
    steps: int,
    horizon: int,
) -> Outcome:
    """Run from all starts of a field, unless a file holds what came of a run just like it."""
    import torch

    from hvadam_bench.studies.valley import race

    starts = problem.starts(field)
    options = {**contenders.get(contender).defaults, **race.options_of(contender, steps)}
    made_with = (__version__, torch.__version__, contenders.source(contender))
    settings = repr((problem, options, made_with, lr, steps, horizon, race.LAST))
    digest = crc32(settings.encode() + starts.tobytes())
    path = folder / f"{problem.name}-{problem.dimension}d" / contender
    path = path / f"{field}-{lr:g}-{digest:08x}.npz"
    if path.exists():
        with np.load(path) as kept:
            return race.Outcome(**kept)
    found = race.run(problem, contender, lr, starts, steps, horizon)
    content = BytesIO()
    np.savez(content, **found._asdict())
    write_atomically(path, content.getvalue())
    return found


def _rate(k: int) -> float:
    """Return the k-th of ..., 0.3, 1, 3, 10, ...; the 0th is 1."""
    return float(f"{3 if k % 2 else 1}e{k // 2}")


def summarize(problem: Problem, heats: Mapping[str, Sequence[Heat]]) -> FunctionResult:
    """Return all that is reported of one problem."""
    by_name = {name: own[0] for name, own in heats.items()}
    told = () if problem.minimiser.any() else (_KNOWS_THE_ORIGIN,)
    fair = [name for name in by_name if name not in told] if len(by_name) > 4 else []
    values = {
        key(regime, criterion): {
            name: judge(heat.outcomes[regime], criterion) for name, heat in by_name.items()
        }
        for regime in REGIMES
        for criterion in CRITERIA
    }
    four = {k: {name: own[name] for name in PAPER_FOUR} for k, own in values.items()}
    everyone = {k: {name: own[name] for name in fair} for k, own in values.items()}
    return FunctionResult(
        angle=problem.angles[0],
        dimension=problem.dimension,
        starts=len(by_name[OURS].outcomes["common"].loss),
        contenders={name: _contender(heat) for name, heat in by_name.items()},
        racers=PAPER_FOUR,
        wins={k: shares(own) for k, own in four.items()},
        wins_of_all={k: shares(own) for k, own in everyone.items()} if fair else {},
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


def turn(heats: Sequence[Heat]) -> TurnResult:
    """Return what a contender reached at each angle."""

    def under(regime: Regime) -> tuple[AngleResult, ...]:
        return tuple(
            AngleResult(
                heat.angle,
                heat.lrs[regime],
                _quartiles(heat.outcomes[regime].loss),
                _count_diverged(heat.outcomes[regime]),
            )
            for heat in heats
        )

    return TurnResult(under("common"), under("tuned"))


def _duels(values: Values) -> dict[str, Shares]:
    """Let the paper's four meet each other, and HVAdam everyone."""
    return {
        a: {b: duel(values[a], values[b]) for b in (values if a == OURS else PAPER_FOUR) if b != a}
        for a in PAPER_FOUR
    }


def _best(racers: Values) -> np.ndarray:
    """Return who is best, within rounding, as (racers, starts)."""
    values = np.stack(list(racers.values()))
    low = values.min(0)
    return np.isfinite(values) & (values <= low + _SAME * np.abs(low))


def _contender(heat: Heat) -> ContenderResult:
    def under(regime: Regime) -> RegimeResult:
        outcome = heat.outcomes[regime]
        return RegimeResult(
            lr=heat.lrs[regime],
            loss=_quartiles(outcome.loss),
            late=_quartiles(outcome.late_loss),
            steps=_quartiles(judge(outcome, "first"))[1],
            reached=int((outcome.reached >= 0).sum()),
            diverged=_count_diverged(outcome),
        )

    tuning = {f"{lr:g}": _number(loss) for lr, loss in heat.tuning.items()}
    return ContenderResult(tuning, under("common"), under("tuned"))


def _quartiles(values: Array) -> Quartiles:
    """Return the quartiles; None where most of that share diverged."""
    found = np.quantile(values, (0.25, 0.5, 0.75), method="inverted_cdf")
    low, median, high = map(_number, found)
    return low, median, high


def _number(x: float) -> float | None:
    """Round to five digits; None for what is not finite."""
    return float(f"{x:.5g}") if math.isfinite(x) else None


def _count_diverged(outcome: Outcome) -> int:
    return int((outcome.diverged >= 0).sum())
