"""A comparison that never ran: two suites and doses of noise, for the tests of what tells of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from made_records import made_record

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Decay, Point, Record
from hvadam_bench.studies.evidence.measure import compute, store_of
from hvadam_bench.studies.evidence.plan import AS_MUCH, CONTROL, MORE_MOMENTUM, Contests
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Contest, Entry

Fate = Callable[[RunConfig, Record], Record]
SMOOTH = (
    *(Entry("adam"), *MORE_MOMENTUM, Entry("nadam"), Entry("hvadam")),
    Entry("sgd", rate_of="adam"),
)
MINIBATCH = (Entry("adamw"), Entry("nadam"), Entry("hvadam"))
# How many times lower than the others' a loss is; of accuracies, two points for each doubling.
GOOD = {"hvadam": 4.0, CONTROL: 2.0, AS_MUCH: 3.0}
BAD = {"hvadam": 0.25, AS_MUCH: 0.25}
# Examples in a batch, of 64 in all, and the alignment that HVAdam is made to see.
ALIGNMENT = {64: 0.9, 16: 0.6, 4: 0.2}
# A third of the steps comes before the first look at the diagnostics.
STRETCH = 25


def smooth(task: str = "heat_pinn", **more: Any) -> Contest:
    """Return a contest of the smooth suite."""
    return Contest(task, SMOOTH, **{"trials": 3, "tuning_seeds": 2, "seeds": 10, **more})


def minibatch(task: str = "digits_cnn", **more: Any) -> Contest:
    """Return a contest of the mini-batch suite."""
    plan = {"trials": 3, "tuning_seeds": 2, "seeds": 10, "reference": "adamw"}
    return Contest(task, MINIBATCH, **{**plan, **more})


def noise(task: str = "pinn_burgers") -> list[Contest]:
    """Return the contests of one task's doses, from the full batch down."""
    entries = [Entry(name, rates=[3e-3]) for name in ("adam", "hvadam")]
    return [
        Contest(task, entries, settings={"batch": batch}, budget="published", seeds=5)
        for batch in (None, 16, 4)
    ]


def everything() -> Contests:
    """Return a contest or two of each part."""
    return {
        "smooth": [smooth("heat_pinn"), smooth("matrix_factorization")],
        "noise": noise(),
        "minibatch": [minibatch("digits_cnn"), minibatch("pydoc_gru")],
    }


def fill(
    folder: Path,
    studies: Contests,
    skill: Mapping[str, float] = GOOD,
    fate: Fate | None = None,
) -> None:
    """Put records of everything that the studies ask for."""
    for part, own in studies.items():
        store = store_of(folder, part)
        for arms in (one.arms() for one in own):
            ledger = Ledger(store)
            while needed := [one for arm in arms for one in arm.needed(ledger)]:
                for config, role in needed:
                    record = replace(ended(config, skill, part), role=role)
                    store.put(fate(config, record) if fate else record)


def ended(config: RunConfig, skill: Mapping[str, float], part: str) -> Record:
    """A run whose end depends on who runs, a little on the seed, and on the rate: best is 3e-3."""
    off = abs(math.log10(config.options["lr"] / 3e-3))
    wobble = 0.02 * (config.seed % 5) + 0.01 * (config.seed * len(config.entrant) % 3)
    own = skill.get(config.entrant, 1.0)
    batch = config.settings.get("batch") or 64
    if part == "noise" and config.contender == "hvadam":
        own = math.sqrt(batch / 15)
    if config.task.startswith("digits_"):
        value = 90 + 2 * math.log2(own) - off - wobble
        metric, way = "accuracy", [10.0, value - 3, value - 0.5, value]
    else:
        value = 1e-3 / own * math.exp(off + wobble)
        metric, way = "loss", [1.0, 9 * value, 2 * value, value]
    share = {"alignment": ALIGNMENT[batch], "hidden_share": 0.4, "hidden_gain": 2.0}
    points = [
        Point(
            step := 10 * STRETCH * i,
            batch * step,
            2.0 * i,
            None,
            {metric: x},
            {"model": share} if config.contender == "hvadam" and i else {},
        )
        for i, x in enumerate(way)
    ]
    solved = {"arrived": 1.0, "error": 0.01} if part == "smooth" else {}
    record = made_record(value, config=config, metric=metric)
    return replace(
        record,
        curve=tuple(points),
        test={metric: value, **solved},
        decay={"model": Decay("decoupled", 0.01) if part == "minibatch" else Decay("none", 0.0)},
        gradient_evaluations=points[-1].step,
        # From part to part of the test set contenders differ by other amounts.
        test_parts=(value - own, value + own, value) if metric == "accuracy" else (),
    )


def whole(folder: Path, skill: Mapping[str, float]) -> dict[str, Any]:
    """What records of everything say."""
    studies = everything()
    fill(folder, studies, skill)
    return told(folder, studies)


def told(folder: Path, studies: Contests) -> dict[str, Any]:
    """What the records say."""
    return compute(folder, folder / "nowhere", studies)


def made_times(alone: bool | None = True) -> dict[str, Any]:
    """Times of evaluations that nobody measured: of two smooth tasks and one with mini-batches."""

    def made(reference: str, **ratios: float) -> dict[str, Any]:
        times = {
            name: {
                "milliseconds": {"q1": 2 * ratio, "median": 2 * ratio, "q3": 2 * ratio},
                "ratio": {"q1": 0.75 * ratio, "median": ratio, "q3": 1.5 * ratio},
            }
            for name, ratio in ratios.items()
        }
        return {
            "part": "minibatch" if reference == "adamw" else "smooth",
            "reference": reference,
            "contenders": times,
            "reference_milliseconds": {"q1": 1.0, "median": 2.0, "q3": 4.0},
        }

    return {
        "date": "2026-01-01T00:00:00+00:00",
        "environment": {"machine": {"cpu": "Abacus", "cores": 2}},
        "alone": alone,
        "threads": 1,
        "rounds": 3,
        "tasks": {
            "heat_pinn": made("adam", nadam=1.0, hvadam=1.5),
            "matrix_factorization": made("adam", hvadam=1.05),
            "digits_cnn": made("adamw", hvadam=1.25),
        },
    }
