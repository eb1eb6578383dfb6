"""All that the pages say, out of records and the other results, as ``results/evidence.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hvadam._version import __version__
from hvadam.bench.findings import claims, maps
from hvadam.bench.findings.measures import (
    ADAMW,
    STILL,
    USUAL,
    Content,
    describe_ablation,
    describe_board,
)
from hvadam.bench.findings.reading import Reading
from hvadam.bench.findings.words import count
from hvadam.bench.records import Record
from hvadam.bench.report.looks import OURS, REFERENCE
from hvadam.bench.theory.page import summary as theory_summary
from hvadam.bench.valley.page import REGIMES
from hvadam.bench.valley.page import verdict as valley_verdict

# Of HVAdam's options, those that a reader may want to change.
TOLD = ("gamma", "eps", "hidden_scale", "weight_decay")
# Of the contenders of `hvadam speed`, with what they are.
TIMED = {
    "HVAdam native": "compiled kernel",
    "HVAdam native, late": 'compiled kernel, `hidden_step="late"`',
    "HVAdam native, bf16 state": 'compiled kernel, `state_dtype="bfloat16"`',
    "HVAdam portable": "without a compiler",
    "Adam loop": "`torch.optim.Adam` as it is by default on CPUs",
    "Adam fused": "fused Adam beside a copy of itself: the noise",
}


def summarize(readings: Sequence[Reading], results: Path) -> Content:
    """The whole content; `results` is where the other studies' JSON files are."""
    done = [reading for reading in readings if reading.finished]
    boards = {
        part: [describe_board(one) for one in done if one.part == part]
        for part in ("tasks", "generative")
    }
    noise = {board["task"]: board["noise"] for board in boards["tasks"]}
    mapped = [
        maps.describe_map(one, noise.get(one.study.task))
        for one in done
        if one.part == "sensitivity"
    ]
    content: Content = {
        **_provenance(done),
        "unfinished": [_unfinished(one) for one in readings if not one.finished],
        "headline": headline(boards["tasks"]),
        **boards,
        "ablation": [describe_ablation(one) for one in done if one.part == "ablation"],
        "maps": mapped,
        "options": maps.settle(mapped),
        "rates": maps.rates(boards["tasks"]),
        "speed": _speed(results / "speed.json"),
        "valley": _valley(results / "valley.json"),
        "theory": _theory(results / "theory.json"),
    }
    content["claims"] = claims.judge(content)
    # As a reader of the file would have it: no tuples, keys that are strings.
    return json.loads(json.dumps(content, allow_nan=False))


def headline(boards: Sequence[Content]) -> Content:
    """How often HVAdam is ahead of Adam, of AdamW, of the best of the others and of itself."""
    duels = {
        "adam": [board["duels"].get(REFERENCE) for board in boards],
        "adamw": [board["duels"].get(ADAMW) for board in boards],
        "best other": [board["duels"].get(board["best_other"]) for board in boards],
        "usual": [board["duels"].get(USUAL) for board in boards],
        "no hidden step": [board["duels"].get(STILL) for board in boards],
    }
    return {rival: count(duel for duel in own if duel) for rival, own in duels.items()}


def _unfinished(reading: Reading) -> Content:
    arms = reading.study.arms()
    return {
        "part": reading.part,
        "task": reading.study.task,
        "about": "" if len(arms) > 1 else arms[0].entry.variant,
        "entries": len(arms) - len(reading.unfinished),
        "of": len(arms),
        "runs": reading.runs,
    }


def _provenance(readings: Sequence[Reading]) -> Content:
    runs = list(_runs(readings))
    environments = [run.environment for run in runs]
    ours = [run.basis.get("options", {}) for run in runs if run.config.entrant == OURS]
    machines = {_machine(one.get("machine", {})) for one in environments}
    return {
        "versions": {
            "hvadam": __version__,
            "torch": sorted({one.get("versions", {}).get("torch", "?") for one in environments}),
        },
        "machines": sorted(machines),
        "commits": sorted({str(one.get("commit"))[:7] for one in environments}),
        "runs": len(runs),
        "hours": round(sum(run.train_seconds for run in runs) / 3600, 2),
        # More than one value: the defaults changed between runs.
        "defaults": {
            name: sorted({one[name] for one in ours if name in one and name != "lr"})
            for name in TOLD
        },
    }


def _runs(readings: Sequence[Reading]) -> Iterator[Record]:
    for reading in readings:
        if reading.board:
            for entry in reading.board.entries.values():
                yield from (*entry.judged, *entry.tuning)


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"


def _speed(path: Path) -> Content | None:
    """Time of a step over that of fused Adam, and the bytes that stay between steps."""
    if not path.exists():
        return None
    measured = json.loads(path.read_text(encoding="utf-8"))
    return {
        "cpu": measured["machine"]["cpu"],
        "threads": measured["threads"],
        "shapes": [
            {
                "title": shape["title"],
                "contenders": {
                    one["contender"]: {
                        **{key: round(one["ratio"][key], 4) for key in ("q1", "median", "q3")},
                        "bytes": round(one["state_bytes_per_parameter"], 3),
                    }
                    for one in shape["results"]
                    if one["contender"] in TIMED
                },
            }
            for shape in measured["shapes"]
        ],
    }


def _valley(path: Path) -> Content | None:
    """On how many of the toy functions each claim has which verdict."""
    if not path.exists():
        return None
    functions = json.loads(path.read_text(encoding="utf-8"))["functions"]
    found: Content = {}
    for criterion, claim in (("lowest", "lowest loss at the end"), ("first", "first to arrive")):
        for regime, rate in REGIMES.items():
            words: dict[str, list[str]] = {}
            for name, function in functions.items():
                if "hvadam" in function["racers"]:
                    said = valley_verdict(function["wins"][f"{regime} {criterion}"])
                    words.setdefault(said.split(":")[0].strip("*"), []).append(name)
            found[f"{claim}, {rate}"] = words
    return found


def _theory(path: Path) -> list[str] | None:
    return theory_summary(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
