"""What a store holds of a contest: its results so far, and who is not finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, task_results
from hvadam_bench.contenders import rank
from hvadam_bench.running.records import Record, Role
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Contest


@dataclass(frozen=True)
class ContestResults:
    """One contest as far as it is recorded."""

    contest: Contest
    results: TaskResults | None  # of all runs that are over, if there are any
    runs: int  # how many are over
    unfinished: list[str]  # the entries with runs to come, by name

    @property
    def finished(self) -> bool:
        """Tell whether every entry has chosen its options and run all its seeds."""
        return self.results is not None and not self.unfinished


def read_contest(contest: Contest, ledger: Ledger) -> ContestResults:
    """Return what is known of a contest; runs that no plan of its own asks for are left out."""
    records: list[Record] = []
    unfinished: list[str] = []
    chosen: dict[str, Mapping[str, Any]] = {}
    for arm in contest.arms():
        tuned = arm.tuned(ledger)
        planned = [] if tuned.best is None else arm.judging(tuned.best)
        judged = [run for run in map(ledger.get, planned) if run is not None]
        records += [_in_role(run, "tuning") for run in tuned.runs]
        records += [_in_role(run, "judged") for run in judged]
        if tuned.best is None or len(judged) < len(planned):
            unfinished.append(arm.entry.entrant)
        if tuned.best is not None:
            chosen[arm.entry.entrant] = tuned.best
    results = None
    if records:
        results = _as_planned(task_results(records, contest.settings), chosen, unfinished)
        results = replace(results, compared_with=contest.reference)
    return ContestResults(contest, results, len(records), unfinished)


def _as_planned(
    results: TaskResults, chosen: Mapping[str, Mapping[str, Any]], unfinished: Sequence[str]
) -> TaskResults:
    """Return results with the plan's choices, those with runs to come marked, and all there."""
    found = dict(results.contenders)
    for name, options in chosen.items():
        if name in found:
            found[name] = replace(found[name], options=options)
    for name in unfinished:
        own = found.get(name, ContenderRuns(name, {}, [], [], []))
        found[name] = replace(own, unfinished=True)
    return replace(results, contenders={name: found[name] for name in sorted(found, key=rank)})


def _in_role(run: Record, role: Role) -> Record:
    """Return a run in the role that the plan has for it: it may have been made for another."""
    return run if run.role == role else replace(run, role=role)
