"""What the comparison found: the content of ``results/evidence.json``.

None stands for what has no number: a run that came to no end, a rate that was not tried. An
interval may reach infinity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.analysis.verdicts import Leaning, Standing
from hvadam_bench.studies import json_form

Goal = Literal["min", "max"]
Number = float | None
Counts = Mapping[str, int]  # standing -> how many
CurvePoint = tuple[int, Number, Number, Number]  # step, median and quartiles over seeds
TracePoint = tuple[int, Number, Number, Number]  # step, gain, alignment, restarts
Kind = Literal["best", "ablation", "sooner", "hidden step", "almost all", "untestable"]


@dataclass(frozen=True)
class Duel:
    """One contender beside another, seed by seed.

    Attributes:
        n: Seeds that both have.
        difference, low, high: The median difference and its interval.
        level, p: The interval's level, corrected, and how often chance does as much.
        standing: What it amounts to.
        leaning: The side on which the interval lies, settled or not.
        percent: The difference and its interval in percent of the other's median; more is better.
    """

    n: int
    difference: Number
    low: Number
    high: Number
    level: Number
    p: Number
    standing: Standing
    leaning: Leaning | None
    percent: tuple[Number, Number, Number]


@dataclass(frozen=True)
class Sooner(Duel):
    """Steps to where Adam's run with the same seed ended, as a share of Adam's, less 1."""

    never: int  # runs that did not get there


@dataclass(frozen=True)
class Pace:
    """The time of a training step over that of Adam, seed by seed."""

    n: int
    median: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Hidden:
    """How much the hidden step did, by the gain at the evaluations; medians over runs."""

    runs: int
    woke: int  # runs in which the gain was seen at 1
    step: Number  # when, first
    gain: Number  # at the end
    restarts: Number


@dataclass(frozen=True)
class Measured:
    """One contender's runs on one task.

    Attributes:
        options: What its tuning chose.
        basis: All its options, as they were when it ran.
        n, values, median, low, high: The judged runs' test values, and their interval.
        diverged, collapsed: How many of the judged runs did.
        trials, trials_lost, at_edge: Its tuning; whether the best rate is at the edge.
        third, triple: What a third of the best rate and three times it cost, in percent of the
            best validation value; None if not tried, infinite if it diverged.
        rates: Learning rate -> validation value in tuning.
    """

    options: Mapping[str, Any]
    basis: Mapping[str, Any]
    n: int
    values: tuple[Number, ...]
    median: Number
    low: Number
    high: Number
    diverged: int
    collapsed: int
    trials: int
    trials_lost: int
    at_edge: bool
    third: Number
    triple: Number
    rates: Mapping[str, Number]

    @property
    def lost(self) -> str:
        """Return why most runs have no value worth a number; empty if they have."""
        if 2 * self.collapsed > self.n:
            return "collapsed"
        return "diverged" if self.median is None else ""


@dataclass(frozen=True)
class Entrant(Measured):
    """One contender on one task, beside Adam."""

    tied: bool  # the best, or not settled to be worse
    against_adam: Duel | None  # None for Adam itself
    pace: Pace | None


@dataclass(frozen=True)
class Level(Measured):
    """One level of the ablation, beside the level before it and beside the first."""

    name: str
    against_previous: Duel | None
    against_first: Duel | None
    trace: tuple[TracePoint, ...]
    hidden: Hidden | None


@dataclass(frozen=True)
class Conditions:
    """What a finished study ran, and how.

    Attributes:
        part, task, title: Where it belongs, and what was trained.
        metric, goal, measured: What counts, and all that was measured.
        settings: Of the task, where not as usual.
        seeds, trials: Of each contender: judged runs, and tuning runs at first.
        steps, evaluations: Of the longest run.
        noise: The standard deviation over seeds of HVAdam's validation value.
        comparisons: For how many the intervals are corrected.
    """

    part: str
    task: str
    title: str
    metric: str
    goal: Goal
    measured: tuple[str, ...]
    settings: Mapping[str, Any]
    seeds: int
    trials: int
    steps: int
    evaluations: int
    noise: Number
    comparisons: int

    @property
    def measure(self) -> Metric:
        """Return the metric with its goal."""
        return Metric(self.metric, self.goal)


@dataclass(frozen=True)
class TaskEvidence(Conditions):
    """A task with everyone on it.

    Attributes:
        contenders: By name, in the order of tables.
        best_other: The best median but HVAdam's and its variants'.
        duels: HVAdam beside each of the others.
        sooner: HVAdam's steps to Adam's end.
        hidden: HVAdam's hidden step.
        curves: Validation values over steps, of the few that are drawn.
    """

    contenders: Mapping[str, Entrant]
    best_other: str | None
    duels: Mapping[str, Duel]
    sooner: Sooner | None
    hidden: Hidden | None
    curves: Mapping[str, tuple[CurvePoint, ...]]


@dataclass(frozen=True)
class AblationEvidence(Conditions):
    """HVAdam as it grows from Adam, level by level, on a task."""

    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Column:
    """One value of an option on a map, at its best learning rate."""

    value: float
    best: Number  # the validation value
    lr: float
    short: Number  # percent from the best of the map
    tied: bool  # not told apart from that


@dataclass(frozen=True)
class OptionMap:
    """Learning rates against the values of another option, one run in a cell."""

    part: str
    task: str
    title: str
    metric: str
    goal: Goal
    option: str
    default: float
    rates: tuple[float, ...]
    values: tuple[float, ...]
    cells: tuple[tuple[Number, ...], ...]  # validation values, a row for each value
    margin: Number  # what two cells must differ by to be told apart
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class OptionValue:
    """How one value of an option did over the maps."""

    short: Mapping[str, Number]  # by task
    worst: Number
    tied: int  # tasks on which it is best or tied


@dataclass(frozen=True)
class OptionEvidence:
    """Which values of an option did well on every task."""

    default: float
    tasks: tuple[str, ...]
    everywhere: tuple[str, ...]
    values: Mapping[str, OptionValue]


@dataclass(frozen=True)
class TaskRates:
    """The best learning rates of HVAdam and AdamW on a task, and what other rates cost HVAdam."""

    task: str
    title: str
    hvadam: float
    adamw: float
    ratio: float
    at_edge: bool
    short_at_adamws: Number  # infinite: diverged
    short: Mapping[str, Number]


@dataclass(frozen=True)
class RateCost:
    """What one learning rate costs HVAdam over the tasks on which it was tried, in percent."""

    tasks: int
    best: int
    median: Number
    worst: Number


@dataclass(frozen=True)
class Rates:
    """Learning rates over the tasks; the ratios are HVAdam's best over AdamW's."""

    tasks: tuple[TaskRates, ...]
    median_ratio: Number
    lowest_ratio: Number
    highest_ratio: Number
    by_rate: Mapping[str, RateCost]


@dataclass(frozen=True)
class StepTime:
    """The time of an optimizer's step over that of fused Adam, and the state it keeps."""

    q1: float
    median: float
    q3: float
    bytes: float  # a parameter, between steps


@dataclass(frozen=True)
class ShapeTimes:
    """Steps on parameters of one shape."""

    title: str
    contenders: Mapping[str, StepTime]


@dataclass(frozen=True)
class StepTimes:
    """Steps by themselves, as `hvadam speed` measured them."""

    cpu: str
    threads: int
    shapes: tuple[ShapeTimes, ...]


@dataclass(frozen=True)
class Unfinished:
    """A study that is cut, and told of nowhere else; `about` if a task has several."""

    part: str
    task: str
    about: str
    finished: int  # contenders
    of: int
    runs: int


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether the records bear it out.

    Attributes:
        claim, where: What it says, and where in the paper.
        kind: By what it is judged.
        figure: The name of the figure that shows it; "" if there is none.
        verdict: One of those in `claims`.
        tasks, rivals: On which tasks and beside whom, of a claim to be the best.
        counts: How HVAdam stands, of a claim over all tasks.
        note: Why it is not tested here.
    """

    claim: str
    where: str
    kind: Kind
    figure: str = ""
    verdict: str = "not finished"
    tasks: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    counts: Counts | None = None
    note: str = ""


@dataclass(frozen=True)
class Versions:
    """What the runs were made with."""

    hvadam: str
    torch: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """All that the pages tell.

    Attributes:
        versions, machines, commits: What the runs were made with and on.
        runs, hours: How many, and their training in all.
        defaults: Of HVAdam's options; more than one value: they changed between runs.
        unfinished: Studies that are cut.
        headline: Whom HVAdam is compared with -> how it stands over the tasks.
        tasks, generative, ablation, maps: The finished studies, part by part.
        options, rates: What they say of HVAdam's options.
        speed: Of steps by themselves, if measured.
        valley: Claim on the toy functions -> verdict -> functions, if studied.
        theory: How many bounds were met, in a line each, if studied.
        claims: The paper's, judged.
    """

    versions: Versions
    machines: tuple[str, ...]
    commits: tuple[str, ...]
    runs: int
    hours: float
    defaults: Mapping[str, tuple[float, ...]]
    unfinished: tuple[Unfinished, ...]
    headline: Mapping[str, Counts]
    tasks: tuple[TaskEvidence, ...]
    generative: tuple[TaskEvidence, ...]
    ablation: tuple[AblationEvidence, ...]
    maps: tuple[OptionMap, ...]
    options: Mapping[str, OptionEvidence]
    rates: Rates
    speed: StepTimes | None
    valley: Mapping[str, Mapping[str, tuple[str, ...]]] | None
    theory: tuple[str, ...] | None
    claims: tuple[Claim, ...]

    def to_text(self) -> str:
        """Return the JSON form, an object a line or so."""
        plain = json_form.to_json(self)
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.replace('},"', '},\n"') + "\n"

    @classmethod
    def load(cls, path: Path) -> Evidence:
        """Read the JSON form."""
        return json_form.from_json(cls, json.loads(path.read_text(encoding="utf-8")))
