"""Records sorted for telling: one board per task and scale, on it each contender's runs.

A contender is judged by the runs of the options that its tuning chose. Where there is no tuning,
the options that did best on the validation split are taken, and the board says so.
"""

from __future__ import annotations

import ast
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from hvadam.bench import stats
from hvadam.bench.config import RunConfig
from hvadam.bench.records import FINAL, Record, Status
from hvadam.bench.report.looks import ABLATION, REFERENCE, rank


@dataclass(frozen=True)
class Entry:
    """One contender, or one variant of it, on one board.

    Attributes:
        name: Its own.
        options: What it is judged with.
        judged: Its runs with these options that came to an end, whichever.
        tuning: The runs that the options were chosen by.
        rest: All others: with other options, or not brought to an end.
    """

    name: str
    options: Mapping[str, Any]
    judged: list[Record]
    tuning: list[Record]
    rest: list[Record]

    @property
    def tuned(self) -> bool:
        """Whether other runs chose the options than those that judge them."""
        return any(run.config.options == self.options for run in self.tuning)


@dataclass(frozen=True)
class Board:
    """One task at one scale, under one protocol and with the same settings."""

    task: str
    scale: str
    protocol: str
    settings: Mapping[str, Any]
    title: str
    metric: stats.Metric
    entries: dict[str, Entry] = field(default_factory=dict)
    _compared: dict[tuple[str, str], stats.Comparison] = field(default_factory=dict)

    @property
    def race(self) -> list[Entry]:
        """Who competes: all but the steps of the ablation."""
        return [entry for name, entry in self.entries.items() if name not in ABLATION]

    @property
    def reference(self) -> Entry | None:
        """Adam, if it has runs to compare with."""
        entry = self.entries.get(REFERENCE)
        return entry if entry and entry.judged else None

    @property
    def measured(self) -> set[str]:
        """All that its runs measured, the metric among it."""
        entries = self.entries.values()
        runs = [run for e in entries for run in (*e.judged, *e.tuning, *e.rest)]
        ends = [run.curve[-1].valid for run in runs if run.curve]
        return set().union(*ends, *(run.test for run in runs))

    def against(self, entry: Entry, other: Entry) -> stats.Comparison:
        """Two entries seed by seed, at a level that allows for as many rivals as there are."""
        pair = (entry.name, other.name)
        if pair not in self._compared:  # asked for by tables, sentences and drawings
            self._compared[pair] = stats.compare(
                entry.judged, other.judged, self.metric, comparisons=max(1, len(self.race) - 1)
            )
        return self._compared[pair]


def arrange(records: Iterable[Record]) -> list[Board]:
    """The boards, by scale from the largest, then by task."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        config = record.config
        key = (config.task, config.scale, config.protocol, stats.options_key(config.settings))
        groups.setdefault(key, []).append(record)
    boards = [_board(runs) for runs in groups.values()]
    large_first = ("paper", "laptop", "smoke")

    def order(board: Board) -> tuple[Any, ...]:
        known = board.scale in large_first
        place = large_first.index(board.scale) if known else len(large_first)
        return (place, board.scale, board.task, board.protocol, stats.options_key(board.settings))

    return sorted(boards, key=order)


def command(config: RunConfig) -> str:
    """What runs it again.

    Example:
        >>> command(RunConfig("digits_mlp", "adam", "smoke", 3, {"lr": 0.01}))
        'hvadam run digits_mlp adam --scale smoke --seed 3 --set lr=0.01'
    """
    words = ["hvadam", "run", config.task, config.contender]
    words += ["--scale", config.scale, "--seed", str(config.seed)]
    if config.protocol != "standard":
        words += ["--protocol", config.protocol]
    if config.variant:
        words += ["--variant", config.variant]
    for prefix, given in (("", config.options), ("task.", config.settings)):
        for name, value in given.items():
            words += ["--set", f"{prefix}{name}={_typed(value)}"]
    return shlex.join(words)


def statuses(runs: Iterable[Record]) -> str:
    """How many ended how.

    Example:
        >>> statuses([])
        'none'
    """
    counts = Counter(run.status for run in runs)
    found = [f"{counts[s]} {s.replace('_', ' ')}" for s in get_args(Status) if counts[s]]
    return ", ".join(found) or "none"


def describe_options(options: Mapping[str, Any]) -> str:
    """The learning rate first, alone if there is nothing else.

    Example:
        >>> describe_options({"gamma": 1, "lr": 0.001}), describe_options({})
        ('0.001, gamma=1', 'defaults')
    """
    others = [f"{name}={_typed(value)}" for name, value in options.items() if name != "lr"]
    lr = [f"{options['lr']:g}"] if "lr" in options else []
    return ", ".join(lr + others) or "defaults"


def _board(records: list[Record]) -> Board:
    first = records[0]
    config = first.config
    board = Board(
        config.task,
        config.scale,
        config.protocol,
        config.settings,
        next((record.title for record in records if record.title), config.task),
        stats.Metric.of(first),
    )
    for name in sorted({record.config.entrant for record in records}, key=rank):
        runs = [record for record in records if record.config.entrant == name]
        board.entries[name] = _entry(name, runs, board.metric)
    return board


def _entry(name: str, runs: list[Record], metric: stats.Metric) -> Entry:
    # What failed for want of memory or disk, or by a mistake, is no result: it will be run again.
    ended = [run for run in runs if run.status in FINAL]
    tuning = [run for run in ended if stats.is_tuning(run)]
    judged = [run for run in ended if not stats.is_tuning(run)]
    options = stats.best_options(tuning, metric) if tuning else {}
    if judged and not any(run.config.options == options for run in judged):
        options = stats.best_options(judged, metric)
    judged = [run for run in judged if run.config.options == options]
    known = {run.config.key for run in (*tuning, *judged)}
    rest = [run for run in runs if run.config.key not in known]
    return Entry(name, options, judged, tuning, rest)


def _typed(value: Any) -> str:
    """As the command line reads it: Python's literals, and anything else as a string.

    Example:
        >>> _typed("late"), _typed("1"), _typed([0.9, 0.999])
        ('late', "'1'", '[0.9, 0.999]')
    """
    if not isinstance(value, str):
        return repr(value)
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return repr(value)
