"""Records in groups: the results of each task, in them the runs of each contender.

A contender is judged by the runs of the options that its tuning chose. Where there is no tuning,
the options that did best on the validation split are taken, and the results say so.
"""

from __future__ import annotations

import ast
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from hvadam_bench.analysis import statistics
from hvadam_bench.contenders import ABLATION, OURS, REFERENCE, rank
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import FINAL, Record, Status

# Task, scale, protocol and settings of records that belong together.
_Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class ContenderRuns:
    """One contender, or one variant of it, on one task."""

    name: str
    options: Mapping[str, Any]  # what it is judged with
    judged: list[Record]  # its runs with these options that came to an end, whichever
    tuning: list[Record]  # the runs that the options were chosen by
    rest: list[Record]  # all others: with other options, or not brought to an end
    unfinished: bool = False  # whether a plan asks for runs that there are not

    @property
    def tuned(self) -> bool:
        """Tell whether the options were chosen by runs of their own, which do not judge them."""
        return any(run.config.options == self.options for run in self.tuning)

    @property
    def trials(self) -> list[Mapping[str, Any]]:
        """Return the options that were tried, or the only ones there are."""
        tried = statistics.by_options(self.tuning or self.judged)
        return [runs[0].config.options for runs in tried.values()]

    @property
    def at_edge(self) -> bool:
        """Tell whether the chosen learning rate is the lowest or the highest of several tried."""
        rates = [options["lr"] for options in self.trials if "lr" in options]
        return len(set(rates)) > 1 and self.options.get("lr") in (min(rates), max(rates))

    @property
    def tuning_examples(self) -> int:
        """Return how many examples the choice of options has seen."""
        return sum(run.curve[-1].examples for run in self.tuning if run.curve)

    @property
    def timed(self) -> list[Record]:
        """Return the judged runs that had the machine to themselves: their seconds count."""
        return [run for run in self.judged if run.alone]

    @property
    def is_cut(self) -> bool:
        """Tell whether runs that choose or judge the options are missing: there is no verdict."""
        lost = [run for run in self.rest if run.status not in FINAL]
        return self.unfinished or any(
            run.role == "tuning" or run.config.options == self.options for run in lost
        )


@dataclass(frozen=True)
class TaskResults:
    """The results of one task at one scale, under one protocol and with the same settings."""

    task: str
    scale: str
    protocol: str
    settings: Mapping[str, Any]
    title: str
    metric: statistics.Metric
    contenders: dict[str, ContenderRuns] = field(default_factory=dict)
    compared_with: str = ""  # the name of the reference, where somebody chose one

    @property
    def race(self) -> list[ContenderRuns]:
        """Return who competes: all but the steps of the ablation."""
        return [one for name, one in self.contenders.items() if name not in ABLATION]

    @property
    def levels(self) -> list[ContenderRuns]:
        """Return the steps of the ablation in their order, with HVAdam as the last."""
        return [self.contenders[name] for name in (*ABLATION, OURS) if name in self.contenders]

    @property
    def reference(self) -> ContenderRuns | None:
        """Return who the others are compared with, if it has runs.

        The one chosen, else Adam, else the first who is not HVAdam, in the order of tables.
        """
        names = [one.name for one in self.race]
        wanted = [name for name in (self.compared_with, REFERENCE) if name in names]
        if len(names) > 1:
            wanted += [*(name for name in names if name != OURS), OURS]
        found = self.contenders.get(wanted[0]) if wanted else None
        return found if found and found.judged else None

    @property
    def measured(self) -> set[str]:
        """Return the names of all that the runs measured, the metric among them."""
        everyone = self.contenders.values()
        runs = [run for one in everyone for run in (*one.judged, *one.tuning, *one.rest)]
        ends = [run.curve[-1].valid for run in runs if run.curve]
        return set().union(*ends, *(run.test for run in runs))


def group(records: Iterable[Record]) -> list[TaskResults]:
    """Return the results of each task among records, by scale from the largest, then by task.

    Tuning runs with settings of their own, such as half the steps, go with the judged runs of the
    same sweep.
    """
    groups: dict[_Key, list[Record]] = {}
    for record in records:
        config = record.config
        key = (config.task, config.scale, config.protocol, statistics.options_key(config.settings))
        groups.setdefault(key, []).append(record)
    places = {"paper": 0, "laptop": 1, "smoke": 2}

    def order(results: TaskResults) -> tuple[Any, ...]:
        settings = statistics.options_key(results.settings)
        place = places.get(results.scale, len(places))
        return (place, results.scale, results.task, results.protocol, settings)

    return sorted(map(task_results, _with_tuning(groups).values()), key=order)


def task_results(
    records: Sequence[Record], settings: Mapping[str, Any] | None = None
) -> TaskResults:
    """Return the results of one task from its records.

    Args:
        records: Of one task, at one scale and under one protocol.
        settings: Of the runs that judge, where tuning may have others; all have the same if None.
    """
    first = records[0]
    config, metric = first.config, statistics.Metric.of(first)
    by_name: dict[str, list[Record]] = {}
    for record in records:
        by_name.setdefault(record.config.entrant, []).append(record)
    return TaskResults(
        config.task,
        config.scale,
        config.protocol,
        config.settings if settings is None else settings,
        next((record.title for record in records if record.title), config.task),
        metric,
        {name: _contender_runs(name, by_name[name], metric) for name in sorted(by_name, key=rank)},
    )


def command(config: RunConfig) -> str:
    """Return the command that makes a run again."""
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
    """Return how many runs ended how, in words."""
    counts = Counter(run.status for run in runs)
    found = [f"{counts[s]} {s.replace('_', ' ')}" for s in get_args(Status) if counts[s]]
    return ", ".join(found) or "none"


def describe_options(options: Mapping[str, Any]) -> str:
    """Return options in words: the learning rate first, alone if there is nothing else.

    Example:
        >>> describe_options({"gamma": 1, "lr": 0.001}), describe_options({})
        ('0.001, gamma=1', 'defaults')
    """
    others = [f"{name}={_typed(value)}" for name, value in options.items() if name != "lr"]
    lr = [f"{options['lr']:g}"] if "lr" in options else []
    return ", ".join(lr + others) or "defaults"


def _with_tuning(groups: Mapping[_Key, list[Record]]) -> dict[_Key, list[Record]]:
    """Return groups in which tuning apart stands with what it chose for, after what is judged."""
    found = {key: list(records) for key, records in groups.items()}
    for key, records in groups.items():
        if any(record.role != "tuning" for record in records):
            continue
        studies = {record.study for record in records} - {""}
        homes = [
            other
            for other, own in groups.items()
            if other[:3] == key[:3]
            and all(record.role != "tuning" for record in own)
            and any(record.study in studies for record in own)
        ]
        if len(homes) == 1:
            found[homes[0]] += found.pop(key)
    return found


def _contender_runs(name: str, runs: list[Record], metric: statistics.Metric) -> ContenderRuns:
    """Return a contender's runs by what they are for, with the options that tuning chose."""
    # What failed for want of memory or disk, or by a mistake, is no result: it will be run again.
    ended = [run for run in runs if run.status in FINAL]
    tuning = [run for run in ended if run.role == "tuning"]
    judged = [run for run in ended if run.role == "judged"]
    options = statistics.best_options(tuning, metric) if tuning else {}
    if judged and not any(run.config.options == options for run in judged):
        options = statistics.best_options(judged, metric)
    judged = [run for run in judged if run.config.options == options]
    known = {run.config.key for run in (*tuning, *judged)}
    rest = [run for run in runs if run.config.key not in known]
    return ContenderRuns(name, options, judged, tuning, rest)


def _typed(value: Any) -> str:
    """Return a value as the command line reads it: a Python literal, or else a bare string.

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
