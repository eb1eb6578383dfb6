"""A finished task as numbers of few digits, the way ``results/evidence.json`` keeps them."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from hvadam_bench.analysis import effects, judging, profiles, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.contenders import OURS
from hvadam_bench.running.records import Record, Store
from hvadam_bench.studies.evidence.parts import PartResults
from hvadam_bench.studies.evidence.result import (
    Beside,
    Entrant,
    Number,
    TaskEvidence,
    Trivial,
    Unfinished,
)
from hvadam_bench.sweeping.recipes.evidence import MORE_MOMENTUM

Part = Literal["smooth", "minibatch"]
REFERENCES: Mapping[Part, str] = {"smooth": "adam", "minibatch": "adamw"}
# Adam with more momentum and nothing else, and HVAdam with as much.
CONTROL, AS_MUCH = (entry.entrant for entry in MORE_MOMENTUM)
MIRRORED: Mapping[effects.Verdict, effects.Verdict] = {"ahead": "behind", "behind": "ahead"}
DIGITS = 6  # significant ones, of the numbers that are kept


def describe_task(
    reading: PartResults,
    part: Part,
    store: Store,
    baseline: Trivial | None = None,
    pictures: Mapping[tuple[str, str], str] | None = None,
) -> TaskEvidence:
    """Return a finished study: everyone in it, and HVAdam beside each of the others.

    Args:
        reading: The study.
        part: The suite that it belongs to.
        store: Where its records, and the pictures that its runs made, are.
        baseline: What a trivial model reaches.
        pictures: By task and contender, for runs whose own lie elsewhere: packed records have none.
    """
    task = results_of(reading)
    reference = REFERENCES[part]
    scale = judging.scale_of(task)
    against = judging.judge_against(task, reference, scale)
    beside_ours = judging.judge_against(task, OURS, scale)
    target = profiles.target(task.contenders[reference].judged, task.metric)
    times = {} if target is None else profiles.times_to_target(task, target)
    shares = judging.arrivals(task)
    owners = {entry.entrant: entry.rate_of for entry in reading.contest.entries}
    spread = against[OURS].effect
    longest = max((run for one in task.race for run in one.judged), key=_steps)
    return TaskEvidence(
        task=task.task,
        title=task.title,
        scale=task.scale,
        settings=plain(task.settings),
        metric=task.metric.name,
        goal=task.metric.goal,
        steps=_steps(longest),
        evaluations=len(longest.curve) - 1,
        seeds=reading.contest.seeds,
        trials=reading.contest.trials,
        tuning_seeds=reading.contest.tuning_seeds,
        unit=scale.kind,
        margin=rounded(scale.margin) or 0.0,
        power=finite(
            effects.detectable(
                spread.sd, spread.n, comparisons=len(beside_ours), noise=spread.noise
            )
        ),
        reference=reference,
        family_best=judging.best_of_family(task),
        best=judging.best_of_all(task),
        solved=judging.is_solved(task),
        target=rounded(target),
        baseline=baseline,
        contenders={
            one.name: Entrant(
                **_measured(one, task),
                rate_of=owners[one.name],
                arrived=rounded(shares.get(one.name)),
                to_target=finite(times.get(one.name)),
                against_reference=_beside(reference, against.get(one.name)),
                picture=_picture(one, task, store) or (pictures or {}).get((task.task, one.name)),
            )
            for one in task.race
        },
        duels={name: _mirrored(name, found) for name, found in beside_ours.items()},
        momentum=_beside(CONTROL, judging.judge_against(task, CONTROL, scale).get(AS_MUCH)),
    )


def results_of(reading: PartResults) -> TaskResults:
    """Return the results of a finished study."""
    assert reading.results is not None, "only finished studies are described"
    return reading.results


def unfinished(reading: PartResults) -> Unfinished:
    """Return how far a study that is not finished has come."""
    arms = reading.contest.arms()
    batch = reading.contest.settings.get("batch")
    dose = f"batch {batch}" if batch else "full batch"
    return Unfinished(
        task=reading.contest.task,
        about=dose if "batch" in reading.contest.settings else "",
        finished=len(arms) - len(reading.unfinished),
        of=len(arms),
        runs=reading.runs,
    )


def rounded(x: float | None) -> Number:
    """Return a number as it is kept: few digits, and None for what is no number.

    Example:
        >>> rounded(1 / 3), rounded(math.nan), rounded(-math.inf)
        (0.333333, None, -inf)
    """
    if x is None or math.isnan(x):
        return None
    return float(f"{x:.{DIGITS}g}")


def finite(x: float | None) -> Number:
    """Return a value as it is kept; None if its run came to no end."""
    return rounded(x) if x is not None and math.isfinite(x) else None


def middle(values: Iterable[float]) -> Number:
    """Return the median of values as it is kept; None without any, or if most are infinite."""
    seen = [value for value in values if not math.isnan(value)]
    return finite(statistics.median(seen)) if seen else None


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON gives them back: lists instead of tuples."""
    return json.loads(json.dumps(dict(options)))


def _measured(one: ContenderRuns, task: TaskResults) -> dict[str, Any]:
    """Return what a contender's runs say by themselves."""
    runs = sorted(one.judged, key=lambda run: run.config.seed)
    values = [statistics.final(run, task.metric) for run in runs]
    summary = statistics.summarize(values)
    rated = [run for run in one.tuning if "lr" in run.config.options]
    rates = statistics.sensitivity(rated, task.metric).values if rated else {}
    told = {name for run in runs for name in run.test} - {task.metric.name, judging.ARRIVED.name}
    return {
        "options": plain(one.options),
        "tuned": bool(one.tuning),
        "at_edge": one.at_edge,
        "rates": {f"{lr:g}": finite(value) for lr, value in rates.items()},
        "decay": _decay(runs),
        "values": tuple(map(finite, values)),
        "median": finite(summary.median),
        "low": finite(summary.lower),
        "high": finite(summary.upper),
        "evaluations": middle(float(run.gradient_evaluations) for run in runs),
        "others": {
            name: middle(run.test.get(name, math.inf) for run in runs) for name in sorted(told)
        },
    }


def _picture(one: ContenderRuns, task: TaskResults, store: Store) -> str | None:
    found = store.samples(judging.middle_run(one.judged, task.metric))
    return b64encode(found[max(found)].read_bytes()).decode() if found else None


def _beside(rival: str, found: effects.Judgement | None) -> Beside | None:
    if found is None:
        return None
    effect = found.effect
    return Beside(
        rival=rival,
        n=effect.n,
        amount=rounded(effect.estimate),
        low=rounded(effect.interval.low),
        high=rounded(effect.interval.high),
        p=rounded(found.p),
        verdict=found.verdict,
    )


def _mirrored(rival: str, found: effects.Judgement) -> Beside:
    """Return HVAdam beside a rival, where the rival was compared with HVAdam."""
    effect = found.effect
    return Beside(
        rival=rival,
        n=effect.n,
        amount=rounded(-effect.estimate),
        low=rounded(-effect.interval.high),
        high=rounded(-effect.interval.low),
        p=rounded(found.p),
        verdict=MIRRORED.get(found.verdict, found.verdict),
    )


def _decay(runs: Sequence[Record]) -> str:
    """Return the decay that runs worked with, in words."""
    found = {one for run in runs for one in run.decay.values()}
    words = sorted(one.kind if one.kind == "none" else f"{one.kind} {one.value:g}" for one in found)
    return ", ".join(words) or "none"


def _steps(run: Record) -> int:
    return run.curve[-1].step if run.curve else 0
