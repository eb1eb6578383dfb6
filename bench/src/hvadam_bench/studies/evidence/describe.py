"""A finished contest as numbers of few digits: a task with everyone on it, or a dose of noise."""

from __future__ import annotations

import itertools
import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam_bench.analysis import effects, judging, profiles, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.studies.evidence.plan import AS_MUCH, CONTROL
from hvadam_bench.studies.evidence.result import (
    Difference,
    Dose,
    Entrant,
    Noise,
    Number,
    Rule,
    TaskEvidence,
    Trivial,
    Unfinished,
)
from hvadam_bench.sweeping.contest_results import ContestResults

DIGITS = 6  # significant ones, of the numbers that are kept
MIRRORED: Mapping[effects.Verdict, effects.Verdict] = {"ahead": "behind", "behind": "ahead"}
# "After a few hundred steps": the diagnostics are those of the first evaluation from here on.
LOOKED_AT = 300
DIAGNOSTICS = ("alignment", "hidden_share")


def describe_task(
    reading: ContestResults,
    part: str,
    store: Store,
    baseline: Trivial | None = None,
    pictures: Mapping[tuple[str, str], str] | None = None,
) -> TaskEvidence:
    """Return a finished contest: everyone in it, and HVAdam compared with each of the others.

    Args:
        reading: The contest.
        part: Its part of the comparison.
        store: Where its records, and the pictures that its runs made, are.
        baseline: What a trivial model reaches.
        pictures: By task and contender, for runs whose own are not there: packed records have none.
    """
    task, contest = results_of(reading), reading.contest
    scale = judging.scale_of(task)
    against = judging.judge_against(task, contest.reference, scale)
    duels = judging.judge_against(task, OURS, scale)
    momentum = judging.judge_against(task, CONTROL, scale).get(AS_MUCH)
    target = profiles.target(task.contenders[contest.reference].judged, task.metric)
    times = {} if target is None else profiles.times_to_target(task, target)
    shares = judging.arrivals(task)
    owners = {entry.entrant: entry.rate_of for entry in contest.entries}
    spread = against[OURS].effect
    longest = max((run for one in task.race for run in one.judged), key=_steps)

    def entrant(one: ContenderRuns) -> Entrant:
        found = against.get(one.name)
        return Entrant(
            **_measured(one, task),
            rate_of=owners[one.name],
            arrived=rounded(shares.get(one.name)),
            to_target=finite(times.get(one.name)),
            against_reference=found and _difference(contest.reference, found),
            picture=_picture(one, task, store) or (pictures or {}).get((task.task, one.name)),
        )

    return TaskEvidence(
        task=task.task,
        title=task.title,
        scale=task.scale,
        settings=_plain(task.settings),
        metric=task.metric.name,
        goal=task.metric.goal,
        steps=_steps(longest),
        evaluations=len(longest.curve) - 1,
        seeds=contest.seeds,
        trials=contest.trials,
        tuning_seeds=contest.tuning_seeds,
        unit=scale.kind,
        margin=rounded(scale.margin) or 0.0,
        power=finite(
            effects.detectable(spread.sd, spread.n, comparisons=len(duels), noise=spread.noise)
        ),
        reference=contest.reference,
        family_best=judging.best_of_family(task),
        best=judging.best_of_all(task),
        solved=judging.is_solved(task),
        target=rounded(target),
        baseline=baseline,
        contenders={one.name: entrant(one) for one in task.race},
        # They were compared with HVAdam; here HVAdam is compared with them.
        duels={name: _difference(name, found, sign=-1) for name, found in duels.items()},
        momentum=momentum and _difference(CONTROL, momentum),
    )


def describe_noise(readings: Sequence[ContestResults]) -> Noise:
    """Return every dose that is finished, and what a user can read off the diagnostics."""
    full = [one for one in readings if one.results and not one.contest.settings.get("batch")]
    whole = {one.contest.task: _batch(one) for one in full}
    doses = tuple(_dose(one, whole.get(one.contest.task)) for one in readings if one.finished)
    return Noise(
        doses=tuple(sorted(doses, key=lambda dose: (dose.task, -dose.batch))),
        unfinished=list_unfinished(readings),
        rule=best_rule(doses),
    )


def best_rule(doses: Sequence[Dose]) -> Rule | None:
    """Return the threshold on a diagnostic that parts best where HVAdam ended lower than Adam."""
    rules = [rule for name in DIAGNOSTICS if (rule := _rule(name, doses))]
    return max(rules, key=lambda rule: rule.right, default=None)


def list_unfinished(readings: Iterable[ContestResults]) -> tuple[Unfinished, ...]:
    """Return how far the contests that are not finished are."""
    return tuple(
        Unfinished(
            task=one.contest.task,
            about=_about(one.contest.settings),
            finished=len(one.contest.arms()) - len(one.unfinished),
            of=len(one.contest.arms()),
            runs=one.runs,
        )
        for one in readings
        if not one.finished
    )


def results_of(reading: ContestResults) -> TaskResults:
    """Return the results of a finished contest."""
    assert reading.results is not None, "only finished contests are described"
    return reading.results


def rounded(x: float | None) -> Number:
    """Return a number as it is kept: few digits, and None for what is no number.

    Example:
        >>> rounded(1 / 3), rounded(math.nan), rounded(-math.inf)
        (0.333333, None, -inf)
    """
    return None if x is None or math.isnan(x) else float(f"{x:.{DIGITS}g}")


def finite(x: float | None) -> Number:
    """Return a value as it is kept; None if its run diverged."""
    return rounded(x) if x is not None and math.isfinite(x) else None


def _measured(one: ContenderRuns, task: TaskResults) -> dict[str, Any]:
    """Return what a contender's runs say by themselves."""
    runs = sorted(one.judged, key=lambda run: run.config.seed)
    values = [statistics.final(run, task.metric) for run in runs]
    summary = statistics.summarize(values)
    rated = [run for run in one.tuning if "lr" in run.config.options]
    rates = statistics.by_rate(rated, task.metric) if rated else {}
    others = {name for run in runs for name in run.test} - {task.metric.name, judging.ARRIVED.name}
    return {
        "options": _plain(one.options),
        "tuned": bool(one.tuning),
        "at_edge": one.at_edge,
        "rates": {f"{lr:g}": finite(value) for lr, value in rates.items()},
        "decay": _decay(runs),
        "values": tuple(map(finite, values)),
        "median": finite(summary.median),
        "low": finite(summary.lower),
        "high": finite(summary.upper),
        "evaluations": _middle(float(run.gradient_evaluations) for run in runs),
        "others": {
            name: _middle(run.test.get(name, math.inf) for run in runs) for name in sorted(others)
        },
    }


def _difference(rival: str, found: effects.Judgement, sign: int = 1) -> Difference:
    """Return a judgement as it is kept; with a negative sign, as seen from the other contender."""
    effect = found.effect
    low, high = sorted(sign * end for end in effect.interval[:2])
    return Difference(
        rival=rival,
        n=effect.n,
        amount=rounded(sign * effect.estimate),
        low=rounded(low),
        high=rounded(high),
        p=rounded(found.p),
        verdict=found.verdict if sign > 0 else MIRRORED.get(found.verdict, found.verdict),
    )


def _picture(one: ContenderRuns, task: TaskResults, store: Store) -> str | None:
    found = store.samples(judging.middle_run(one.judged, task.metric))
    return b64encode(found[max(found)].read_bytes()).decode() if found else None


def _decay(runs: Sequence[Record]) -> str:
    """Return the decay that runs worked with, in words."""
    found = {one for run in runs for one in run.decay.values()}
    words = sorted(one.kind if one.kind == "none" else f"{one.kind} {one.value:g}" for one in found)
    return ", ".join(words) or "none"


def _dose(reading: ContestResults, whole: int | None) -> Dose:
    """Return a finished contest of the noise part; `whole` is the size of the full batch."""
    task = results_of(reading)
    ours, theirs = task.contenders[OURS], task.contenders[REFERENCE]
    pairs = statistics.paired(ours.judged, theirs.judged, task.metric)
    # Ratios of losses; so few seeds give no verdict, so no smallest effect is asked for.
    scale = effects.Scale("factor", 1.25)
    effect = effects.compare([a for a, _ in pairs], [b for _, b in pairs], scale)
    looks = [_look(run) for run in ours.judged]
    shares = [_diagnostics(point).get("hidden_share") for run in ours.judged for point in run.curve]
    batch = _batch(reading)
    return Dose(
        task=task.task,
        title=task.title,
        batch=batch,
        share=rounded(batch / whole) if whole else None,
        steps=max(map(_steps, ours.judged)),
        n=effect.n,
        amount=rounded(effect.estimate),
        low=rounded(effect.narrow.low),
        high=rounded(effect.narrow.high),
        alignment=_middle(_diagnostics(look).get("alignment", math.nan) for look in looks),
        hidden_share=_middle(_diagnostics(look).get("hidden_share", math.nan) for look in looks),
        hidden_most=rounded(max((x for x in shares if x is not None), default=math.nan)),
        seen=max(look.step for look in looks),
        rates={name: one.options.get("lr") for name, one in task.contenders.items()},
    )


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
    return Rule(diagnostic, threshold, right[threshold], len(seen), max(pays, len(seen) - pays))


def _look(run: Record) -> Point:
    """Return the first evaluation of a run after a few hundred steps."""
    return next((point for point in run.curve if point.step >= LOOKED_AT), run.curve[-1])


def _diagnostics(point: Point) -> Mapping[str, float]:
    return next(iter(point.diagnostics.values()), {})


def _batch(reading: ContestResults) -> int:
    """Return how many examples a step sees, by the records."""
    everyone = results_of(reading).contenders.values()
    ends = [run.curve[-1] for one in everyone for run in (*one.judged, *one.tuning) if run.curve]
    return max((round(end.examples / end.step) for end in ends if end.step), default=0)


def _about(settings: Mapping[str, Any]) -> str:
    """Return which of a task's contests one is, where it has several."""
    if "batch" not in settings:
        return ""
    return f"batch {settings['batch']}" if settings["batch"] else "full batch"


def _middle(values: Iterable[float]) -> Number:
    """Return the median of values as it is kept; None without any, or if most are infinite."""
    seen = [value for value in values if not math.isnan(value)]
    return finite(statistics.median(seen)) if seen else None


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON gives them back: lists instead of tuples."""
    return json.loads(json.dumps(dict(options)))


def _steps(run: Record) -> int:
    return run.curve[-1].step if run.curve else 0
