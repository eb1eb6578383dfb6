"""From the results of a task to verdicts on its contenders, by effects over the same seeds."""

from __future__ import annotations

from hvadam_bench.analysis import effects
from hvadam_bench.analysis.arrivals import is_solved
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.statistics import paired
from hvadam_bench.analysis.verdicts import best_of
from hvadam_bench.contenders import ADAM_FAMILY

UNSOLVED = "nobody solves the task"


def judge_against(
    results: TaskResults, reference: str, suite: effects.Suite
) -> dict[str, effects.Judgement]:
    """Return the verdict on each contender beside one of them, corrected for all of them.

    Those whose runs are not finished are left out, and without the reference there is nobody.

    Args:
        results: Of the task.
        reference: Whom to compare with.
        suite: Which says how much matters.
    """
    finished = {one.name: one for one in results.race if one.judged and not one.is_cut}
    other = finished.pop(reference, None)
    if other is None:
        return {}
    scale = effects.scale_of(results.metric, suite)
    found = {name: _effect(one, other, results, scale) for name, one in finished.items()}
    judged = effects.judge(found)
    if is_solved(results):
        return judged
    return {
        name: one._replace(verdict="undecided", reason=UNSOLVED) for name, one in judged.items()
    }


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
