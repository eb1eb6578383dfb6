"""The scores of momenta over the problems, and whether one meets the rules.

All stages share one store: what an earlier one has run, a later one does not run again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hvadam_bench import tasks
from hvadam_bench.analysis import effects, sign_flips, statistics
from hvadam_bench.running.records import Record, Store
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.momentum.plan import REFERENCE, Kind, Plan, Problem, Stage
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Arm, Entry

FOLDER = "momentum"
CLIP = math.log(10)
TINY = 1e-300  # losses below it are rounding; a logarithm needs more than 0
LOSS = statistics.Metric("loss", "min")
# How far a frozen rule may be from the best fixed setting of either half.
WITHIN: Mapping[str, float] = {"noisy": 1.03, "smooth": 1.25}


@dataclass(frozen=True)
class Ending:
    """How one entrant ended on one problem."""

    problem: str
    kind: Kind
    smallest: float  # the factor below which a difference does not matter there
    entrant: str
    fixed: bool  # whether it is a control
    lr: float  # that tuning chose
    at_edge: bool  # whether that is still the lowest or the highest rate tried
    losses: tuple[float, ...]  # by seed; infinite where a run diverged


@dataclass(frozen=True)
class Standing:
    """One entrant over all problems: means of the logarithms of its factors to the reference."""

    entrant: str
    fixed: bool
    score: float
    halves: Mapping[str, float]  # the score of each half that has a finished problem
    factors: Mapping[str, float]  # by problem: logarithms, clipped


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate meets the rules, and by how much."""

    entrant: str
    ahead: tuple[str, ...]  # problems on which it is ahead of the reference, by the exact test
    behind: tuple[str, ...]
    rival: str  # the fixed setting with the best score
    gap: float  # the candidate's score less the rival's
    interval: tuple[float, float]  # of the gap, over problems
    half_rivals: Mapping[str, str]  # by half: the fixed setting that is best there
    half_gaps: Mapping[str, float]
    ahead_of_all: tuple[str, ...]  # problems on which its factor is below that of every fixed one
    rules: Mapping[str, bool]  # a, b and c

    @property
    def frozen(self) -> bool:
        """Tell whether it meets all the rules."""
        return all(self.rules.values())


@dataclass(frozen=True)
class StageScores:
    """One stage as far as its problems are finished."""

    name: str
    endings: tuple[Ending, ...]
    standings: tuple[Standing, ...]  # the best first
    unfinished: tuple[str, ...]  # problems with runs to come
    kept: tuple[str, ...]  # the candidates that go on; empty while it is not finished
    seeds: int  # that judge, or that tuned where none judge


@dataclass(frozen=True)
class Momentum:
    """The stages so far, the verdicts of a finished last one, and what it was measured with."""

    versions: Mapping[str, str]
    seconds: float  # of all runs, training and evaluation
    runs: int
    stages: tuple[StageScores, ...]
    verdicts: tuple[Verdict, ...]
    frozen: str  # the candidate that meets the rules, "" if none does or the runs are not over


def measure(plan: Plan, place: Place) -> dict[str, Momentum]:
    """Make the runs of the planned stages, and score all stages as far as the records go."""
    from hvadam_bench.sweeping.sweep import Sweep  # which loads a framework

    store = Store(place.runs / FOLDER, place.results / FOLDER)
    candidates: Sequence[Entry] = plan.candidates
    for stage in plan.stages:
        if stage.name in plan.run:
            contests = [stage.contest(one, candidates) for one in stage.problems]
            costs = Costs(store)
            place.sweep([Sweep([one], store, FOLDER, costs) for one in contests])
        kept = score_stage(stage, candidates, Ledger(store)).kept
        candidates = [one for one in candidates if one.entrant in kept]
        if not candidates:
            break
    return {FOLDER: score(plan, store)}


def score(plan: Plan, store: Store) -> Momentum:
    """Return the scores of all stages that have a finished problem."""
    ledger, found = Ledger(store), list[StageScores]()
    candidates: Sequence[Entry] = plan.candidates
    for stage in plan.stages:
        found.append(score_stage(stage, candidates, ledger))
        candidates = [one for one in candidates if one.entrant in found[-1].kept]
        if not candidates:
            break
    verdicts: tuple[Verdict, ...] = ()
    if len(found) == len(plan.stages) and not found[-1].unfinished:
        verdicts = judge(found[-1].endings)
    scores = {one.entrant: one.score for one in found[-1].standings}
    passing = [one.entrant for one in verdicts if one.frozen]
    runs: list[Record] = list(store)
    versions = runs[0].environment.get("versions", {}) if runs else {}
    return Momentum(
        {name: versions[name] for name in ("hvadam", "torch") if name in versions},
        sum((run.train_seconds + run.evaluation_seconds for run in runs), 0.0),
        len(runs),
        tuple(stage for stage in found if stage.endings),
        verdicts,
        min(passing, key=lambda name: scores[name], default=""),
    )


def score_stage(stage: Stage, candidates: Sequence[Entry], ledger: Ledger) -> StageScores:
    """Return how everyone stands in a stage, over its finished problems."""
    names = {one.entrant for one in candidates}
    endings: list[Ending] = []
    unfinished: list[str] = []
    for problem in stage.problems:
        arms = stage.contest(problem, candidates).arms()
        own = [_ending(problem, arm, arm.entry.entrant not in names, ledger) for arm in arms]
        if None in own:
            unfinished.append(problem.name)
        else:
            endings += [one for one in own if one is not None]
    standings = rank(endings)
    kept = [one.entrant for one in standings if not one.fixed][: stage.keep]
    return StageScores(
        stage.name,
        tuple(endings),
        standings,
        tuple(unfinished),
        () if unfinished else tuple(kept),
        stage.seeds or stage.tuning_seeds,
    )


def rank(endings: Sequence[Ending]) -> tuple[Standing, ...]:
    """Return how everyone stands over the problems, the best score first."""
    reference = {one.problem: one.losses for one in endings if one.entrant == REFERENCE}
    found: list[Standing] = []
    for entrant in dict.fromkeys(one.entrant for one in endings):
        own = [one for one in endings if one.entrant == entrant]
        factors = {one.problem: log_factor(one.losses, reference[one.problem]) for one in own}
        halves = {
            kind: fmean(factors[one.problem] for one in own if one.kind == kind)
            for kind in dict.fromkeys(one.kind for one in own)
        }
        score = fmean(factors.values())
        found.append(Standing(entrant, own[0].fixed, score, halves, factors))
    return tuple(sorted(found, key=lambda one: one.score))


def log_factor(losses: Sequence[float], reference: Sequence[float]) -> float:
    """Return the logarithm of one median over another, within a factor of 10.

    Example:
        >>> round(math.exp(log_factor([1.0, 2.0, 9.0], [4.0, 4.0, 4.0])), 9)
        0.5
        >>> round(math.exp(log_factor([math.inf], [1.0])), 9)
        10.0
    """
    ours, theirs = (max(statistics.median(one), TINY) for one in (losses, reference))
    if ours == theirs:  # infinities too
        return 0.0
    return min(CLIP, max(-CLIP, math.log(ours) - math.log(theirs)))


def judge(endings: Sequence[Ending]) -> tuple[Verdict, ...]:
    """Return what the rules say of every candidate, from judged runs on all problems."""
    standings = rank(endings)
    return tuple(_judge(one, standings, endings) for one in standings if not one.fixed)


def _judge(own: Standing, standings: Sequence[Standing], endings: Sequence[Ending]) -> Verdict:
    fixed = [one for one in standings if one.fixed]
    sides = _sides(own.entrant, endings)
    ahead, behind = (
        tuple(name for name, verdict in sides.items() if verdict == side)
        for side in ("ahead", "behind")
    )
    rival = fixed[0]
    differences = [own.factors[name] - rival.factors[name] for name in own.factors]
    interval = sign_flips.interval(differences, 1 - effects.ALPHA)
    best = {half: min(fixed, key=lambda one: one.halves[half]) for half in own.halves}
    gaps = {half: own.halves[half] - one.halves[half] for half, one in best.items()}
    return Verdict(
        own.entrant,
        ahead,
        behind,
        rival.entrant,
        own.score - rival.score,
        interval,
        {half: one.entrant for half, one in best.items()},
        gaps,
        tuple(
            name
            for name, factor in own.factors.items()
            if factor < min(one.factors[name] for one in fixed)
        ),
        {
            "a": not behind and 2 * len(ahead) >= len(own.factors),
            "b": own.score < rival.score and interval[1] < 0,
            "c": all(gaps[half] <= math.log(WITHIN[half]) for half in gaps),
        },
    )


def _sides(entrant: str, endings: Sequence[Ending]) -> dict[str, str]:
    """Return an entrant's verdict against the reference on each problem, corrected for all."""
    theirs = {one.problem: one for one in endings if one.entrant == REFERENCE}
    found = {
        one.problem: effects.compare(
            one.losses, theirs[one.problem].losses, effects.Scale("factor", one.smallest)
        )
        for one in endings
        if one.entrant == entrant
    }
    return {name: one.verdict for name, one in effects.judge(found).items()}


def _ending(problem: Problem, arm: Arm, fixed: bool, ledger: Ledger) -> Ending | None:
    """Return how an entry ended on a problem; None while runs of it are missing."""
    tuned = arm.tuned(ledger)
    if tuned.best is None:
        return None
    judged = [ledger.get(config) for config in arm.judging(tuned.best)]
    runs = [run for run in judged if run is not None]
    if len(runs) < len(judged):
        return None
    if judged:
        losses = [statistics.final(run, LOSS) for run in runs]
    else:
        chosen = [run for run in tuned.runs if run.config.options == tuned.best]
        losses = [statistics.final(run, LOSS, "valid") for run in chosen]
    rates = [trial.options["lr"] for trial in tuned.trials]
    return Ending(
        problem.name,
        problem.kind,
        tasks.get(problem.task_name).smallest or effects.SMALLEST_FACTOR,
        arm.entry.entrant,
        fixed,
        tuned.best["lr"],
        tuned.best["lr"] in (min(rates), max(rates)),
        tuple(losses),
    )
