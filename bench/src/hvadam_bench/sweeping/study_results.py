"""What a store holds of a study: its results so far, and who is not finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, group
from hvadam_bench.contenders import rank
from hvadam_bench.running.records import Record, Role
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Study


@dataclass(frozen=True)
class StudyResults:
    """One study as far as it is recorded.

    Attributes:
        study: Which.
        results: Of all runs that are over, if there are any.
        runs: How many are.
        unfinished: The entries with runs to come, by name.
    """

    study: Study
    results: TaskResults | None
    runs: int
    unfinished: list[str]

    @property
    def finished(self) -> bool:
        """Tell whether every entry has chosen its options and run all its seeds."""
        return self.results is not None and not self.unfinished


def read_study(study: Study, ledger: Ledger) -> StudyResults:
    """Return what is known of a study; runs that no plan of its own asks for are left out."""
    records: list[Record] = []
    unfinished: list[str] = []
    for arm in study.arms():
        tuned = arm.tuned(ledger)
        planned = [] if tuned.best is None else arm.judging(tuned.best)
        judged = [run for run in map(ledger.get, planned) if run is not None]
        records += [_in_role(run, "tuning") for run in tuned.runs]
        records += [_in_role(run, "judged") for run in judged]
        if tuned.best is None or len(judged) < len(planned):
            unfinished.append(arm.entry.entrant)
    [results] = group(records) or [None]
    if results is not None:
        results = _with_unfinished(results, unfinished)
    return StudyResults(study, results, len(records), unfinished)


def _with_unfinished(results: TaskResults, unfinished: Sequence[str]) -> TaskResults:
    """Return results in which those with runs to come are marked, and there if they have none."""
    found = dict(results.contenders)
    for name in unfinished:
        own = found.get(name, ContenderRuns(name, {}, [], [], []))
        found[name] = replace(own, unfinished=True)
    return replace(results, contenders={name: found[name] for name in sorted(found, key=rank)})


def _in_role(run: Record, role: Role) -> Record:
    """Return a run in the role that the plan has for it: it may have been made for another."""
    return run if run.role == role else replace(run, role=role)
