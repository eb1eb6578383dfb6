"""The study: who runs what, kept run by run, so that what is there is not run again.

A *heat* is one contender on one problem: its learning rate is chosen on starts of their own, then
it runs from the reported starts twice, with the paper's common rate and with the chosen one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
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
from hvadam.bench.valley import race
from hvadam.bench.valley.functions import Array, Fan, Problem
from hvadam.bench.valley.race import COMMON_LR, Outcome
from hvadam.bench.valley.starts import starts
from hvadam.optimizers import get

LATE = 3  # the horizon, in budgets
WORKERS = 2
REGIMES = ("common", "tuned")

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
class Result:
    """How a contender fared on a problem: learning rate and outcome under each regime."""

    problem: Problem
    contender: str
    lrs: dict[str, float]
    outcomes: dict[str, Outcome]
    tuning: dict[float, float]  # learning rate -> median loss, infinite if most diverged


def run_heats(heats: Sequence[Heat], folder: Path) -> Iterator[tuple[Heat, list[Result]]]:
    """Run what is not there yet, on two processes, and hand over each heat as it is done.

    Args:
        heats: In any order.
        folder: Where runs are kept.

    Yields:
        Each heat with a result for every part of its problem.
    """
    pool = ProcessPoolExecutor(
        WORKERS,
        get_context("spawn"),  # a forked torch may hang
        initializer=torch.set_num_threads,
        initargs=(1,),
    )
    try:
        futures = {pool.submit(run_heat, heat, folder): heat for heat in heats}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def run_heat(heat: Heat, folder: Path) -> list[Result]:
    """Choose the learning rate, then run from the reported starts; a result for every part."""
    results: list[Result] = []
    for i, (problem, tuning) in enumerate(
        zip(heat.problem.parts, _tune(heat, folder), strict=True)
    ):
        lrs = {"common": COMMON_LR, "tuned": min(tuning, key=lambda lr: (tuning[lr], lr))}
        outcomes: dict[str, Outcome] = {}
        for regime, lr in lrs.items():
            run = _Run(heat.problem, heat.contender, lr, heat.field, heat.steps, heat.horizon)
            outcomes[regime] = _parts(heat, run.outcome(folder))[i]
        results.append(Result(problem, heat.contender, lrs, outcomes, tuning))
    return results


def _tune(heat: Heat, folder: Path) -> list[dict[float, float]]:
    """For every part, the median loss of each learning rate, on starts that no report uses."""
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
    """The k-th of ..., 0.3, 1, 3, 10, ...; the 0th is 1."""
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
        """From its file; if there is none, or one made with other settings, run."""
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
        """All that decides the outcome, as JSON gives it back."""
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
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: an interrupted study goes on from what is there.
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        unfinished.replace(path)
