"""Finished contests as plain values, as JSON has them, and what evaluations take.

None stands for what has no number: a run that diverged, a measure that a task does not have. A
difference between two contenders is positive where the first is better: the logarithm of how many
times lower its loss is, or points of accuracy.
"""

from __future__ import annotations

import itertools
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam_bench.analysis import effects, judging, profiles, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.statistics import median
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.running.records import Record, Store
from hvadam_bench.studies.evidence.plan import AS_MUCH, CONTROL, REFERENCES
from hvadam_bench.sweeping.contest_results import ContestResults

Plain = dict[str, Any]
DIGITS = 6  # significant ones, of the numbers that are kept
MIRRORED = {"ahead": "behind", "behind": "ahead"}
# "After a few hundred steps": the diagnostics are those of the first evaluation from here on.
LOOKED_AT = 300
DIAGNOSTICS = ("alignment", "hidden_share")


def describe_task(
    reading: ContestResults,
    store: Store,
    baseline: Mapping[str, Any] | None = None,
    pictures: Mapping[tuple[str, str], str] | None = None,
) -> Plain:
    """Return a finished contest: everyone in it, and HVAdam compared with each of the others.

    Args:
        reading: The contest.
        store: Where its records, and the pictures that its runs made, are.
        baseline: The method of a trivial model, and the value that it reaches.
        pictures: By task and contender, for runs whose own are not there: packed records have none.
    """
    task, contest = results_of(reading), reading.contest
    scale = judging.scale_of(task)
    against = judging.judge_against(task, contest.reference, scale)
    duels = judging.judge_against(task, OURS, scale)
    spread = against[OURS].effect
    target = profiles.target(task.contenders[contest.reference].judged, task.metric)
    times = {} if target is None else profiles.times_to_target(task, target)
    shares = judging.arrivals(task)
    owners = {entry.entrant: entry.rate_of for entry in contest.entries}
    longest = max((run for one in task.race for run in one.judged), key=_steps)

    def entrant(one: ContenderRuns) -> Plain:
        earlier = (pictures or {}).get((task.task, one.name))
        return _describe_runs(one, task) | {
            "rate_of": owners[one.name],  # whose learning rate it takes; "" if it is its own
            "arrived": shares.get(one.name),  # the share of runs that solved the task, if known
            # When half of the runs were at the target; None if fewer ever were.
            "to_target": times.get(one.name),
            "against_reference": _difference(contest.reference, against.get(one.name)),
            # What the run in the middle made of a picture: a PNG in base64.
            "picture": _picture(one, task, store) or earlier,
        }

    found = {
        **{name: getattr(task, name) for name in ("task", "title", "scale", "settings")},
        "metric": task.metric.name,
        "goal": task.metric.goal,
        "steps": _steps(longest),  # of a run, each a gradient evaluation
        "evaluations": len(longest.curve) - 1,  # points of a curve
        # Judged runs, learning rates at first, and runs of each rate.
        **{name: getattr(contest, name) for name in ("seeds", "trials", "tuning_seeds")},
        "unit": scale.kind,  # of differences: "factor" or "points"
        "margin": scale.margin,  # the smallest difference that matters
        # The smallest difference that these seeds show four times in five.
        "power": effects.detectable(
            spread.sd, spread.n, comparisons=len(duels), noise=spread.noise
        ),
        "reference": contest.reference,  # everyone is compared with it
        "family_best": judging.best_of_family(task),  # by the medians, as the next
        "best": judging.best_of_all(task),
        "solved": judging.is_solved(task),  # if by nobody, it gives no verdict
        "target": target,  # the value for the time to the target
        "baseline": baseline,
        "contenders": {one.name: entrant(one) for one in task.race},  # in the order of tables
        # They were compared with HVAdam; here HVAdam is compared with them.
        "duels": {name: _difference(name, one, sign=-1) for name, one in duels.items()},
        # HVAdam with more momentum versus Adam with as much.
        "momentum": _difference(CONTROL, judging.judge_against(task, CONTROL, scale).get(AS_MUCH)),
    }
    return kept(found)


def describe_noise(readings: Sequence[ContestResults]) -> Plain:
    """Return every dose that is finished, and what a user can read off the diagnostics."""
    whole = {
        one.contest.task: _batch(one.results)
        for one in readings
        if one.results and not one.contest.settings.get("batch")
    }
    finished = [results_of(one) for one in readings if one.finished]
    doses = [_dose(task, whole.get(task.task)) for task in finished]
    return {
        "doses": sorted(doses, key=lambda dose: (dose["task"], -dose["batch"])),
        "unfinished": list_unfinished(readings),
        "rule": best_rule(doses),
    }


def best_rule(doses: Sequence[Plain]) -> Plain | None:
    """Return the threshold on a diagnostic that parts best where HVAdam ended lower than Adam.

    It is halfway between two values that were seen.
    """
    rules: list[Plain] = []
    for name in DIAGNOSTICS:
        known = [one for one in doses if one[name] is not None and one["amount"] is not None]
        seen = [(dose[name], dose["amount"] > 0) for dose in known]
        pays = sum(lower for _, lower in seen)
        values = sorted({value for value, _ in seen})
        for ends in itertools.pairwise(values):
            threshold = float(f"{sum(ends) / 2:.2g}")
            rule = {"diagnostic": name, "threshold": threshold}
            # On how many doses it is right, and the better of "always" and "never".
            rule["right"] = sum((value > threshold) == lower for value, lower in seen)
            rules.append(rule | {"of": len(seen), "guess": max(pays, len(seen) - pays)})
    return max(rules, key=lambda rule: rule["right"], default=None)


def describe_costs(found: Mapping[str, Any]) -> Plain:
    """Return what evaluations take: milliseconds, and ratios to the reference with quartiles."""

    def cost(milliseconds: Plain, q1: float = 1.0, median: float = 1.0, q3: float = 1.0) -> Plain:
        return {"milliseconds": milliseconds["median"], "ratio": median, "low": q1, "high": q3}

    costs = {
        task: {own["reference"]: cost(own["reference_milliseconds"])}
        | {
            name: cost(one["milliseconds"], **one["ratio"])
            for name, one in own["contenders"].items()
        }
        for task, own in found["tasks"].items()
    }
    ratios = {
        part: [
            costs[task][OURS]["ratio"]
            for task, own in found["tasks"].items()
            if own["part"] == part and OURS in costs[task]
        ]
        for part in REFERENCES
    }
    # The least, the median and the most of HVAdam's ratios, by part.
    ours = {part: (min(own), median(own), max(own)) for part, own in ratios.items() if own}
    machine = machine_of(found["environment"])
    alike = {name: found[name] for name in ("threads", "rounds")}
    return kept({"machine": machine, **alike, "ours": ours, "of": costs})


def list_unfinished(readings: Iterable[ContestResults]) -> list[Plain]:
    """Return how far the contests with runs to come are; they count nowhere."""
    return [
        {
            "task": one.contest.task,
            # Which of the task's contests it is, where it has several.
            "about": f"batch {batch or 'of all'}" if "batch" in one.contest.settings else "",
            "finished": len(one.contest.arms()) - len(one.unfinished),  # contenders
            "of": len(one.contest.arms()),
            "runs": one.runs,
        }
        for one in readings
        for batch in [one.contest.settings.get("batch")]
        if not one.finished
    ]


def results_of(reading: ContestResults) -> TaskResults:
    """Return the results of a finished contest."""
    assert reading.results is not None, "only finished contests are described"
    return reading.results


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return the machine of a run in words."""
    machine = environment.get("machine", {})
    return f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"


def kept(found: Any) -> Any:
    """Return values as JSON gives them back: numbers of few digits, None for what is no number.

    Example:
        >>> kept({"ends": (1 / 3, math.inf), "n": 10})
        {'ends': [0.333333, None], 'n': 10}
    """
    if isinstance(found, float):
        return float(f"{found:.{DIGITS}g}") if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {name: kept(one) for name, one in found.items()}
    return [kept(one) for one in found] if isinstance(found, (list, tuple)) else found


def _describe_runs(one: ContenderRuns, task: TaskResults) -> Plain:
    """Return what a contender's runs say by themselves."""
    runs = sorted(one.judged, key=lambda run: run.config.seed)
    values = [statistics.final(run, task.metric) for run in runs]
    middle = statistics.summarize(values)
    rated = [run for run in one.tuning if "lr" in run.config.options]
    rates = statistics.by_rate(rated, task.metric) if rated else {}
    decays = {decay for run in runs for decay in run.decay.values()}
    words = {one.kind if one.kind == "none" else f"{one.kind} {one.value:g}" for one in decays}
    others = {name for run in runs for name in run.test} - {task.metric.name, judging.ARRIVED.name}
    return {
        "options": one.options,  # that it was judged with, the learning rate among them
        "tuned": bool(one.tuning),  # whether its learning rate was chosen among several
        "at_edge": one.at_edge,  # whether the best rate is at the edge of those tried
        # Learning rate -> validation value, the median over tuning seeds.
        "rates": {f"{lr:g}": value for lr, value in rates.items()},
        "decay": ", ".join(sorted(words)) or "none",  # that the runs worked with
        "values": values,  # the judged runs' test values, by seed
        "median": middle.median,
        **{"low": middle.lower, "high": middle.upper},  # the quartiles
        # Gradient evaluations of a run, line searches included.
        "evaluations": median(float(run.gradient_evaluations) for run in runs),
        "others": {  # the medians of the other measures
            name: _middle(run.test.get(name, math.inf) for run in runs) for name in sorted(others)
        },
    }


def _difference(rival: str, found: effects.Judgement | None, sign: int = 1) -> Plain | None:
    """Return a judgement; with a negative sign, as seen from the other contender."""
    if found is None:
        return None
    low, high = sorted(sign * end for end in found.effect.interval[:2])
    return {
        "rival": rival,  # the other contender
        "n": found.effect.n,  # seeds
        "amount": sign * found.effect.estimate,
        **{"low": low, "high": high},  # the 95% interval
        "p": found.p,  # of the sign-flip test, corrected for all contenders of the task
        "verdict": found.verdict if sign > 0 else MIRRORED.get(found.verdict, found.verdict),
    }


def _picture(one: ContenderRuns, task: TaskResults, store: Store) -> str | None:
    found = store.samples(judging.middle_run(one.judged, task.metric))
    return b64encode(found[max(found)].read_bytes()).decode() if found else None


def _dose(task: TaskResults, whole: int | None) -> Plain:
    """Return a finished contest of the noise part; `whole` is the size of the full batch."""
    ours, theirs = task.contenders[OURS].judged, task.contenders[REFERENCE].judged
    pairs = statistics.paired(ours, theirs, task.metric)
    # Ratios of losses; so few seeds give no verdict, so no smallest effect is asked for.
    scale = effects.Scale("factor", 1.25)
    effect = effects.compare([a for a, _ in pairs], [b for _, b in pairs], scale)
    looks = [next((p for p in run.curve if p.step >= LOOKED_AT), run.curve[-1]) for run in ours]
    said = [next(iter(look.diagnostics.values()), {}) for look in looks]
    shares = [
        one.get("hidden_share", -math.inf)
        for run in ours
        for point in run.curve
        for one in point.diagnostics.values()
    ]
    batch = _batch(task)
    found = {
        **{"task": task.task, "title": task.title},
        "batch": batch,  # examples
        "share": batch / whole if whole else None,  # of all examples, if that is known
        "steps": max(map(_steps, ours)),
        "n": effect.n,  # seeds
        "amount": effect.estimate,  # HVAdam's difference to Adam
        # Its 90% interval: that of five seeds is their range; so few have no 95% one.
        **{"low": effect.narrow.low, "high": effect.narrow.high},
        # HVAdam's diagnostics at step `seen`; medians over runs.
        **{name: _middle(one.get(name, math.nan) for one in said) for name in DIAGNOSTICS},
        # The largest share of the step that its hidden part ever had.
        "hidden_most": max(shares, default=None),
        "seen": max(look.step for look in looks),
        "rates": {name: one.options.get("lr") for name, one in task.contenders.items()},
    }
    return kept(found)


def _batch(task: TaskResults) -> int:
    """Return how many examples a step sees, by the records."""
    everyone = task.contenders.values()
    ends = [run.curve[-1] for one in everyone for run in (*one.judged, *one.tuning) if run.curve]
    return max((round(end.examples / end.step) for end in ends if end.step), default=0)


def _middle(values: Iterable[float]) -> float | None:
    """Return the median of those values that are numbers; None without any."""
    seen = [value for value in values if not math.isnan(value)]
    return median(seen) if seen else None


def _steps(run: Record) -> int:
    return run.curve[-1].step if run.curve else 0
