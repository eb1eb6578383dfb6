"""The records of the comparison, study by study: what is finished, and what is not.

A study is told of only when every entry in it has finished its tuning and run all its seeds: who is
quick to run would else be judged against those who happened to be there. What is not finished is
named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hvadam.bench import recipes, stats
from hvadam.bench.config import RunConfig
from hvadam.bench.evidence import PARTS, store_of
from hvadam.bench.records import FINAL, Record, Store
from hvadam.bench.report.boards import Board, Entry
from hvadam.bench.report.looks import rank
from hvadam.bench.search import Known, Study, Tuned

Studies = Mapping[str, Sequence[Study]]  # part -> its studies, in the order in which they run


class Reading(NamedTuple):
    """One study as far as it is recorded.

    Attributes:
        part, study: Which.
        board: Its entries with their runs, for those that are finished.
        tuned: How each of them chose its options.
        runs: Recorded, in tuning and in judging, of all entries.
        unfinished: The entries that are not.
    """

    part: str
    study: Study
    board: Board | None
    tuned: dict[str, Tuned]
    runs: int
    unfinished: list[str]

    @property
    def finished(self) -> bool:
        """Whether all entries are."""
        return self.board is not None and not self.unfinished


class Recorded(Known):
    """The runs of a store that came to an end, whichever; each file is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[str, Record | None] = {}

    def get(self, config: RunConfig) -> Record | None:
        """The record of a run that is over."""
        if config.key not in self._seen:
            record = self._store.get(config)
            over = record is not None and record.status in FINAL
            self._seen[config.key] = record if over else None
        return self._seen[config.key]


def planned() -> Studies:
    """The studies of `hvadam evidence`."""
    return {part: recipes.get(f"evidence_{part}").studies for part in PARTS}


def read(folder: Path, studies: Studies) -> list[Reading]:
    """Every study, finished or not."""
    return [
        _reading(part, study, Recorded(store_of(folder, part)))
        for part, own in studies.items()
        for study in own
    ]


def _reading(part: str, study: Study, known: Known) -> Reading:
    entries: dict[str, Entry] = {}
    tuned: dict[str, Tuned] = {}
    unfinished: list[str] = []
    runs = 0
    for arm in sorted(study.arms(), key=lambda arm: rank(arm.entry.entrant)):
        name, choice = arm.entry.entrant, arm.tuned(known)
        judging = [] if choice.best is None else arm.final(choice.best)
        judged = [run for run in map(known.get, judging) if run is not None]
        runs += len(choice.runs) + len(judged)
        if choice.best is None or len(judged) < len(judging):
            unfinished.append(name)
            continue
        tuned[name] = choice
        entries[name] = Entry(name, choice.best, judged, choice.runs, [])
    board = _board(study, entries) if entries else None
    return Reading(part, study, board, tuned, runs, unfinished)


def _board(study: Study, entries: dict[str, Entry]) -> Board:
    first = next(iter(entries.values())).judged[0]
    title, metric = first.title or study.task, stats.Metric.of(first)
    return Board(study.task, study.scale, study.protocol, study.settings, title, metric, entries)
