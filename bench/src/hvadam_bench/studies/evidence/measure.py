"""The comparison: its runs, what is measured besides them, and the evidence of all of it.

A contest counts only when every entry in it has finished its tuning and run all its seeds:
otherwise those who run quickly would be judged against those who happened to be there.

A claim of the paper is judged by the paper's own functions and theorems. One about a training that
is not run here is *not testable here*, whatever other trainings say; its note names what would test
it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from hvadam_bench.analysis import effects, profiles
from hvadam_bench.contenders import ADAM_FAMILY, rank
from hvadam_bench.pages.formatting import listed
from hvadam_bench.running.records import Store
from hvadam_bench.studies._results import load
from hvadam_bench.studies._study import Place, Results
from hvadam_bench.studies._words import FAILS, HOLDS, PARTLY, UNTESTED, all_of
from hvadam_bench.studies.evidence.describe import (
    Plain,
    describe_costs,
    describe_noise,
    describe_task,
    kept,
    list_unfinished,
    machine_of,
)
from hvadam_bench.studies.evidence.plan import CONTROL, REFERENCES, Contests, Plan
from hvadam_bench.studies.theory.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory
from hvadam_bench.studies.valley.result import CLAIMED, REGIMES, Comparison, Criterion
from hvadam_bench.sweeping.contest_results import ContestResults, read_contest
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger

NAMED = ("hvadam", "torch")  # the packages whose versions a page names
# What it is to be ahead of all others, or behind one.
HELD = {"ahead": HOLDS, "behind": FAILS}
TOYS: dict[Criterion, str] = {
    "lowest": "The lowest loss on the toy functions",
    "first": "First at the minimum of the toy functions",
}
THEOREMS = {
    HIDDEN_VECTOR: ("The hidden vector finds the trend at a rate of 1/T", "the bound"),
    REGRET: ("A bound on the regret in online convex problems", "the corrected bound"),
    NONCONVEX: ("A rate of convergence in non-convex problems", "the corrected bound"),
}
# What the paper says of trainings | where | the recipes, which take a large GPU days.
TRAININGS = (
    "The highest test accuracy with convolutional networks"
    "|Figure 4: VGG11, ResNet34 and DenseNet121 on CIFAR-10 and CIFAR-100|cifar10 cifar100",
    "Outperforms other adaptive methods on ImageNet|Table 1: ResNet50|imagenet",
    "Outperforms all other optimizers with a vision transformer"
    "|Table 2: ViT-B/16, pre-trained, on CIFAR-10 and CIFAR-100|vit",
    "The lowest perplexity with LSTMs|Figure 5: 1, 2 and 3 layers on the Penn Treebank|lstm",
    "The lowest FID with all GANs"
    "|Figure 6 and Table 3: WGAN, WGAN-GP and SN-GAN on CIFAR-10|gan sngan",
    "The lowest FID with a diffusion model|Appendix G: CIFAR-10|diffusion",
    "Every part of the method helps|Table 4: ablation|ablation",
    "Faster convergence|abstract, Figure 4|cifar10",
    "Outperforms almost all other optimizers|conclusion|",
)


def measure(plan: Plan, place: Place) -> Results:
    """Do the steps of a plan; return their results."""
    found: dict[str, Plain] = {}
    if "runs" in plan.steps:
        from hvadam_bench.sweeping.sweep import Sweep  # which loads a framework

        sweeps: list[Sweep] = []  # in their order: who stops early lacks the last ones
        for part in plan.parts:
            store = store_of(place.runs, part, place.results)
            costs, name = Costs(store), f"evidence_{part}"
            sweeps += [Sweep([one], store, name, costs) for one in plan.contests[part]]
        place.sweep(sweeps)
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


def store_of(runs: Path, part: str, results: Path | None = None) -> Store:
    """Return where a part's records are, packed or not: parts do not compete with each other."""
    name = f"evidence_{part}"
    return Store(runs / name, None if results is None else results / name)


def compute(
    runs: Path, results: Path, contests: Contests, measured: Results | None = None
) -> Plain:
    """Return the evidence of everything that is finished; nothing is run.

    Args:
        runs: The folder of the records that are not packed yet.
        results: The folder of the packed records and of all studies' results.
        contests: What is planned.
        measured: Results that are newer than those in the folder.
    """
    stores = {part: store_of(runs, part, results) for part in contests}
    readings = {
        part: [read_contest(one, ledger) for one in contests[part]]
        for part, store in stores.items()
        for ledger in [Ledger(store)]
    }

    def known(stem: str) -> Plain:
        path = results / f"{stem}.json"
        newer = (measured or {}).get(stem)
        return newer or (json.loads(path.read_text("utf-8")) if path.exists() else {})

    times, earlier = known("evaluation-times"), known("evidence")
    baselines = {
        task: {"method": one["method"], "value": one["test"]}
        for task, one in known("baselines").get("of", {}).items()
    }
    pictures = {
        (task["task"], name): one["picture"]
        for part in REFERENCES
        for task in earlier.get(part, {}).get("tasks", ())
        for name, one in task["contenders"].items()
    }

    def suite(part: str) -> Plain:
        tasks = [
            describe_task(one, stores[part], baselines.get(one.contest.task), pictures)
            for one in readings.get(part, [])
            if one.finished
        ]
        return summarize(part, readings.get(part, []), tasks)

    return {
        **_provenance([one for own in readings.values() for one in own]),
        "smooth": suite("smooth"),
        "minibatch": suite("minibatch"),
        "noise": describe_noise(readings.get("noise", [])),
        "costs": describe_costs(times) if times else None,  # None if they were not measured
        "claims": judge_claims(results),
    }


def summarize(part: str, readings: Sequence[ContestResults], tasks: Sequence[Plain]) -> Plain:
    """Return a suite, from the contests that are planned and the tasks that are finished."""
    entries = [entry for one in readings for entry in one.contest.entries]
    family = {entry.entrant for entry in entries if entry.contender in ADAM_FAMILY}
    drawn = _profiles(tasks)
    solved = [task for task in tasks if task["solved"]]
    return {
        "part": part,
        "reference": REFERENCES[part],  # everyone is compared with it
        "family": sorted(family, key=rank),  # Adam's
        "tasks": list(tasks),
        "unfinished": list_unfinished(readings),
        "standings": _standings(solved),
        # Contender -> on how many solved tasks it has the best median of all.
        "best": dict(Counter(one["best"] for one in solved if one["best"]).most_common()),
        # Contender -> factors, rising, each with the share of the tasks on which the target is
        # reached within this factor of the quickest.
        "profiles": {name: [[*step] for step in steps] for name, steps in drawn.items()},
        # The areas below the profiles, from 0 to 1.
        "scores": {name: kept(profiles.score(steps)) for name, steps in drawn.items()},
    }


def _standings(solved: Sequence[Plain]) -> dict[str, dict[str, int]]:
    """Return on how many tasks HVAdam has which verdict.

    Against the "reference", the best of the "family" and, where it runs, the "control"; "momentum"
    is HVAdam with more momentum against Adam with as much.
    """
    found = {
        "reference": [task["duels"].get(task["reference"]) for task in solved],
        "family": [task["duels"].get(task["family_best"]) for task in solved],
        "control": [task["duels"].get(CONTROL) for task in solved],
        "momentum": [task["momentum"] for task in solved],
    }
    counts = {about: Counter(one["verdict"] for one in own if one) for about, own in found.items()}
    return {
        about: {name: own[name] for name in get_args(effects.Verdict)}
        for about, own in counts.items()
        if own
    }


def _profiles(tasks: Iterable[Plain]) -> dict[str, list[tuple[float, float]]]:
    """Return the performance profiles of those who ran on all the tasks that have a target."""
    aimed = {one["task"]: one["contenders"] for one in tasks if one["target"] is not None}
    everyone = {name for own in aimed.values() for name in own}
    common = [name for name in everyone if all(name in own for own in aimed.values())]
    costs = {
        task: {name: own[name]["to_target"] or float("inf") for name in common}
        for task, own in aimed.items()
    }
    found = profiles.profile(costs)
    return {name: found[name] for name in sorted(common, key=rank)}


def _provenance(readings: Iterable[ContestResults]) -> Plain:
    """Return what the runs of finished contests were made with, and how many they are."""
    everyone = [
        own
        for one in readings
        if one.finished and one.results
        for own in one.results.contenders.values()
    ]
    runs = [run for own in everyone for run in (*own.judged, *own.tuning)]
    made = [run.environment for run in runs]
    versions = [one.get("versions", {}) for one in made]
    return {
        # Of packages; several if they changed meanwhile.
        "versions": {name: sorted({v[name] for v in versions if name in v}) for name in NAMED},
        "machines": sorted({machine_of(one) for one in made}),
        "commits": sorted({str(one.get("commit"))[:7] for one in made}),
        "runs": len(runs),
        "hours": round(sum(run.train_seconds for run in runs) / 3600, 2),  # of training, in all
    }


def judge_claims(results: Path) -> list[dict[str, str]]:
    """Return every claim with its verdict; `results` is where the other studies' results are."""
    found: list[tuple[str, str, str, str]] = []
    if (path := results / "valley.json").exists():
        study = load(Comparison, path)
        for criterion in CLAIMED:
            held: list[str] = []
            note = ""
            for regime, rate in REGIMES.items():
                said = study.functions_by_verdict(regime, criterion)
                held += [HELD.get(word, PARTLY) for word, names in said.items() for _ in names]
                told = "; ".join(f"{word} on {', '.join(names)}" for word, names in said.items())
                note += f"{rate[0].upper()}{rate[1:]}: {told}. "
            note += "[The valley](valley.md)."
            found.append((TOYS[criterion], "Figures 1 to 3", all_of(held), note))
    if (path := results / "theory.json").exists():
        for theorem, one in load(Theory, path).standings.items():
            claim, bound = THEOREMS[theorem]
            note = f"{one.within} cases are within {bound}. "
            if one.vacuous.count:
                note += (
                    f"It is vacuous in {one.vacuous}: no lower than what holds without a theorem. "
                )
            note += "[The theorems, measured](theory.md)."
            found.append((claim, theorem, one.verdict, note))
    for claim, where, recipes in (one.split("|") for one in TRAININGS):
        named = [f"`hvadam sweep {recipe}`" for recipe in recipes.split()] or ["all of the above"]
        note = f"Its trainings are not run here: {listed(named)}."
        found.append((claim, where, UNTESTED, note))
    return [dict(zip(("claim", "where", "verdict", "note"), one, strict=True)) for one in found]
