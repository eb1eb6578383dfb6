"""How options are chosen fairly: as many trials for everyone, judged by seeds nobody tuned on.

A contest is one task and those who compete on it. Each entry gets the same number of trials:
learning rates spread around its own default, in steps of about 3. Where a contest or a contender of
a user searches another option as well, the others get as many trials on a finer grid of learning
rates; one that names the learning rates to try gets those, and the others no fewer. The best end
on the validation split wins, by the median over tuning seeds, or the middle of those that tie with
it. A best rate at the edge of those tried is no best rate yet, so the grid grows by one trial
there, for whoever it is, up to `EXTENSIONS` times. Then the winner runs with fresh seeds, and only
those runs are reported. Tuning may train for less than what it chooses for, the same for all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from hvadam_bench import contenders
from hvadam_bench import tasks as known_tasks
from hvadam_bench.analysis import statistics
from hvadam_bench.registry import RefusedError, instead
from hvadam_bench.running.config import RunConfig, entrant
from hvadam_bench.running.records import Record, Role
from hvadam_bench.sweeping.ledger import Ledger

# Six steps of about 3 on one side: three decades beyond the grid.
EXTENSIONS = 6
# Seeds of tuning start here, those of judging at 0: nobody is judged by the run it was chosen for.
TUNING_SEED = 1000

PrunerName = Literal["none", "median", "halving"]


@dataclass(frozen=True)
class Entry:
    """A contender of a contest, and how it competes.

    Attributes:
        contender: One of `hvadam_bench.contenders.names()`.
        options: Kept fixed; of "lr", where the search for it begins.
        axes: Other options to search, with their values.
        rates: The learning rates to try and no others, where a search is a published one; with one
            of them nobody tunes.
        variant: A word for the options, where the contender has other entries in the contest.
        rate_of: The entrant of the contest whose tuned learning rate it takes, instead of tuning.
    """

    contender: str
    options: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    rates: Sequence[float] = ()
    variant: str = ""
    rate_of: str = ""

    @property
    def entrant(self) -> str:
        """Return its name in the contest."""
        return entrant(self.contender, self.variant)

    def given(self, options: Mapping[str, Any]) -> Entry:
        """Return the entry with some options more, or others."""
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True)
class Contest:
    """One task, everyone who competes on it, and what each may spend.

    Attributes:
        task: One of `hvadam_bench.tasks.names()`.
        entries: The contenders.
        scale, protocol, settings: As in `RunConfig`.
        tuning_settings: What tuning runs have instead of some of these, such as half the steps.
        budget: "equal" for as many trials each; "published" to repeat what a paper did, where one
            entry may search and another take its options from the literature.
        trials: Learning rates for the entry with the most axes. With 1 nobody tunes.
        fineness: Into how many a step of about 3 between learning rates is cut, the same for all.
        tuning_seeds: Runs of each trial.
        choice: "best" for the trial that ended best; "plateau" for the middle of the rates that tie
            with it, as `plateau_options` tells them.
        split_error: Of the metric on the validation split, which "plateau" counts in.
        seeds: Runs of each winner.
        first_seed: Of these; another where a contest judges anew what an earlier one has judged.
        pruner: What stops hopeless trials early, the same for all; never a winner's runs.
        reference: The contender that the others are compared with.
        only: Which contenders to run, if not all; the budget stays that of all.
    """

    task: str
    entries: Sequence[Entry]
    scale: str = "laptop"
    protocol: str = "standard"
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuning_settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Literal["equal", "published"] = "equal"
    trials: int = 7
    fineness: int = 1
    tuning_seeds: int = 1
    choice: Literal["best", "plateau"] = "best"
    split_error: float = 0.0
    seeds: int = 5
    first_seed: int = 0
    pruner: PrunerName = "none"
    reference: str = "adam"
    only: Sequence[str] | None = None

    def arms(self) -> list[Arm]:
        """Return the entries to run, with their trials; who tunes for them is one of them."""
        entries = list(self.entries)
        named: list[int] = []  # how many trials each contender's own search names
        most = 1
        for place, given in enumerate(self.entries):
            entry = entries[place] = _with_search(given) if self.trials > 1 else given
            if entry.rates and not given.rates:
                named.append(_combinations(entry) * len(entry.rates))
            else:
                most = max(most, _combinations(entry))
        count = max([self.trials * most, *named]) if self.trials > 1 else 1
        own = {one.entrant: Arm(self, one, most, count) for one in entries if not one.rate_of}
        for one in entries:
            if one.rate_of:
                own[one.entrant] = Arm(self, one, most, count, own[one.rate_of])
        chosen = [one for one in entries if self.only is None or one.contender in self.only]
        wanted = {name for one in chosen for name in (one.entrant, one.rate_of)}
        return [own[one.entrant] for one in entries if one.entrant in wanted]


class Trial(NamedTuple):
    """Options to try, and how many rungs its learning rate is above the first one."""

    rung: int
    options: dict[str, Any]


class Tuned(NamedTuple):
    """How far an arm's choice of options has come."""

    trials: list[Trial]  # all there are so far
    runs: list[Record]  # what is over
    best: dict[str, Any] | None  # the choice, once there is one


class Planned(NamedTuple):
    """A run that a contest asks for, and what for."""

    config: RunConfig
    role: Role


class Arm:
    """One entry of a contest: what it needs to run next, given what is over.

    It remembers nothing, so a sweep that was killed goes on by asking again.
    """

    def __init__(
        self, contest: Contest, entry: Entry, most: int, count: int, tuner: Arm | None = None
    ) -> None:
        """Set the trials: `count` for who names none, where the largest axes have `most` values.

        `tuner` is the arm whose learning rate it takes, if it does not tune.
        """
        self.contest = contest
        self.entry = entry
        self.tuner = tuner
        self.fineness = max(1, round(most / _combinations(entry)))
        self._first = first_rate(entry)
        self.trials = self._trials(count)

    def needed(self, known: Ledger) -> list[Planned]:
        """Return what to run next; empty when all is over. What follows from it may be more."""
        tuned = self.tuned(known)
        if tuned.best is None:
            planned = [Planned(config, "tuning") for config in self.tuning(tuned.trials)]
        else:
            planned = [Planned(config, "judged") for config in self.judging(tuned.best)]
        return [one for one in planned if known.get(one.config) is None]

    def tuned(self, known: Ledger) -> Tuned:
        """Return how far the choice of options has come."""
        if self.tuner is not None:
            theirs = self.tuner.tuned(known).best
            own = None if theirs is None else {**self.entry.options, "lr": theirs["lr"]}
            return Tuned([], [], own)
        trials = list(self.trials)
        if len(trials) == 1:
            return Tuned(trials, [], trials[0].options)
        while True:
            configs = self.tuning(trials)
            runs = [run for run in map(known.get, configs) if run is not None]
            if len(runs) < len(configs):
                return Tuned(trials, runs, None)
            metric = statistics.Metric.of(runs[0])
            best = statistics.best_options(runs, metric)
            grown = len(trials) - len(self.trials) == EXTENSIONS
            beyond = None if self._is_named else self._beyond(trials, best)
            if beyond is None or grown:
                if self.contest.choice == "plateau":
                    best = statistics.plateau_options(runs, metric, self.contest.split_error)
                return Tuned(trials, runs, best)
            trials.append(beyond)

    def rivals(self, config: RunConfig, known: Ledger) -> list[Record]:
        """Return the tuning runs that are over and share a tuning run's seed."""
        runs = self.tuned(known).runs
        return [run for run in runs if run.config.seed == config.seed]

    def tuning(self, trials: Sequence[Trial]) -> list[RunConfig]:
        """Return the runs that choose among trials; none where there is but one."""
        if len(trials) == 1:
            return []
        seeds = range(TUNING_SEED, TUNING_SEED + self.contest.tuning_seeds)
        settings = {**self.contest.settings, **self.contest.tuning_settings}
        return [self._config(one.options, seed, settings) for one in trials for seed in seeds]

    def judging(self, options: Mapping[str, Any]) -> list[RunConfig]:
        """Return the runs that judge a choice of options."""
        first = self.contest.first_seed
        seeds = range(first, first + self.contest.seeds)
        return [self._config(options, seed, self.contest.settings) for seed in seeds]

    @property
    def runs(self) -> int:
        """Return how many runs there are to the end, if the grid does not grow."""
        return len(self.tuning(self.trials)) + self.contest.seeds

    def _beyond(self, trials: Sequence[Trial], best: Mapping[str, Any]) -> Trial | None:
        """Return the trial past the edge that the best one is at, if it is at one."""
        key = statistics.options_key(best)
        at = next(t.rung for t in trials if statistics.options_key(t.options) == key)
        rungs = [t.rung for t in trials]
        if min(rungs) < at < max(rungs):
            return None
        rung = at + (-self.fineness if at == min(rungs) else self.fineness)
        return Trial(rung, {**best, "lr": self._rate(rung)})

    @property
    def _is_named(self) -> bool:
        """Tell whether the entry or its contest names the trials, so that no grid grows."""
        return bool(self.entry.rates) or self.contest.budget == "published"

    def _trials(self, count: int) -> list[Trial]:
        """Return all combinations that are named, or as many as everyone has, from the middle."""
        entry = self.entry
        if self.tuner is not None:
            return []
        if self._is_named:
            axes = _product({"lr": entry.rates or [self._rate(0)], **entry.axes})
            return [Trial(i, {**entry.options, **others}) for i, others in enumerate(axes)]
        trials = (
            Trial(rung, {**entry.options, "lr": self._rate(rung), **others})
            for rung in itertools.chain([0], *([-i, i] for i in range(1, count)))
            for others in _product(entry.axes)
        )
        return list(itertools.islice(trials, count))

    def _rate(self, rung: int) -> float:
        return ladder(self._first, rung, self.fineness * self.contest.fineness)

    def _config(
        self, options: Mapping[str, Any], seed: int, settings: Mapping[str, Any]
    ) -> RunConfig:
        own, entry = self.contest, self.entry
        about = (options, settings, own.protocol, entry.variant)
        return RunConfig(own.task, entry.contender, own.scale, seed, *about)


def first_rate(entry: Entry) -> float:
    """Return where the search for an entry's learning rate begins: its own, or the default.

    Example:
        >>> first_rate(Entry("adam")), first_rate(Entry("adam", {"lr": 2e-4}))
        (0.001, 0.0002)
    """
    if "lr" in entry.options:
        return entry.options["lr"]
    spec = contenders.get(entry.contender)
    return spec.defaults["lr"] if spec.first_rate is None else spec.first_rate


def _with_search(entry: Entry) -> Entry:
    """Return an entry with its contender's own search, where it names nothing to try itself."""
    axes = dict(contenders.get(entry.contender).search)
    if not axes or entry.axes or entry.rates or entry.rate_of:
        return entry
    axes = {name: values for name, values in axes.items() if name not in entry.options}
    return replace(entry, rates=axes.pop("lr", ()), axes=axes)


def _combinations(entry: Entry) -> int:
    return math.prod(map(len, entry.axes.values()))


def ladder(first: float, rung: int, fineness: int = 1) -> float:
    """Return a learning rate so many rungs above another, on 1, 3, 10, 30, finer if asked.

    Example:
        >>> [ladder(1e-3, rung) for rung in (-2, -1, 0, 1, 2)]
        [0.0001, 0.0003, 0.001, 0.003, 0.01]
        >>> [ladder(3e-3, rung) for rung in (-1, 0, 1)]
        [0.001, 0.003, 0.01]
        >>> [ladder(2e-4, rung, fineness=2) for rung in range(4)]
        [0.0002, 0.000346, 0.0006, 0.0011]
    """
    if rung == 0:
        return first
    mantissa = float(f"{first:e}".partition("e")[0])
    if math.isclose(mantissa, 3):  # so that 3 is followed by 10, not 9
        first, rung = first / 3, rung + fineness
    whole, part = divmod(rung, fineness)
    lower, upper = (10.0 ** (i // 2) * (3 if i % 2 else 1) for i in (whole, whole + 1))
    return float(f"{first * lower * (upper / lower) ** (part / fineness):.2e}")


def narrowed(
    contests: Sequence[Contest],
    *,
    tasks: Sequence[str] | None = None,
    contenders: Sequence[str] | None = None,
    reference: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    rates: Sequence[float] = (),
    seeds: int | None = None,
    scale: str | None = None,
    pruner: str | None = None,
) -> list[Contest]:
    """Return contests with less in them, or with other values; None leaves all as it is.

    Contenders that a contest does not know join it, as they are by default. Where its reference is
    not among those named, the first of them is.

    Args:
        contests: What to narrow.
        tasks: Which of them to keep, by task.
        contenders: The contenders to run.
        reference: The one that the others are compared with; it runs, named among them or not.
        options: What all contenders have instead of their own.
        settings: What the tasks have instead of theirs, in tuning too.
        rates: The learning rates that everyone tries, instead of a search.
        seeds, scale, pruner: As in `Contest`.

    Raises:
        RefusedError: a task has no such scale.
    """
    if contenders is not None and reference is not None:
        contenders = list(dict.fromkeys([*contenders, reference]))
    changes = {"only": contenders, "seeds": seeds, "scale": scale, "pruner": pruner}
    given = {name: value for name, value in changes.items() if value is not None}
    search: dict[str, Any] = {"rates": rates, "rate_of": ""} if rates else {}
    found: list[Contest] = []
    for contest in contests:
        if tasks is not None and contest.task not in tasks:
            continue
        known = {entry.contender for entry in contest.entries}
        joining = contenders or ([reference] if reference else [])
        entries = [*contest.entries, *(Entry(name) for name in joining if name not in known)]
        kept = reference is None and (contenders is None or contest.reference in contenders)
        tuning = {k: v for k, v in contest.tuning_settings.items() if k not in (settings or {})}
        found.append(
            replace(
                contest,
                entries=[replace(one.given(options or {}), **search) for one in entries],
                settings={**contest.settings, **(settings or {})},
                tuning_settings=tuning,
                reference=contest.reference if kept else reference or (contenders or [""])[0],
                **given,
            )
        )
    for contest in found:
        scales = list(known_tasks.get(contest.task).scales)
        if contest.scale not in scales:
            there = instead(contest.scale, scales)
            raise RefusedError(f"{contest.task} has no scale {contest.scale!r}; {there}")
    return found


def _product(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Give every combination of values, the last option changing first.

    Example:
        >>> list(_product({"a": (1, 2), "b": (3,)}))
        [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
