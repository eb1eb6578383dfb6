"""From the results of a task to verdicts on its contenders, by effects over the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import fmean

from hvadam_bench import tasks
from hvadam_bench.analysis import effects
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.statistics import Metric, final, median, paired
from hvadam_bench.contenders import ABLATION, ADAM_FAMILY
from hvadam_bench.running.records import Record

UNSOLVED = "nobody solves the task"
# Some tasks split into runs that solve them and runs that do not, whoever trained: 1 or 0.
ARRIVED = Metric("arrived", "max")


def judge_against(
    results: TaskResults, reference: str, scale: effects.Scale | None = None
) -> dict[str, effects.Judgement]:
    """Return the verdict on each contender versus one of them, corrected for all of them.

    Those whose runs are not finished are left out, and without the reference there is nobody. A
    step of the ablation is compared with its other steps. `scale_of` says how differences are
    measured and how much matters, if that is not given.
    """
    field = results.levels if reference in ABLATION else results.race
    finished = {one.name: one for one in field if one.judged and not one.is_cut}
    other = finished.pop(reference, None)
    if other is None:
        return {}
    measured = scale or scale_of(results)
    judged = effects.judge(
        {name: _effect(one, other, results, measured) for name, one in finished.items()}
    )
    unsolved = (
        {} if is_solved(results) else dict(verdict="undecided", reason=UNSOLVED, leaning=None)
    )
    return {name: one._replace(**unsolved) for name, one in judged.items()}


def scale_of(results: TaskResults) -> effects.Scale:
    """Return how differences on a task are measured, with what its `Task` says that matters."""
    task = tasks.get(results.task) if results.task in tasks.names() else None
    runs = [run for one in results.contenders.values() for run in one.judged]
    values = [final(run, results.metric) for run in runs]
    return effects.scale_for(results.metric, values, task and task.smallest)


def arrivals(results: TaskResults) -> dict[str, float]:
    """Return the share of each contender's judged runs that arrived; a run without an end has not.

    Nobody is in it if no run says whether it arrived: the task knows no solution.
    """
    if ARRIVED.name not in results.measured:
        return {}
    judged = {one.name: one.judged for one in results.race if one.judged}
    return {name: fmean(final(run, ARRIVED) > 0 for run in own) for name, own in judged.items()}


def is_solved(results: TaskResults) -> bool:
    """Tell whether some contender arrives in at least half of its runs, or nobody can tell.

    Where nobody does, losses compare failures, and there is no verdict.
    """
    found = arrivals(results).values()
    return not found or max(found) >= 0.5


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
    return _best(results, [one for one in results.race if one.name.split(" (")[0] in ADAM_FAMILY])


def best_of_all(results: TaskResults) -> str | None:
    """Return who of all that finished has the best median of a task."""
    return _best(results, results.race)


def median_of(runs: ContenderRuns, metric: Metric) -> float:
    """Return the median test value over the judged runs."""
    return median(final(run, metric) for run in runs.judged)


def middle_run(runs: Iterable[Record], metric: Metric) -> Record:
    """Return the run in the middle by its test value; of two in the middle, the worse."""
    sign = 1 if metric.goal == "min" else -1
    ordered = sorted(runs, key=lambda run: (sign * final(run, metric), run.config.seed))
    return ordered[len(ordered) // 2]


def _best(results: TaskResults, among: Iterable[ContenderRuns]) -> str | None:
    finished = [one for one in among if one.judged and not one.is_cut]
    medians = {one.name: median_of(one, results.metric) for one in finished}
    finite = {name: value for name, value in medians.items() if math.isfinite(value)}
    pick = min if results.metric.goal == "min" else max
    return pick(finite, key=lambda name: finite[name]) if finite else None


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
