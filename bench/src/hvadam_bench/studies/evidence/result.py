"""What the comparison found: the content of ``results/evidence.json``.

None stands for what has no number: a run that came to no end, a measure that a task has not. What
compares two contenders counts more as better: the logarithm of how many times lower a loss is, or
points of accuracy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hvadam_bench.analysis.effects import Verdict
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.studies import _results

Goal = Literal["min", "max"]
# How differences are measured: as factors between losses, or as points of accuracy.
Unit = Literal["factor", "points"]
Number = float | None
Counts = Mapping[str, int]  # verdict -> on how many tasks
Profile = tuple[tuple[float, float], ...]  # (factor, share of the tasks within it), rising


@dataclass(frozen=True)
class Beside:
    """One contender beside another, paired by seed.

    Attributes:
        rival: The other.
        n: Seeds that both have.
        amount, low, high: The difference and its 95% interval; more is better.
        p: How often chance does as much, corrected for all contenders of the task.
        verdict: What it amounts to.
    """

    rival: str
    n: int
    amount: Number
    low: Number
    high: Number
    p: Number
    verdict: Verdict


@dataclass(frozen=True)
class Entrant:
    """One contender's runs on one task.

    Attributes:
        options: What it was judged with, the learning rate among them.
        tuned: Whether its learning rate was chosen among several.
        rate_of: Whose rate it takes instead; "" if it is its own.
        at_edge: Whether the best rate is at the edge of those tried.
        rates: Learning rate -> validation value in tuning, median over the tuning seeds.
        decay: The weight decay that its runs worked with, such as "decoupled 0.01".
        values: The judged runs' test values, by seed.
        median, low, high: Their median and quartiles.
        arrived: The share of runs that solved the task, where the task says what that is.
        evaluations: Gradient evaluations of a run, line searches included; the median.
        to_target: Those by which half of the runs were at the target; None if fewer got there.
        others: Medians of what else was measured.
        against_reference: Beside the task's reference; None for itself.
        picture: What the run in the middle had made of a picture at its end: a PNG in base64.
    """

    options: Mapping[str, Any]
    tuned: bool
    rate_of: str
    at_edge: bool
    rates: Mapping[str, Number]
    decay: str
    values: tuple[Number, ...]
    median: Number
    low: Number
    high: Number
    arrived: Number
    evaluations: Number
    to_target: Number
    others: Mapping[str, Number]
    against_reference: Beside | None
    picture: str | None

    @property
    def diverged(self) -> int:
        """Return how many runs came to no end."""
        return sum(value is None for value in self.values)


@dataclass(frozen=True)
class Trivial:
    """What a trivial model reaches on a task's test set."""

    method: str
    value: float


@dataclass(frozen=True)
class TaskEvidence:
    """A finished task with everyone on it.

    Attributes:
        task, title: Its name, and what was run.
        scale, settings: Its scale, and what is not as usual there.
        metric, goal: What is judged.
        steps: Of a run, each a gradient evaluation.
        evaluations: Points of a curve.
        seeds, trials, tuning_seeds: Judged runs; learning rates at first, and runs of each rate.
        unit, margin: How differences are measured, and the smallest that matters.
        power: The smallest difference to the reference that these seeds show four times in five.
        reference, family_best, best: Whom all are compared with; the best of Adam's family and the
            best of all, by their medians.
        solved: Whether anybody solves it; if not, it gives no verdict.
        target: The value for the time to the target.
        baseline: What it must beat.
        contenders: By name, in the order of tables.
        duels: HVAdam beside each of the others.
        momentum: HVAdam with more momentum beside Adam with as much, where both ran.
    """

    task: str
    title: str
    scale: str
    settings: Mapping[str, Any]
    metric: str
    goal: Goal
    steps: int
    evaluations: int
    seeds: int
    trials: int
    tuning_seeds: int
    unit: Unit
    margin: float
    power: Number
    reference: str
    family_best: str | None
    best: str | None
    solved: bool
    target: Number
    baseline: Trivial | None
    contenders: Mapping[str, Entrant]
    duels: Mapping[str, Beside]
    momentum: Beside | None

    @property
    def measure(self) -> Metric:
        """Return the metric with its goal."""
        return Metric(self.metric, self.goal)


@dataclass(frozen=True)
class Unfinished:
    """A study with runs to come, which counts nowhere; `about` if a task has several."""

    task: str
    about: str
    finished: int  # contenders
    of: int
    runs: int


@dataclass(frozen=True)
class Suite:
    """The tasks of one kind.

    Attributes:
        part: "smooth" or "minibatch".
        reference: Whom everyone is compared with.
        family: Adam's family there.
        tasks: Those that are finished.
        unfinished: Those that are not.
        standings: How HVAdam stands on the tasks that give a verdict: beside the "reference", the
            best of the "family" and, where it runs, the "control"; "momentum" is HVAdam with more
            momentum beside Adam with as much.
        best: Contender -> on how many tasks that are solved it has the best median of all.
        profiles: Contender -> on which share of the tasks it reaches the target within which
            factor of the quickest; of those who ran on all of them.
        scores: Contender -> the area below that, from 0 to 1.
    """

    part: str
    reference: str
    family: tuple[str, ...]
    tasks: tuple[TaskEvidence, ...]
    unfinished: tuple[Unfinished, ...]
    standings: Mapping[str, Counts]
    best: Counts
    profiles: Mapping[str, Profile]
    scores: Mapping[str, float]

    @property
    def rival(self) -> str | None:
        """Return who is most often the best of Adam's family with HVAdam behind; None if nobody."""
        best = ((task.family_best, task.duels) for task in self.tasks if task.solved)
        ahead = [name for name, duels in best if name and duels[name].verdict == "behind"]
        return Counter(ahead).most_common(1)[0][0] if ahead else None


@dataclass(frozen=True)
class Dose:
    """One task at one size of its batches: HVAdam beside Adam, and what its hidden vector did.

    Attributes:
        task, title: Which.
        batch: Examples in a batch, `share` of all that there are, if that is known.
        steps, n: Of a run; seeds.
        amount, low, high: HVAdam beside Adam, and its 90% interval: of five seeds the range, for
            so few have no 95% one.
        alignment, hidden_share: HVAdam's diagnostics at step `seen`; medians over runs.
        hidden_most: The largest share of the step that its hidden part had at any evaluation.
        rates: The learning rates of both.
    """

    task: str
    title: str
    batch: int
    share: Number
    steps: int
    n: int
    amount: Number
    low: Number
    high: Number
    alignment: Number
    hidden_share: Number
    hidden_most: Number
    seen: int
    rates: Mapping[str, Number]


@dataclass(frozen=True)
class Rule:
    """A threshold on a diagnostic above which HVAdam ended lower than Adam.

    Attributes:
        diagnostic: Which.
        threshold: Where the doses part best.
        right: On how many doses it is right, `of` so many.
        guess: On how many the better of "always" and "never" is.
    """

    diagnostic: str
    threshold: float
    right: int
    of: int
    guess: int

    @property
    def useful(self) -> bool:
        """Return whether it beats guessing by at least a tenth of the doses."""
        return 10 * (self.right - self.guess) >= self.of


@dataclass(frozen=True)
class Noise:
    """The dose of noise and the response to it.

    Attributes:
        doses: Those that are finished, task by task, the largest batch first.
        unfinished: Those that are not.
        rule: A rule of thumb, the best there is; None without doses that tell.
    """

    doses: tuple[Dose, ...]
    unfinished: tuple[Unfinished, ...]
    rule: Rule | None

    @property
    def hidden_most(self) -> Number:
        """Return the largest share that the hidden part ever had with less than the full batch."""
        noisy = [one for one in self.doses if one.share is not None and one.share < 1]
        return max((one.hidden_most for one in noisy if one.hidden_most is not None), default=None)


@dataclass(frozen=True)
class Cost:
    """A gradient evaluation with one contender's step on one task.

    Attributes:
        milliseconds: The median over rounds.
        ratio, low, high: In that of the task's reference: median and quartiles; 1 for itself.
    """

    milliseconds: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Costs:
    """What evaluations took in a pass of their own, contenders in turns with the reference.

    Attributes:
        machine, threads, rounds: How it was measured.
        ours: Part -> HVAdam's time in the reference's: least, median and most of the tasks.
        of: Task -> contender -> what it took.
    """

    machine: str
    threads: int
    rounds: int
    ours: Mapping[str, tuple[float, float, float]]
    of: Mapping[str, Mapping[str, Cost]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        claim, where: What it says, and where in the paper.
        verdict: One of those in `claims`.
        note: Why; for what is not testable here, what would test it.
    """

    claim: str
    where: str
    verdict: str
    note: str


@dataclass(frozen=True)
class Evidence:
    """All that the pages tell.

    Attributes:
        versions: Of packages that the runs were made with; more than one if they changed.
        machines, commits: What they were made on, and of.
        runs, hours: How many, and their training in all.
        smooth, minibatch: The two suites.
        noise: What lies between them.
        costs: What evaluations take; None if that was not measured.
        claims: The paper's, judged.
    """

    versions: Mapping[str, tuple[str, ...]]
    machines: tuple[str, ...]
    commits: tuple[str, ...]
    runs: int
    hours: float
    smooth: Suite
    minibatch: Suite
    noise: Noise
    costs: Costs | None
    claims: tuple[Claim, ...]

    @property
    def suites(self) -> tuple[Suite, Suite]:
        """Return both suites."""
        return self.smooth, self.minibatch

    @property
    def tasks(self) -> tuple[TaskEvidence, ...]:
        """Return the finished tasks of both suites."""
        return (*self.smooth.tasks, *self.minibatch.tasks)

    def to_text(self) -> str:
        """Return the JSON form, an object a line or so."""
        plain = _results.to_json(self)
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.replace('},"', '},\n"') + "\n"

    @classmethod
    def load(cls, path: Path) -> Evidence:
        """Read the JSON form."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))
