"""The table of a contest: what each entry chose at what cost, and how it did in the test."""

from __future__ import annotations

from hvadam_bench.analysis.grouping import ContenderRuns, describe_options
from hvadam_bench.analysis.judging import judge_against
from hvadam_bench.contenders import label
from hvadam_bench.pages.cells import against_cell, reading_of_verdicts, units_of, value_cell
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.records import MEASURED
from hvadam_bench.sweeping.contest_results import ContestResults
from hvadam_bench.sweeping.search import EXTENSIONS


def standings(reading: ContestResults) -> Table:
    """Return the table of a contest that has results."""
    study, results = reading.contest, reading.results
    assert results is not None, "only contests with results have standings"
    units, reference = units_of(results), results.contenders.get(study.reference)
    judged = judge_against(results, study.reference)
    rows: list[list[Cell | str]] = []
    for arm in study.arms():
        one = results.contenders[arm.entry.entrant]
        rows.append(
            [
                Cell.of(one.name),
                value_cell(one, results, units),
                *([against_cell(one, reference, results, judged)] if reference else ()),
                str(len(one.judged)),
                describe_options(one.options),
                _trials(one, len(arm.trials)),
                f"{one.tuning_examples:,}",
                str(sum(run.status not in MEASURED for run in one.tuning) or ""),
            ]
        )
    heads = ["", f"test {units.name}"]
    heads += [f"against {label(study.reference)}"] if reference else []
    heads += ["n", "lr chosen", "trials", "examples", "ended early"]
    verdicts = f" against: {reading_of_verdicts(results, len(judged))}" if judged else ""
    told = (
        "test: median over n fresh seeds and its 95% bootstrap interval. lr chosen: on the "
        f"validation split, with what else was chosen.{verdicts} trials: with +n, of them n past "
        f"the grid's edge, at most {EXTENSIONS}; ! if the choice is still at the edge. examples: "
        "seen in tuning. ended early: trials that diverged or were pruned."
    )
    return Table(heads, rows, f"{results.title}, {study.scale} scale", told)


def _trials(one: ContenderRuns, planned: int) -> str:
    trials = len(one.trials)
    more = trials - planned
    grown = f" (+{more}{' !' if one.at_edge else ''})" if more > 0 else ""
    return f"{trials}{grown}"
