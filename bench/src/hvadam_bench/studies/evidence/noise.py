"""The dose of noise and the response to it: the same task at ever smaller batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from hvadam_bench.analysis import effects
from hvadam_bench.analysis.statistics import paired
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.running.records import Point, Record
from hvadam_bench.studies.evidence.describe import middle, results_of, rounded, unfinished
from hvadam_bench.studies.evidence.parts import PartResults
from hvadam_bench.studies.evidence.result import Dose, Noise, Number, Rule

# "After a few hundred steps": the diagnostics are those of the first evaluation from here on.
LOOKED_AT = 300
DIAGNOSTICS = ("alignment", "hidden_share")
# Ratios of losses; a dose has too few seeds for a verdict, so no smallest effect is asked for.
SCALE = effects.Scale("factor", 1.25)


def describe_noise(readings: Sequence[PartResults]) -> Noise:
    """Return every dose that is finished, and what a user can read off the diagnostics."""
    whole: dict[str, int] = {}
    for one in readings:
        if one.results and not one.contest.settings.get("batch"):
            whole[one.contest.task] = _batch(one)
    doses = tuple(_dose(one, whole.get(one.contest.task)) for one in readings if one.finished)
    return Noise(
        doses=tuple(sorted(doses, key=lambda dose: (dose.task, -dose.batch))),
        unfinished=tuple(unfinished(one) for one in readings if not one.finished),
        rule=best_rule(doses),
    )


def best_rule(doses: Sequence[Dose]) -> Rule | None:
    """Return the threshold on a diagnostic that parts best where HVAdam ended lower than Adam."""
    rules = [rule for name in DIAGNOSTICS if (rule := _rule(name, doses))]
    return max(rules, key=lambda rule: rule.right, default=None)


def _rule(diagnostic: str, doses: Sequence[Dose]) -> Rule | None:
    """Return the best threshold on one diagnostic, halfway between two values that were seen."""
    seen: list[tuple[float, bool]] = []
    for dose in doses:
        value: Number = getattr(dose, diagnostic)
        if value is not None and dose.amount is not None:
            seen.append((value, dose.amount > 0))
    values = sorted({value for value, _ in seen})
    places = [float(f"{(low + high) / 2:.2g}") for low, high in itertools.pairwise(values)]
    if not places:
        return None
    right = {at: sum((value > at) == pays for value, pays in seen) for at in places}
    threshold = max(places, key=lambda at: right[at])
    pays = sum(pays for _, pays in seen)
    return Rule(
        diagnostic=diagnostic,
        threshold=threshold,
        right=right[threshold],
        of=len(seen),
        guess=max(pays, len(seen) - pays),
    )


def _dose(reading: PartResults, whole: int | None) -> Dose:
    task = results_of(reading)
    ours, theirs = task.contenders[OURS], task.contenders[REFERENCE]
    pairs = paired(ours.judged, theirs.judged, task.metric)
    effect = effects.compare([a for a, _ in pairs], [b for _, b in pairs], SCALE)
    ends = (effect.estimate, effect.narrow.low, effect.narrow.high)
    looks = [_look(run) for run in ours.judged]
    batch = _batch(reading)
    return Dose(
        task.task,
        task.title,
        batch,
        rounded(batch / whole) if whole else None,
        max(run.curve[-1].step for run in ours.judged),
        effect.n,
        *map(rounded, ends),
        *(middle(look[1].get(name, math.nan) for look in looks) for name in DIAGNOSTICS),
        hidden_most=_most(ours.judged),
        seen=max(step for step, _ in looks),
        rates={name: one.options.get("lr") for name, one in task.contenders.items()},
    )


def _look(run: Record) -> tuple[int, dict[str, float]]:
    """Return the step of the first evaluation after a few hundred, and its diagnostics."""
    later = [point for point in run.curve if point.step >= LOOKED_AT]
    point = later[0] if later else run.curve[-1]
    return point.step, _diagnostics(point)


def _most(runs: Sequence[Record]) -> Number:
    """Return the largest share of the step that the hidden part had in any of the runs."""
    points = (point for run in runs for point in run.curve)
    shares = [_diagnostics(point).get("hidden_share") for point in points]
    return rounded(max((one for one in shares if one is not None), default=math.nan))


def _diagnostics(point: Point) -> dict[str, float]:
    return next(iter(point.diagnostics.values()), {})


def _batch(reading: PartResults) -> int:
    """Return how many examples a step sees, by the records."""
    everyone = results_of(reading).contenders.values()
    ends = [run.curve[-1] for one in everyone for run in (*one.judged, *one.tuning) if run.curve]
    return max((round(end.examples / end.step) for end in ends if end.step), default=0)
