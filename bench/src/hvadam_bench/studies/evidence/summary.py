"""All that the pages tell, out of records and the other studies' results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hvadam._version import __version__
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.running.records import Record
from hvadam_bench.studies.evidence import claims, maps
from hvadam_bench.studies.evidence.describe import (
    ADAMW,
    STILL,
    USUAL,
    describe_ablation,
    describe_task,
)
from hvadam_bench.studies.evidence.parts import PartResults, Studies, planned, read
from hvadam_bench.studies.evidence.result import (
    Counts,
    Evidence,
    ShapeTimes,
    StepTime,
    StepTimes,
    TaskEvidence,
    Unfinished,
    Versions,
)
from hvadam_bench.studies.speed.result import Speed
from hvadam_bench.studies.theorems.result import Theory
from hvadam_bench.studies.toy_functions.result import CLAIMED, REGIMES, Comparison

# Of HVAdam's options, those that a reader may want to change.
TOLD = ("gamma", "eps", "hidden_scale", "weight_decay")
# Of the contenders of `hvadam speed`, those that the pages tell of.
TIMED = (
    *("HVAdam native", "HVAdam native, late", "HVAdam native, bf16 state", "HVAdam portable"),
    *("Adam loop", "Adam fused"),
)
VALLEY = {"lowest": "lowest loss at the end", "first": "first to arrive"}


def compute(folder: Path, results: Path, studies: Studies | None = None) -> Evidence:
    """Return the evidence of all that is finished.

    Args:
        folder: What `hvadam evidence` works in.
        results: Where the packed records and the other studies' JSON files are.
        studies: What was planned, if not all of `hvadam evidence`.

    Raises:
        ValueError: no study is finished.
    """
    readings = read(folder, planned() if studies is None else studies, results)
    if not any(reading.finished for reading in readings):
        runs = sum(reading.runs for reading in readings)
        raise ValueError(
            f"no study in {folder} is finished ({runs} runs recorded), so there is nothing to "
            "tell; `hvadam evidence` makes them."
        )
    return summarize(readings, results)


def summarize(readings: Sequence[PartResults], results: Path) -> Evidence:
    """Return the whole evidence; `results` is where the other studies' JSON files are."""
    done = [reading for reading in readings if reading.finished]

    def part(name: str) -> list[PartResults]:
        return [reading for reading in done if reading.part == name]

    tasks = tuple(map(describe_task, part("tasks")))
    noise = {task.task: task.noise for task in tasks}
    mapped = tuple(maps.describe_map(one, noise.get(one.study.task)) for one in part("sensitivity"))
    found = Evidence(
        **_provenance(done),
        unfinished=tuple(_unfinished(one) for one in readings if not one.finished),
        headline=headline(tasks),
        tasks=tasks,
        generative=tuple(map(describe_task, part("generative"))),
        ablation=tuple(map(describe_ablation, part("ablation"))),
        maps=mapped,
        options=maps.settle(mapped),
        rates=maps.rates(tasks),
        speed=_speed(results / "speed.json"),
        valley=_valley(results / "valley.json"),
        theory=_theory(results / "theory.json"),
        claims=(),
    )
    return replace(found, claims=claims.judge(found))


def headline(tasks: Sequence[TaskEvidence]) -> dict[str, Counts]:
    """Return how HVAdam stands beside Adam, AdamW, the best of the others and itself."""
    rivals = {
        "adam": [REFERENCE for _ in tasks],
        "adamw": [ADAMW for _ in tasks],
        "best other": [task.best_other for task in tasks],
        "usual": [USUAL for _ in tasks],
        "no hidden step": [STILL for _ in tasks],
    }
    return {
        about: claims.count(
            task.duels[name]
            for task, name in zip(tasks, names, strict=True)
            if name is not None and name in task.duels
        )
        for about, names in rivals.items()
    }


def _unfinished(reading: PartResults) -> Unfinished:
    arms = reading.study.arms()
    return Unfinished(
        part=reading.part,
        task=reading.study.task,
        about="" if len(arms) > 1 else arms[0].entry.variant,
        finished=len(arms) - len(reading.unfinished),
        of=len(arms),
        runs=reading.runs,
    )


def _provenance(readings: Sequence[PartResults]) -> dict[str, Any]:
    runs = list(_runs(readings))
    environments = [run.environment for run in runs]
    ours = [run.basis.get("options", {}) for run in runs if run.config.entrant == OURS]
    torch = {one.get("versions", {}).get("torch", "?") for one in environments}
    return {
        "versions": Versions(__version__, tuple(sorted(torch))),
        "machines": tuple(sorted({_machine(one.get("machine", {})) for one in environments})),
        "commits": tuple(sorted({str(one.get("commit"))[:7] for one in environments})),
        "runs": len(runs),
        "hours": round(sum(run.train_seconds for run in runs) / 3600, 2),
        "defaults": {
            name: tuple(sorted({one[name] for one in ours if name in one})) for name in TOLD
        },
    }


def _runs(readings: Sequence[PartResults]) -> Iterator[Record]:
    for reading in readings:
        if reading.results:
            for runs in reading.results.contenders.values():
                yield from (*runs.judged, *runs.tuning)


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"


def _speed(path: Path) -> StepTimes | None:
    """Return the time of a step over that of fused Adam, and the bytes that stay between steps."""
    if not path.exists():
        return None
    measured = Speed.load(path)
    shapes = [
        ShapeTimes(
            shape.title,
            {
                one.contender: StepTime(
                    q1=round(one.ratio.q1, 4),
                    median=round(one.ratio.median, 4),
                    q3=round(one.ratio.q3, 4),
                    bytes=round(one.state_bytes_per_parameter, 3),
                )
                for one in shape.results
                if one.contender in TIMED
            },
        )
        for shape in measured.shapes
    ]
    return StepTimes(measured.machine["cpu"], measured.threads, tuple(shapes))


def _valley(path: Path) -> dict[str, dict[str, tuple[str, ...]]] | None:
    """Return on which of the toy functions each claim has which verdict."""
    if not path.exists():
        return None
    study = Comparison.load(path)
    return {
        f"{VALLEY[criterion]}, {rate}": {**study.functions_by_verdict(regime, criterion)}
        for criterion in CLAIMED
        for regime, rate in REGIMES.items()
    }


def _theory(path: Path) -> tuple[str, ...] | None:
    return Theory.load(path).summary() if path.exists() else None
