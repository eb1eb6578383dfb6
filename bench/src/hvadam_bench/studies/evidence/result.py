"""The results of the comparison: `evidence.json`, and what is measured besides the runs.

None stands for what has no number: a run that diverged, a measure that a task has not. Differences
between two contenders count more as better: the logarithm of how many times lower a loss is, or
points of accuracy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hvadam_bench.analysis.effects import Verdict
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.studies.speed.result import Quartiles

Number = float | None
Counts = Mapping[str, int]  # verdict or contender -> on how many tasks


@dataclass(frozen=True)
class Difference:
    """The paired difference of one contender to another, over the seeds that both have."""

    rival: str  # the other contender
    n: int  # seeds
    amount: Number
    low: Number  # the ends of the 95% interval
    high: Number
    p: Number  # of the sign-flip test, corrected for all contenders of the task
    verdict: Verdict


@dataclass(frozen=True)
class Entrant:
    """One contender's runs on one task."""

    options: Mapping[str, Any]  # that it was judged with, the learning rate among them
    tuned: bool  # whether its learning rate was chosen among several
    rate_of: str  # whose rate it takes instead; "" if it is its own
    at_edge: bool  # whether the best rate is at the edge of those tried
    rates: Mapping[str, Number]  # learning rate -> validation value, median over tuning seeds
    decay: str  # the weight decay that its runs worked with, such as "decoupled 0.01"
    values: tuple[Number, ...]  # the judged runs' test values, by seed
    median: Number
    low: Number  # the quartiles
    high: Number
    arrived: Number  # the share of runs that solved the task, if the task says what that is
    evaluations: Number  # gradient evaluations of a run, line searches included; the median
    to_target: Number  # those by which half of the runs were at the target; None if fewer were
    others: Mapping[str, Number]  # medians of the other measures
    against_reference: Difference | None  # None for the reference itself
    picture: str | None  # what the run in the middle made of a picture: a PNG in base64

    @property
    def diverged(self) -> int:
        """Return how many runs diverged."""
        return sum(value is None for value in self.values)


@dataclass(frozen=True)
class Trivial:
    """What a trivial model reaches on a task's test set."""

    method: str
    value: float


@dataclass(frozen=True)
class TaskEvidence:
    """A finished task with everyone on it."""

    task: str
    title: str
    scale: str
    settings: Mapping[str, Any]  # that are not as usual at this scale
    metric: str
    goal: Literal["min", "max"]
    steps: int  # of a run, each a gradient evaluation
    evaluations: int  # points of a curve
    seeds: int  # judged runs
    trials: int  # learning rates at first
    tuning_seeds: int  # runs of each rate
    unit: Literal["factor", "points"]  # of differences
    margin: float  # the smallest difference that matters
    power: Number  # the smallest difference that these seeds show four times in five
    reference: str  # everyone is compared with it
    family_best: str | None  # the best of Adam's family, by the medians
    best: str | None  # the best of all, by the medians
    solved: bool  # whether anybody solves the task; if not, it gives no verdict
    target: Number  # the value for the time to the target
    baseline: Trivial | None
    contenders: Mapping[str, Entrant]  # in the order of tables
    duels: Mapping[str, Difference]  # of HVAdam to each of the others
    momentum: Difference | None  # of HVAdam with more momentum to Adam with as much

    @property
    def measure(self) -> Metric:
        """Return the metric with its goal."""
        return Metric(self.metric, self.goal)


@dataclass(frozen=True)
class Unfinished:
    """A contest with runs to come, which counts nowhere."""

    task: str
    about: str  # the batch, if the task has several contests
    finished: int  # contenders
    of: int
    runs: int


@dataclass(frozen=True)
class Suite:
    """The tasks of one part.

    Attributes:
        standings: How HVAdam stands on the tasks that give a verdict: against the "reference", the
            best of the "family" and, where it runs, the "control"; "momentum" is HVAdam with more
            momentum against Adam with as much.
        profiles: Contender -> (factor, share of the tasks on which it reaches the target within
            this factor of the quickest), rising; only of those who ran on all tasks.
    """

    part: str
    reference: str  # everyone is compared with it
    family: tuple[str, ...]  # Adam's
    tasks: tuple[TaskEvidence, ...]  # that are finished
    unfinished: tuple[Unfinished, ...]
    standings: Mapping[str, Counts]
    best: Counts  # contender -> on how many solved tasks it has the best median of all
    profiles: Mapping[str, tuple[tuple[float, float], ...]]
    scores: Mapping[str, float]  # the areas below the profiles, from 0 to 1

    @property
    def rival(self) -> str | None:
        """Return who is most often the best of Adam's family with HVAdam behind; None if nobody."""
        best = ((task.family_best, task.duels) for task in self.tasks if task.solved)
        ahead = [name for name, duels in best if name and duels[name].verdict == "behind"]
        return Counter(ahead).most_common(1)[0][0] if ahead else None


@dataclass(frozen=True)
class Dose:
    """One task at one size of its batches: HVAdam against Adam, and what its hidden vector did."""

    task: str
    title: str
    batch: int  # examples
    share: Number  # of all examples, if that is known
    steps: int
    n: int  # seeds
    amount: Number  # HVAdam's difference to Adam
    low: Number  # its 90% interval: that of five seeds is their range; so few have no 95% one
    high: Number
    alignment: Number  # HVAdam's diagnostics at step `seen`; medians over runs
    hidden_share: Number
    hidden_most: Number  # the largest share of the step that its hidden part ever had
    seen: int
    rates: Mapping[str, Number]  # the learning rates of both


@dataclass(frozen=True)
class Rule:
    """A threshold on a diagnostic above which HVAdam ended lower than Adam."""

    diagnostic: str
    threshold: float
    right: int  # on how many doses it is right
    of: int
    guess: int  # on how many the better of "always" and "never" is

    @property
    def useful(self) -> bool:
        """Return whether it beats guessing by at least a tenth of the doses."""
        return 10 * (self.right - self.guess) >= self.of


@dataclass(frozen=True)
class Noise:
    """The response to ever smaller batches."""

    doses: tuple[Dose, ...]  # that are finished, task by task, the largest batch first
    unfinished: tuple[Unfinished, ...]
    rule: Rule | None  # the best there is; None without doses that tell

    @property
    def hidden_most(self) -> Number:
        """Return the largest share that the hidden part ever had with less than the full batch."""
        noisy = [one for one in self.doses if one.share is not None and one.share < 1]
        return max((one.hidden_most for one in noisy if one.hidden_most is not None), default=None)


@dataclass(frozen=True)
class Cost:
    """A gradient evaluation with one contender's step on one task."""

    milliseconds: float  # the median over rounds
    ratio: float  # to the reference's time: the median and the quartiles; 1 for the reference
    low: float
    high: float


@dataclass(frozen=True)
class Costs:
    """What evaluations took in a pass of their own, contenders in turns with the reference."""

    machine: str
    threads: int
    rounds: int
    ours: Mapping[str, tuple[float, float, float]]  # part -> least, median, most of HVAdam's ratios
    of: Mapping[str, Mapping[str, Cost]]  # task -> contender -> cost


@dataclass(frozen=True)
class Claim:
    """A claim of the paper."""

    claim: str
    where: str  # in the paper
    verdict: str  # one of those in `_words`
    note: str  # why; for a claim that is not testable here, what would test it


@dataclass(frozen=True)
class Evidence:
    """Everything that the pages say."""

    versions: Mapping[str, tuple[str, ...]]  # of packages; several if they changed meanwhile
    machines: tuple[str, ...]
    commits: tuple[str, ...]
    runs: int
    hours: float  # of training, in all
    smooth: Suite
    minibatch: Suite
    noise: Noise
    costs: Costs | None  # None if they were not measured
    claims: tuple[Claim, ...]

    @property
    def suites(self) -> tuple[Suite, Suite]:
        """Return both suites."""
        return self.smooth, self.minibatch

    @property
    def tasks(self) -> tuple[TaskEvidence, ...]:
        """Return the finished tasks of both suites."""
        return (*self.smooth.tasks, *self.minibatch.tasks)


@dataclass(frozen=True)
class Baseline:
    """What a trivial model reaches on one task; on all of the validation text, if it has text."""

    method: str
    metric: str
    valid: float
    test: float


@dataclass(frozen=True)
class Baselines:
    """The baselines of several tasks, by task: `baselines.json`."""

    scale: str
    of: Mapping[str, Baseline]


@dataclass(frozen=True)
class EvaluationTime:
    """One contender's evaluations on one task, with a number per round in the tuples."""

    evaluations: int  # in a timed group, at the least: a step of L-BFGS is never cut
    seconds: tuple[float, ...]  # of an evaluation and its share of a step
    reference_seconds: tuple[float, ...]  # in the reference's group next to it

    DERIVED: ClassVar = ("milliseconds", "ratio")

    @property
    def milliseconds(self) -> Quartiles:
        """Return the quartiles of an evaluation's milliseconds."""
        return Quartiles.of([1e3 * one for one in self.seconds])

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of an evaluation's time over that of the reference's."""
        pairs = zip(self.seconds, self.reference_seconds, strict=True)
        return Quartiles.of([own / other for own, other in pairs])


@dataclass(frozen=True)
class TaskTimes:
    """Everyone's evaluations on one task."""

    part: str
    reference: str
    contenders: Mapping[str, EvaluationTime]  # without the reference

    DERIVED: ClassVar = ("reference_milliseconds",)

    @property
    def reference_milliseconds(self) -> Quartiles:
        """Return the quartiles of the reference's milliseconds, over all its groups."""
        return Quartiles.of(
            [1e3 * x for one in self.contenders.values() for x in one.reference_seconds]
        )


@dataclass(frozen=True)
class EvaluationTimes:
    """Every raw number and what it was made with: `evaluation-times.json`.

    Budgets count evaluations, so that they are the same on every machine; this says what one of
    them takes with the step that follows it, compared with the reference's.
    """

    date: str
    environment: Mapping[str, Any]  # versions, machine and sources
    alone: bool | None  # whether nobody else kept the machine busy; None if that is not known
    threads: int  # of torch
    rounds: int  # pairs of groups for each contender
    tasks: Mapping[str, TaskTimes]
