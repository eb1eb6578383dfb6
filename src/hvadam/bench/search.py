"""How options are chosen fairly: as many trials for everyone, judged by seeds nobody tuned on.

A study is one task and those who compete on it. Each entry gets the same number of trials: learning
rates spread around its own default, in steps of about 3. Where a study searches another option of
one contender as well, the others get as many trials on a finer grid of learning rates. The best end
on the validation split wins, by the median over tuning seeds. A best rate at the edge of those
tried is no best rate yet, so the grid grows by one trial there, for whoever it is, up to
`EXTENSIONS` times. Then the winner runs with fresh seeds, and only those runs are reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from hvadam import optimizers
from hvadam.bench import stats
from hvadam.bench.config import RunConfig, entrant
from hvadam.bench.records import Record

# Six steps of about 3 on one side: three decades beyond the grid.
EXTENSIONS = 6

PrunerName = Literal["none", "median", "halving"]


@dataclass(frozen=True)
class Entry:
    """Who competes, and how.

    Attributes:
        contender: One of `hvadam.optimizers.names()`.
        options: Kept fixed; of "lr", where the search for it begins.
        axes: Other options to search, with their values.
        rates: The learning rates to try, where a study repeats a published search.
        variant: A word for the options, where the contender has other entries in the study.
    """

    contender: str
    options: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    rates: Sequence[float] = ()
    variant: str = ""

    @property
    def entrant(self) -> str:
        """Its name in the study."""
        return entrant(self.contender, self.variant)


@dataclass(frozen=True)
class Study:
    """One task, everyone who competes on it, and what each may spend.

    Attributes:
        task: One of `hvadam.bench.tasks.names()`.
        entries: Who competes.
        scale, protocol, settings: As in `RunConfig`.
        budget: "equal" for as many trials each; "published" to repeat what a paper did, where one
            entry may search and another take its options from the literature.
        trials: Learning rates for the entry with the most axes. With 1 nobody tunes.
        tuning_seeds: Runs of each trial.
        seeds: Runs of each winner.
        pruner: What stops hopeless trials early, the same for all; never a winner's runs.
        reference: Who the others are compared with.
        only: Which contenders to run, if not all; the budget stays that of all.
    """

    task: str
    entries: Sequence[Entry]
    scale: str = "laptop"
    protocol: str = "standard"
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Literal["equal", "published"] = "equal"
    trials: int = 7
    tuning_seeds: int = 1
    seeds: int = 5
    pruner: PrunerName = "none"
    reference: str = "adam"
    only: Sequence[str] | None = None

    def arms(self) -> list[Arm]:
        """The entries to run, with their trials."""
        sizes = [math.prod(map(len, entry.axes.values())) for entry in self.entries]
        return [
            Arm(self, entry, max(sizes))
            for entry in self.entries
            if self.only is None or entry.contender in self.only
        ]


class Trial(NamedTuple):
    """Options to try, and how many rungs its learning rate is above the first one."""

    rung: int
    options: dict[str, Any]


class Tuned(NamedTuple):
    """How far an arm's choice of options has come.

    Attributes:
        trials: All there are so far.
        runs: Of those, what is over.
        best: The choice, once there is one.
        extensions: By how many trials the grid has grown.
        at_edge: Whether the choice is still at the edge of a grid that may not grow further.
    """

    trials: list[Trial]
    runs: list[Record]
    best: dict[str, Any] | None
    extensions: int
    at_edge: bool


class Known:
    """The runs that are over, by configuration."""

    def get(self, config: RunConfig) -> Record | None:
        """The record of a run that need not run again, if it is over."""
        raise NotImplementedError


class Arm:
    """One entry of a study: what it needs to run next, given what is over.

    It remembers nothing, so a sweep that was killed goes on by asking again.
    """

    def __init__(self, study: Study, entry: Entry, most: int) -> None:
        """`most` is the number of combinations that the study's largest axes have."""
        self.study = study
        self.entry = entry
        combinations = math.prod(map(len, entry.axes.values()))
        self.fineness = max(1, round(most / combinations))
        self._first = first_rate(entry)
        self.trials = self._published() if study.budget == "published" else self._equal(most)

    def needed(self, known: Known) -> list[RunConfig]:
        """What to run next; empty when all is over. What follows from it may be more."""
        tuned = self.tuned(known)
        configs = self._tuning(tuned.trials) if tuned.best is None else self.final(tuned.best)
        return [config for config in configs if known.get(config) is None]

    def tuned(self, known: Known) -> Tuned:
        """How far the choice of options has come."""
        trials = list(self.trials)
        if len(trials) == 1:
            return Tuned(trials, [], trials[0].options, 0, False)
        while True:
            extensions = len(trials) - len(self.trials)
            configs = self._tuning(trials)
            runs = [run for run in map(known.get, configs) if run is not None]
            if len(runs) < len(configs):
                return Tuned(trials, runs, None, extensions, False)
            best = stats.best_options(runs, stats.Metric.of(runs[0]))
            beyond = None if self.study.budget == "published" else self._beyond(trials, best)
            if beyond is None or extensions == EXTENSIONS:
                return Tuned(trials, runs, best, extensions, beyond is not None)
            trials.append(beyond)

    def rivals(self, config: RunConfig, known: Known) -> list[Record]:
        """The tuning runs that are over and share a tuning run's seed; none for a winner's run."""
        runs = self.tuned(known).runs
        return [run for run in runs if run.config.seed == config.seed]

    def final(self, options: Mapping[str, Any]) -> list[RunConfig]:
        """The runs that judge a choice of options."""
        return [self._config(options, seed) for seed in range(self.study.seeds)]

    @property
    def runs(self) -> int:
        """How many runs there are to the end, if the grid does not grow."""
        return len(self._tuning(self.trials)) + self.study.seeds

    def _beyond(self, trials: Sequence[Trial], best: Mapping[str, Any]) -> Trial | None:
        """The trial past the edge that the best one is at, if it is at one."""
        key = stats.options_key(best)
        at = next(t.rung for t in trials if stats.options_key(t.options) == key)
        rungs = [t.rung for t in trials]
        if min(rungs) < at < max(rungs):
            return None
        rung = at + (-self.fineness if at == min(rungs) else self.fineness)
        return Trial(rung, {**best, "lr": self._rate(rung)})

    def _equal(self, most: int) -> list[Trial]:
        """As many trials as everyone in the study has, from the first learning rate outwards."""
        count = self.study.trials * most if self.study.trials > 1 else 1
        rungs = itertools.chain([0], *([-i, i] for i in range(1, count)))
        trials = (
            Trial(rung, {**self.entry.options, "lr": self._rate(rung), **others})
            for rung in rungs
            for others in _product(self.entry.axes)
        )
        return list(itertools.islice(trials, count))

    def _published(self) -> list[Trial]:
        """Every combination of what the entry names."""
        axes = _product({"lr": self.entry.rates or [self._rate(0)], **self.entry.axes})
        return [Trial(i, {**self.entry.options, **others}) for i, others in enumerate(axes)]

    def _rate(self, rung: int) -> float:
        return ladder(self._first, rung, self.fineness)

    def _tuning(self, trials: Sequence[Trial]) -> list[RunConfig]:
        if len(trials) == 1:
            return []
        seeds = range(stats.TUNING_SEED, stats.TUNING_SEED + self.study.tuning_seeds)
        return [self._config(trial.options, seed) for trial in trials for seed in seeds]

    def _config(self, options: Mapping[str, Any], seed: int) -> RunConfig:
        study = self.study
        return RunConfig(
            study.task,
            self.entry.contender,
            study.scale,
            seed,
            options,
            study.settings,
            study.protocol,
            self.entry.variant,
        )


def first_rate(entry: Entry) -> float:
    """Where the search for an entry's learning rate begins: its own, or its contender's default.

    Example:
        >>> first_rate(Entry("adam")), first_rate(Entry("adam", {"lr": 2e-4}))
        (0.001, 0.0002)
    """
    if "lr" in entry.options:
        return entry.options["lr"]
    spec = optimizers.get(entry.contender)
    default = math.log(spec.defaults["lr"])
    return min(spec.search["lr"], key=lambda lr: abs(math.log(lr) - default))


def ladder(first: float, rung: int, fineness: int = 1) -> float:
    """A learning rate so many rungs above another: 1, 3, 10, 30, and `fineness` rungs to each.

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
    studies: Sequence[Study],
    *,
    tasks: Sequence[str] | None = None,
    contenders: Sequence[str] | None = None,
    seeds: int | None = None,
    scale: str | None = None,
    pruner: str | None = None,
) -> list[Study]:
    """Studies with less in them, or with other values; None leaves all as it is."""
    changes = {"only": contenders, "seeds": seeds, "scale": scale, "pruner": pruner}
    given = {name: value for name, value in changes.items() if value is not None}
    return [replace(study, **given) for study in studies if tasks is None or study.task in tasks]


def _product(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of values, the last option changing first.

    Example:
        >>> list(_product({"a": (1, 2), "b": (3,)}))
        [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
