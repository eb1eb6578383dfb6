"""Who runs what, kept run by run, so that what is there is not run again.

A *heat* is one contender on one problem: its learning rate is chosen on starts of their own, then
it runs from the reported starts twice, with the paper's common rate and with the chosen one.
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch

from hvadam._version import __version__
from hvadam_bench.contenders import get
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.toy_functions import race
from hvadam_bench.studies.toy_functions.functions import Array, Fan, Problem
from hvadam_bench.studies.toy_functions.race import COMMON_LR, Outcome
from hvadam_bench.studies.toy_functions.result import Regime
from hvadam_bench.studies.toy_functions.starts import starts

LATE = 3  # the horizon, in budgets
WORKERS = 2

# Learning rates 1e-4, 3e-4, ..., 1e-1 for everyone, by their place in 1, 3, 10, 30, ... When the
# best is at an end the grid grows there, up to the limits, for everyone alike.
_GRID = range(-8, -1)
_LIMITS = range(-16, 9)


@dataclass(frozen=True)
class Heat:
    """One contender on one problem, from one field of starts."""

    problem: Problem | Fan
    contender: str
    field: str
    steps: int
    horizon: int


@dataclass(frozen=True)
class HeatResult:
    """How a contender fared on a problem: learning rate and outcome under each regime."""

    problem: Problem
    contender: str
    lrs: Mapping[Regime, float]
    outcomes: Mapping[Regime, Outcome]
    tuning: dict[float, float]  # learning rate -> median loss, infinite if most diverged


def run_heats(heats: Sequence[Heat], folder: Path) -> Iterator[tuple[Heat, list[HeatResult]]]:
    """Run what is not there yet, on two processes, and yield each heat as it is done.

    Args:
        heats: In any order.
        folder: Where runs are kept.

    Yields:
        Each heat with a result for every part of its problem.
    """
    pool = ProcessPoolExecutor(
        WORKERS,
        get_context("spawn"),  # a forked torch may hang
        initializer=_prepare,
    )
    try:
        futures = {pool.submit(run_heat, heat, folder): heat for heat in heats}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Make a worker of this process: one thread, and no last words when it is interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(1)


def run_heat(heat: Heat, folder: Path) -> list[HeatResult]:
    """Choose the learning rate, run from the reported starts, return a result for every part."""
    results: list[HeatResult] = []
    for i, (problem, tuning) in enumerate(
        zip(heat.problem.parts, _tune(heat, folder), strict=True)
    ):
        lrs: dict[Regime, float] = {
            "common": COMMON_LR,
            "tuned": min(tuning, key=lambda lr: (tuning[lr], lr)),
        }
        outcomes: dict[Regime, Outcome] = {}
        for regime, lr in lrs.items():
            run = _Run(heat.problem, heat.contender, lr, heat.field, heat.steps, heat.horizon)
            outcomes[regime] = _parts(heat, run.outcome(folder))[i]
        results.append(HeatResult(problem, heat.contender, lrs, outcomes, tuning))
    return results


def _tune(heat: Heat, folder: Path) -> list[dict[float, float]]:
    """Return the median loss of each learning rate for every part, on starts of their own."""
    tried: dict[int, list[float]] = {}
    wanted = set(_GRID)
    while wanted:
        for k in wanted:
            run = _Run(heat.problem, heat.contender, _rate(k), "tuning", heat.steps, heat.steps)
            parts = _parts(heat, run.outcome(folder))
            tried[k] = [float(np.median(part.loss)) for part in parts]
        best = [min(tried, key=lambda k: (tried[k][i], k)) for i in range(len(heat.problem.parts))]
        around = {neighbour for k in best for neighbour in (k - 1, k + 1)}
        wanted = {k for k in around if k not in tried and k in _LIMITS}
    return [{_rate(k): tried[k][i] for k in sorted(tried)} for i in range(len(best))]


def _parts(heat: Heat, outcome: Outcome) -> list[Outcome]:
    columns = [np.split(column, len(heat.problem.parts)) for column in outcome]
    return [Outcome(*part) for part in zip(*columns, strict=True)]


def _rate(k: int) -> float:
    """Return the k-th of ..., 0.3, 1, 3, 10, ...; the 0th is 1."""
    return float(f"{3 if k % 2 else 1}e{k // 2}")


@dataclass(frozen=True)
class _Run:
    """One contender with one learning rate, from one field of starts, kept in a file."""

    problem: Problem | Fan
    contender: str
    lr: float
    field: str
    steps: int
    horizon: int

    def outcome(self, folder: Path) -> Outcome:
        """Return the outcome from its file; run if there is none, or one of other settings."""
        path = folder / self.problem.label / f"{self.contender}-{self.field}-{self.lr:g}.json"
        kept = self._load(path)
        if kept is not None:
            return kept
        found = race.run(
            self.problem, self.contender, self.lr, self._starts, self.steps, self.horizon
        )
        self._save(path, found)
        return found

    @cached_property
    def _starts(self) -> Array:
        return starts(self.problem, self.field)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """Return all that decides the outcome, as JSON gives it back."""
        chosen = race.options_of(self.contender, self.steps)
        options = {**get(self.contender).defaults, **chosen, "lr": self.lr}
        options = {key: repr(value) for key, value in options.items()}
        made_with = {
            "hvadam": __version__,
            "torch": torch.__version__,
            "options": options,
            "last": race.LAST,
            "starts": crc32(self._starts.tobytes()),
        }
        return json.loads(json.dumps({**asdict(self), **made_with}))

    def _load(self, path: Path) -> Outcome | None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if content.get("settings") != self._settings:
            return None
        rows = content["outcome"]
        loss, late = (
            np.array([math.inf if x is None else x for x in rows[key]])
            for key in ("loss", "late_loss")
        )
        return Outcome(loss, late, np.array(rows["reached"]), np.array(rows["diverged"]))

    def _save(self, path: Path, outcome: Outcome) -> None:
        rows = {key: value.tolist() for key, value in outcome._asdict().items()}
        for key in ("loss", "late_loss"):
            rows[key] = [x if math.isfinite(x) else None for x in rows[key]]
        content = {"settings": self._settings, "outcome": rows}
        # Whole or not at all: an interrupted study goes on from what is there.
        write_atomically(path, json.dumps(content, allow_nan=False).encode())
