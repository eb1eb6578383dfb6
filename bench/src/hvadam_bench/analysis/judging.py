"""From the results of a task to verdicts on its contenders, by effects over the same seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hvadam_bench import tasks
from hvadam_bench.analysis import effects
from hvadam_bench.analysis.arrivals import is_solved
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.medians import best_of, median_of
from hvadam_bench.analysis.statistics import final, paired
from hvadam_bench.contenders import ABLATION, ADAM_FAMILY

UNSOLVED = "nobody solves the task"


def judge_against(
    results: TaskResults, reference: str, scale: effects.Scale | None = None
) -> dict[str, effects.Judgement]:
    """Return the verdict on each contender beside one of them, corrected for all of them.

    Those whose runs are not finished are left out, and without the reference there is nobody.

    Args:
        results: Of the task.
        reference: Whom to compare with; beside a step of the ablation, its other steps are.
        scale: How differences are measured and how much matters; as `scale_of` says if not given.
    """
    field = results.levels if reference in ABLATION else results.race
    finished = {one.name: one for one in field if one.judged and not one.is_cut}
    other = finished.pop(reference, None)
    if other is None:
        return {}
    measured = scale or scale_of(results)
    found = {name: _effect(one, other, results, measured) for name, one in finished.items()}
    judged = effects.judge(found)
    if is_solved(results):
        return judged
    return {
        name: one._replace(verdict="undecided", reason=UNSOLVED, leaning=None)
        for name, one in judged.items()
    }


def scale_of(results: TaskResults) -> effects.Scale:
    """Return how differences on a task are measured, with what its `Task` says that matters."""
    task = tasks.get(results.task) if results.task in tasks.names() else None
    runs = [run for one in results.contenders.values() for run in one.judged]
    values = [final(run, results.metric) for run in runs]
    return effects.scale_for(results.metric, values, task and task.smallest)


def leaders(
    results: TaskResults, reference: str, judged: Mapping[str, effects.Judgement]
) -> set[str]:
    """Return those ahead of the reference; if nobody is, it and all that are not behind it.

    None if that is everyone: nobody is told apart.
    """
    ahead = {name for name, one in judged.items() if one.verdict == "ahead"}
    behind = {name for name, one in judged.items() if one.verdict == "behind"}
    if ahead or not behind:
        return ahead
    ended = [name for name in (reference, *judged) if name not in behind]
    medians = {name: median_of(results.contenders[name], results.metric) for name in ended}
    return {name for name, value in medians.items() if math.isfinite(value)}


def best_of_family(results: TaskResults) -> str | None:
    """Return who of Adam's family, variants included, has the best median of a task.

    Chosen by the runs that are then compared with, it looks a little better than it is.
    """
    family = [one for one in results.race if one.name.partition(" (")[0] in ADAM_FAMILY]
    return best_of(results, [one for one in family if not one.is_cut])


def best_of_all(results: TaskResults) -> str | None:
    """Return who of all that finished has the best median of a task."""
    return best_of(results, [one for one in results.race if not one.is_cut])


def _effect(
    one: ContenderRuns, other: ContenderRuns, results: TaskResults, scale: effects.Scale
) -> effects.Effect:
    """Return how far one is ahead, with the noise of the test set where its parts are known."""
    pairs = paired(one.judged, other.judged, results.metric)
    ours, theirs = (
        [run.test_parts for run in own.judged if run.test_parts] for own in (one, other)
    )
    noise = effects.sampling_noise(ours, theirs) if scale.kind == "points" else 0.0
    return effects.compare([a for a, _ in pairs], [b for _, b in pairs], scale, noise)
