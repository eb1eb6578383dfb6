"""All that the pages tell, out of records and the other studies' results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from hvadam_bench.analysis import effects, profiles, statistics
from hvadam_bench.contenders import ADAM_FAMILY, OURS, rank
from hvadam_bench.running.records import Record
from hvadam_bench.studies.evidence import claims
from hvadam_bench.studies.evidence.describe import (
    CONTROL,
    REFERENCES,
    Part,
    describe_task,
    rounded,
    unfinished,
)
from hvadam_bench.studies.evidence.evaluation_times import EvaluationTimes, TaskTimes
from hvadam_bench.studies.evidence.noise import describe_noise
from hvadam_bench.studies.evidence.parts import PartResults, Studies, planned, read, store_of
from hvadam_bench.studies.evidence.result import (
    Beside,
    Cost,
    Costs,
    Counts,
    Evidence,
    Profile,
    Suite,
    TaskEvidence,
    Trivial,
)

# The packages whose versions a page names.
NAMED = ("hvadam", "torch")


def compute(folder: Path, results: Path, studies: Studies | None = None) -> Evidence:
    """Return the evidence of all that is finished.

    Args:
        folder: What `hvadam evidence` works in.
        results: Where the packed records and the other studies' JSON files are.
        studies: What was planned, if not all of `hvadam evidence`.
    """
    chosen = planned() if studies is None else studies
    readings = read(folder, chosen, results)
    baselines = _baselines(results / "baselines.json")
    kept = _pictures(results / "evidence.json")

    def suite(part: Part) -> Suite:
        own = [one for one in readings if one.part == part]
        store = store_of(folder, part, results)
        tasks = [
            describe_task(one, part, store, baselines.get(one.contest.task), kept)
            for one in own
            if one.finished
        ]
        return summarize(part, own, tasks)

    return Evidence(
        **_provenance(readings),
        smooth=suite("smooth"),
        minibatch=suite("minibatch"),
        noise=describe_noise([one for one in readings if one.part == "noise"]),
        costs=_costs(results / "evaluation-times.json"),
        claims=claims.judge(results),
    )


def count(duels: Sequence[Beside]) -> Counts:
    """Return how many comparisons ended with which verdict."""
    counts = Counter(one.verdict for one in duels)
    return {name: counts[name] for name in get_args(effects.Verdict)}


def summarize(part: Part, readings: Sequence[PartResults], tasks: Sequence[TaskEvidence]) -> Suite:
    """Return a suite, from what is planned of it and the tasks that are finished."""
    entries = [entry for one in readings for entry in one.contest.entries]
    family = {entry.entrant for entry in entries if entry.contender in ADAM_FAMILY}
    profile = profiles_of(tasks)
    return Suite(
        part=part,
        reference=REFERENCES[part],
        family=tuple(sorted(family, key=rank)),
        tasks=tuple(tasks),
        unfinished=tuple(unfinished(one) for one in readings if not one.finished),
        standings=standings(tasks),
        best=dict(
            Counter(best for task in tasks if task.solved and (best := task.best)).most_common()
        ),
        profiles=profile,
        scores={name: rounded(profiles.score(steps)) or 0.0 for name, steps in profile.items()},
    )


def standings(tasks: Sequence[TaskEvidence]) -> dict[str, Counts]:
    """Return how HVAdam stands beside the reference, the best of Adam's family and the control."""
    solved = [task for task in tasks if task.solved]
    found = {
        "reference": [task.duels.get(task.reference) for task in solved],
        "family": [task.duels.get(task.family_best or "") for task in solved],
        "control": [task.duels.get(CONTROL) for task in solved],
        "momentum": [task.momentum for task in solved],
    }
    there = {about: [one for one in duels if one] for about, duels in found.items()}
    return {about: count(duels) for about, duels in there.items() if duels}


def profiles_of(tasks: Sequence[TaskEvidence]) -> dict[str, Profile]:
    """Return the performance profiles of those who ran on all the tasks that have a target."""
    told = [task for task in tasks if task.target is not None]
    common = set.intersection(*(set(task.contenders) for task in told)) if told else set()
    never = float("inf")
    costs = {
        task.task: {name: task.contenders[name].to_target or never for name in common}
        for task in told
    }
    found = profiles.profile(costs)
    return {name: tuple(found[name]) for name in sorted(common, key=rank)}


def _provenance(readings: Sequence[PartResults]) -> dict[str, Any]:
    runs = list(_runs(readings))
    environments = [run.environment for run in runs]
    versions = [one.get("versions", {}) for one in environments]
    return {
        "versions": {
            name: tuple(sorted({one[name] for one in versions if name in one})) for name in NAMED
        },
        "machines": tuple(sorted({_machine(one.get("machine", {})) for one in environments})),
        "commits": tuple(sorted({str(one.get("commit"))[:7] for one in environments})),
        "runs": len(runs),
        "hours": round(sum(run.train_seconds for run in runs) / 3600, 2),
    }


def _runs(readings: Sequence[PartResults]) -> Iterator[Record]:
    for reading in readings:
        if reading.finished and reading.results:
            for runs in reading.results.contenders.values():
                yield from (*runs.judged, *runs.tuning)


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"


def _pictures(path: Path) -> dict[tuple[str, str], str]:
    """Return the pictures of an earlier evidence, by task and contender."""
    plain = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        (task["task"], name): one["picture"]
        for part in REFERENCES
        for task in plain.get(part, {}).get("tasks", ())
        for name, one in task["contenders"].items()
        if one["picture"]
    }


def _baselines(path: Path) -> dict[str, Trivial]:
    """Return what `hvadam baselines` wrote, by task; its own reader would load a framework."""
    plain = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"of": {}}
    return {task: Trivial(one["method"], one["test"]) for task, one in plain["of"].items()}


def _costs(path: Path) -> Costs | None:
    """Return what `hvadam evaluation-times` wrote, if it did."""
    if not path.exists():
        return None
    found = EvaluationTimes.load(path)
    ratios: dict[str, list[float]] = {}
    for times in found.tasks.values():
        if OURS in times.contenders:
            ratios.setdefault(times.part, []).append(times.contenders[OURS].ratio.median)
    return Costs(
        machine=_machine(found.environment.get("machine", {})),
        threads=found.threads,
        rounds=found.rounds,
        ours={
            part: (_kept(min(own)), _kept(statistics.median(own)), _kept(max(own)))
            for part, own in ratios.items()
        },
        of={task: _costs_on(times) for task, times in found.tasks.items()},
    )


def _costs_on(times: TaskTimes) -> dict[str, Cost]:
    reference = _kept(times.reference_milliseconds.median)
    return {
        times.reference: Cost(reference, 1.0, 1.0, 1.0),
        **{
            name: Cost(
                *(_kept(x) for x in (one.milliseconds.median, one.ratio.median)),
                *(_kept(x) for x in (one.ratio.q1, one.ratio.q3)),
            )
            for name, one in times.contenders.items()
        },
    }


def _kept(x: float) -> float:
    return rounded(x) or 0.0
