"""The comparison: its runs, what is measured besides them, and the evidence of all of it.

A contest counts only when every entry in it has finished its tuning and run all its seeds:
otherwise those who run quickly would be judged against those who happened to be there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hvadam_bench.analysis import effects, profiles, statistics
from hvadam_bench.contenders import ADAM_FAMILY, OURS, rank
from hvadam_bench.running.records import Store
from hvadam_bench.studies import _results
from hvadam_bench.studies._study import Place, Results
from hvadam_bench.studies.evidence import claims
from hvadam_bench.studies.evidence.describe import (
    describe_noise,
    describe_task,
    list_unfinished,
    rounded,
)
from hvadam_bench.studies.evidence.plan import CONTROL, REFERENCES, Contests, Plan
from hvadam_bench.studies.evidence.result import (
    Baselines,
    Cost,
    Costs,
    Counts,
    Difference,
    EvaluationTimes,
    Evidence,
    Suite,
    TaskEvidence,
    TaskTimes,
    Trivial,
)
from hvadam_bench.sweeping.contest_results import ContestResults, read_contest
from hvadam_bench.sweeping.costs import Costs as RunCosts
from hvadam_bench.sweeping.ledger import Ledger

if TYPE_CHECKING:
    from hvadam_bench.sweeping.sweep import Sweep

NAMED = ("hvadam", "torch")  # the packages whose versions a page names


def measure(plan: Plan, place: Place) -> Results:
    """Do the steps of a plan; return their results."""
    found: dict[str, Any] = {}
    if "runs" in plan.steps:
        place.sweep(plan_sweeps(plan, place))
    if "baselines" in plan.steps:
        from hvadam_bench.studies.evidence import baselines

        found["baselines"] = baselines.measure(plan.scale, place.on_progress)
    if "times" in plan.steps:
        from hvadam_bench.studies.evidence import timing

        timed = {part: plan.contests[part] for part in plan.parts if part in REFERENCES}
        found["evaluation-times"] = timing.measure(timed, on_progress=place.on_progress)
    if "evidence" in plan.steps:
        found["evidence"] = compute(place.runs, place.results, plan.contests, found)
    return found


def plan_sweeps(plan: Plan, place: Place) -> list[Sweep]:
    """Return a sweep for each contest, in their order: who stops early lacks the last ones."""
    from hvadam_bench.sweeping.sweep import Sweep  # which loads a framework

    sweeps: list[Sweep] = []
    for part in plan.parts:
        store = store_of(place.runs, part, place.results)
        costs = RunCosts(store)
        sweeps += [Sweep([one], store, f"evidence_{part}", costs) for one in plan.contests[part]]
    return sweeps


def store_of(runs: Path, part: str, results: Path | None = None) -> Store:
    """Return where a part's records are, packed or not: parts do not compete with each other."""
    name = f"evidence_{part}"
    return Store(runs / name, None if results is None else results / name)


def compute(
    runs: Path, results: Path, contests: Contests, measured: Results | None = None
) -> Evidence:
    """Return the evidence of everything that is finished; nothing is run.

    Args:
        runs: The folder of the records that are not packed yet.
        results: The folder of the packed records and of all studies' results.
        contests: What is planned.
        measured: Results that are newer than those in the folder.
    """
    readings = {
        part: [read_contest(one, ledger) for one in own]
        for part, own in contests.items()
        for ledger in [Ledger(store_of(runs, part, results))]
    }

    def known(kind: type, stem: str) -> Any:
        path = results / f"{stem}.json"
        newer = (measured or {}).get(stem)
        return newer or (_results.load(kind, path) if path.exists() else None)

    baselines: Baselines | None = known(Baselines, "baselines")
    times: EvaluationTimes | None = known(EvaluationTimes, "evaluation-times")
    trivial = {
        task: Trivial(one.method, one.test)
        for task, one in (baselines.of if baselines else {}).items()
    }
    pictures = _pictures(results / "evidence.json")

    def suite(part: str) -> Suite:
        own, store = readings.get(part, []), store_of(runs, part, results)
        tasks = [
            describe_task(one, part, store, trivial.get(one.contest.task), pictures)
            for one in own
            if one.finished
        ]
        return summarize(part, own, tasks)

    return Evidence(
        **_provenance([one for own in readings.values() for one in own]),
        smooth=suite("smooth"),
        minibatch=suite("minibatch"),
        noise=describe_noise(readings.get("noise", [])),
        costs=None if times is None else _costs(times),
        claims=claims.judge(results),
    )


def summarize(
    part: str, readings: Sequence[ContestResults], tasks: Sequence[TaskEvidence]
) -> Suite:
    """Return a suite, from the contests that are planned and the tasks that are finished."""
    entries = [entry for one in readings for entry in one.contest.entries]
    family = {entry.entrant for entry in entries if entry.contender in ADAM_FAMILY}
    drawn = _profiles(tasks)
    return Suite(
        part=part,
        reference=REFERENCES[part],
        family=tuple(sorted(family, key=rank)),
        tasks=tuple(tasks),
        unfinished=list_unfinished(readings),
        standings=_standings([task for task in tasks if task.solved]),
        best=dict(Counter(one.best for one in tasks if one.solved and one.best).most_common()),
        profiles=drawn,
        scores={name: _kept(profiles.score(steps)) for name, steps in drawn.items()},
    )


def _standings(solved: Sequence[TaskEvidence]) -> dict[str, Counts]:
    """Return on how many tasks HVAdam has which verdict, by whom it is compared with."""
    found: dict[str, list[Difference | None]] = {
        "reference": [task.duels.get(task.reference) for task in solved],
        "family": [task.duels.get(task.family_best or "") for task in solved],
        "control": [task.duels.get(CONTROL) for task in solved],
        "momentum": [task.momentum for task in solved],
    }
    counts = {about: Counter(one.verdict for one in own if one) for about, own in found.items()}
    return {
        about: {name: own[name] for name in get_args(effects.Verdict)}
        for about, own in counts.items()
        if own
    }


def _profiles(tasks: Iterable[TaskEvidence]) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the performance profiles of those who ran on all the tasks that have a target."""
    aimed = [task for task in tasks if task.target is not None]
    common = set.intersection(*(set(task.contenders) for task in aimed)) if aimed else set()
    never = float("inf")
    costs = {
        task.task: {name: task.contenders[name].to_target or never for name in common}
        for task in aimed
    }
    found = profiles.profile(costs)
    return {name: tuple(found[name]) for name in sorted(common, key=rank)}


def _provenance(readings: Iterable[ContestResults]) -> dict[str, Any]:
    """Return what the runs of finished contests were made with, and how many they are."""
    runs = [
        run
        for one in readings
        if one.finished and one.results
        for own in one.results.contenders.values()
        for run in (*own.judged, *own.tuning)
    ]
    environments = [run.environment for run in runs]
    versions = [one.get("versions", {}) for one in environments]
    return {
        "versions": {
            name: tuple(sorted({one[name] for one in versions if name in one})) for name in NAMED
        },
        "machines": tuple(sorted({_machine(one) for one in environments})),
        "commits": tuple(sorted({str(one.get("commit"))[:7] for one in environments})),
        "runs": len(runs),
        "hours": round(sum(run.train_seconds for run in runs) / 3600, 2),
    }


def _pictures(path: Path) -> dict[tuple[str, str], str]:
    """Return the pictures of an earlier evidence of any version, by task and contender."""
    plain = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        (task["task"], name): one["picture"]
        for part in REFERENCES
        for task in plain.get(part, {}).get("tasks", ())
        for name, one in task["contenders"].items()
        if one["picture"]
    }


def _costs(found: EvaluationTimes) -> Costs:
    """Return what evaluations take, as it is kept."""
    ratios: dict[str, list[float]] = {}
    for times in found.tasks.values():
        if OURS in times.contenders:
            ratios.setdefault(times.part, []).append(times.contenders[OURS].ratio.median)
    return Costs(
        machine=_machine(found.environment),
        threads=found.threads,
        rounds=found.rounds,
        ours={
            part: (_kept(min(own)), _kept(statistics.median(own)), _kept(max(own)))
            for part, own in ratios.items()
        },
        of={task: _costs_on(times) for task, times in found.tasks.items()},
    )


def _costs_on(times: TaskTimes) -> dict[str, Cost]:
    found = {times.reference: Cost(_kept(times.reference_milliseconds.median), 1.0, 1.0, 1.0)}
    for name, one in times.contenders.items():
        ratio = one.ratio
        values = (one.milliseconds.median, ratio.median, ratio.q1, ratio.q3)
        found[name] = Cost(*map(_kept, values))
    return found


def _machine(environment: Mapping[str, Any]) -> str:
    machine = environment.get("machine", {})
    return f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"


def _kept(x: float) -> float:
    return rounded(x) or 0.0
