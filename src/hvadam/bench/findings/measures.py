"""Finished studies as plain numbers, the way ``results/evidence.json`` keeps them.

Pages and figures are made of these alone. JSON has no infinity: what came to no end is None, and an
interval that reaches there says "inf" or "-inf".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam.bench import stats
from hvadam.bench.config import entrant
from hvadam.bench.findings.reading import Reading
from hvadam.bench.recipes.gan import NO_HIDDEN_STEP
from hvadam.bench.records import MEASURED, Record
from hvadam.bench.report import tables
from hvadam.bench.report.boards import Board, Entry
from hvadam.bench.report.looks import OURS, REFERENCE

Content = dict[str, Any]
USUAL = entrant(OURS, "usual")
STILL = entrant(OURS, NO_HIDDEN_STEP)
ADAMW = "adamw"
# Whose curves are drawn, beside the best of the others.
DRAWN = (OURS, STILL, REFERENCE, ADAMW)
DIGITS = 6  # significant ones, of the numbers that are kept
# The gain from which on the hidden step is as long as the hidden vector times the learning rate.
AWAKE = 1.0


def is_ours(name: str) -> bool:
    """Whether an entry is HVAdam, in whichever variant."""
    return name.partition(" (")[0] == OURS


def number(x: float | None) -> float | str | None:
    """As JSON keeps it.

    Example:
        >>> number(1 / 3), number(math.nan), number(-math.inf)
        (0.333333, None, '-inf')
    """
    if x is None or math.isnan(x):
        return None
    return float(f"{x:.{DIGITS}g}") if math.isfinite(x) else str(x)


def standing(found: stats.Comparison) -> str:
    """ "ahead", "behind" or "tie"; "unsettled" where too few seeds agree.

    Example:
        >>> metric = stats.Metric("accuracy", "max")
        >>> standing(stats.compare_pairs([(90.0, 80.0)] * 5, metric))
        'ahead'
        >>> standing(stats.compare_pairs([(90.0, 80.0)] * 3, metric))
        'unsettled'
    """
    if found.n < stats.FEWEST_PAIRS:
        return "unsettled"
    if found.verdict == "tie":
        return "tie"
    if not found.settled:
        return "unsettled"
    return "ahead" if found.verdict == "better" else "behind"


def comparison(found: stats.Comparison, metric: stats.Metric, base: float) -> Content:
    """A paired comparison, also as percents of a base, in which more is better."""
    ends = (found.difference, found.interval.low, found.interval.high)
    sign = 1 if metric.goal == "max" else -1
    scale = 100 * sign / abs(base) if math.isfinite(base) and base else math.nan
    middle, low, high = (end * scale for end in ends)
    return {
        "n": found.n,
        **{key: number(end) for key, end in zip(("difference", "low", "high"), ends, strict=True)},
        "level": number(found.interval.level),
        "p": number(found.p),
        "standing": standing(found),
        "leans": None if found.verdict == "tie" else found.verdict,
        "percent": [number(middle), *map(number, sorted((low, high)))],
    }


def describe_board(reading: Reading) -> Content:
    """A finished study: its entries, and HVAdam beside each of the others."""
    board = reading.board
    assert board is not None, "only finished studies are described"
    tied = tables.best_and_ties(board, board.race)
    ours, reference = board.entries.get(OURS), board.reference
    best = _best_of(board, [e for e in board.race if not is_ours(e.name)])
    drawn = [name for name in (*DRAWN, best) if name in board.entries]
    return {
        **_head(reading, board),
        "comparisons": max(1, len(board.race) - 1),
        "entries": {
            entry.name: {
                **_entry(entry, board, reading),
                "tied": entry.name in tied,
                "against_adam": reference and _against(board, entry, reference),
                "pace": reference and _pace(entry, reference),
            }
            for entry in board.race
        },
        "best_other": best,
        "duels": {e.name: _against(board, ours, e) for e in board.race if e is not ours}
        if ours
        else {},
        "sooner": ours and reference and _sooner(board, ours, reference),
        "hidden": ours and _awakening(ours.judged),
        "curves": {
            name: [
                [point.step, *map(number, point.summary[1:])]
                for point in stats.curves(board.entries[name].judged, board.metric)
            ]
            for name in dict.fromkeys(drawn)
        },
    }


def describe_ablation(reading: Reading) -> Content:
    """The levels of the ablation, each beside the one before it and beside the first."""
    board = reading.board
    assert board is not None, "only finished studies are described"
    entries = [board.entries[entry.entrant] for entry in reading.study.entries]
    comparisons = len(entries) - 1

    def beside(entry: Entry, other: Entry) -> Content:
        found = stats.compare(entry.judged, other.judged, board.metric, comparisons=comparisons)
        return comparison(found, board.metric, _median(other, board.metric))

    levels: list[Content] = []
    for i, entry in enumerate(entries):
        levels.append(
            {
                "name": entry.name,
                **_entry(entry, board, reading),
                "against_previous": beside(entry, entries[i - 1]) if i else None,
                "against_first": beside(entry, entries[0]) if i else None,
                "trace": _trace(entry.judged),
                "hidden": _awakening(entry.judged),
            }
        )
    return {**_head(reading, board), "comparisons": comparisons, "levels": levels}


def _head(reading: Reading, board: Board) -> Content:
    longest = max((run for e in board.entries.values() for run in e.judged), key=_steps)
    return {
        "part": reading.part,
        "task": board.task,
        "title": board.title,
        "metric": board.metric.name,
        "goal": board.metric.goal,
        "measured": sorted(board.measured),
        "settings": dict(board.settings),
        "seeds": reading.study.seeds,
        "trials": max(len(arm.trials) for arm in reading.study.arms()),
        "steps": _steps(longest),
        "evaluations": len(longest.curve) - 1,
        "noise": _noise(board),
    }


def _entry(entry: Entry, board: Board, reading: Reading) -> Content:
    values = [stats.final(run, board.metric) for run in entry.judged]
    middle, interval = stats.median(values), stats.bootstrap(values)
    tuned = reading.tuned[entry.name]
    rates = [run for run in entry.tuning if "lr" in run.config.options]
    found = stats.sensitivity(rates, board.metric) if rates else None
    return {
        "options": dict(entry.options),
        "basis": dict(entry.judged[0].basis.get("options", {})),
        "n": len(values),
        "values": [number(v) if math.isfinite(v) else None for v in values],
        "median": number(middle) if math.isfinite(middle) else None,
        "low": number(interval.low),
        "high": number(interval.high),
        "diverged": sum(run.status not in MEASURED for run in entry.judged),
        "collapsed": sum(run.status == "collapsed" for run in entry.judged),
        "trials": len(tuned.trials),
        "trials_lost": sum(run.status not in MEASURED for run in entry.tuning),
        "at_edge": tuned.at_edge,
        "decades": number(found.decades) if found else None,
        "rates": {f"{lr:g}": _finite(v) for lr, v in found.values.items()} if found else {},
    }


def _against(board: Board, entry: Entry, other: Entry) -> Content | None:
    if entry is other:
        return None
    return comparison(board.against(entry, other), board.metric, _median(other, board.metric))


def _best_of(board: Board, entries: Sequence[Entry]) -> str | None:
    """The best median among entries, if any has one."""
    medians = {e.name: _median(e, board.metric) for e in entries}
    finite = {name: value for name, value in medians.items() if math.isfinite(value)}
    pick = min if board.metric.goal == "min" else max
    return pick(finite, key=lambda name: finite[name]) if finite else None


def _sooner(board: Board, ours: Entry, reference: Entry) -> Content:
    """Steps to where Adam's run with the same seed ended, as a share of those that Adam took."""
    own = {run.config.seed: run for run in ours.judged}
    shares: list[float] = []
    for run in reference.judged:
        goal = stats.final(run, board.metric, "valid")
        theirs = stats.time_to_target(run, board.metric, goal)
        if run.config.seed not in own or not math.isfinite(goal) or not theirs or not theirs.step:
            continue
        reached = stats.time_to_target(own[run.config.seed], board.metric, goal)
        shares.append(reached.step / theirs.step if reached else math.inf)
    metric = stats.Metric("steps", "min")
    found = stats.compare_pairs([(share, 1.0) for share in shares], metric)
    return {**comparison(found, metric, 1.0), "never": sum(map(math.isinf, shares))}


def _pace(entry: Entry, reference: Entry) -> Content | None:
    """The time of a step beside Adam's, seed by seed."""
    ours, theirs = (
        {
            run.config.seed: run.train_seconds / _steps(run)
            for run in e.judged
            if run.status in MEASURED and _steps(run) and run.train_seconds
        }
        for e in (entry, reference)
    )
    ratios = [ours[seed] / theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    if not ratios:
        return None
    interval = stats.bootstrap(ratios)
    return {
        "n": len(ratios),
        "median": number(stats.median(ratios)),
        "low": number(interval.low),
        "high": number(interval.high),
    }


def _awakening(runs: Sequence[Record]) -> Content | None:
    """When the hidden step first was of the size of the hidden vector, and how often it began."""
    watched = [run for run in runs if any(point.diagnostics for point in run.curve)]
    if not watched:
        return None
    woke = [
        next((p.step for p in r.curve if _watch(p, "hidden_gain") >= AWAKE), None) for r in runs
    ]
    steps = [step for step in woke if step is not None]
    ends = [run.curve[-1] for run in watched]
    return {
        "runs": len(watched),
        "woke": len(steps),
        "step": number(stats.median(steps)) if steps else None,
        "gain": _middle(_watch(end, "hidden_gain") for end in ends),
        "restarts": _middle(_watch(end, "restarts") for end in ends),
    }


def _trace(runs: Sequence[Record]) -> list[list[float | str | None]]:
    """Step, gain, alignment and restarts over a run, medians over seeds."""
    rows: list[list[float | str | None]] = []
    for step in sorted({p.step for run in runs for p in run.curve if p.diagnostics and p.step}):
        points = [p for run in runs for p in run.curve if p.step == step]
        keys = ("hidden_gain", "alignment", "restarts")
        rows.append([step, *(_middle(_watch(p, key) for p in points) for key in keys)])
    return rows


def _watch(point: Any, key: str) -> float:
    """A diagnostic of the first network; NaN where there is none."""
    networks: Iterable[Mapping[str, float]] = point.diagnostics.values()
    return next((network[key] for network in networks if key in network), math.nan)


def _middle(values: Iterable[float]) -> float | str | None:
    seen = [value for value in values if not math.isnan(value)]
    return number(stats.median(seen)) if seen else None


def _noise(board: Board) -> float | str | None:
    """How much HVAdam's validation value varies with the seed: its standard deviation."""
    ours = board.entries.get(OURS)
    ends = [stats.final(run, board.metric, "valid") for run in ours.judged] if ours else []
    finite = [end for end in ends if math.isfinite(end)]
    if len(finite) < stats.FEWEST_PAIRS:
        return None
    mean = math.fsum(finite) / len(finite)
    return number(math.sqrt(math.fsum((x - mean) ** 2 for x in finite) / (len(finite) - 1)))


def _median(entry: Entry, metric: stats.Metric) -> float:
    return stats.median(stats.final(run, metric) for run in entry.judged)


def _steps(run: Record) -> int:
    return run.curve[-1].step if run.curve else 0


def _finite(value: float) -> float | str | None:
    return number(value) if math.isfinite(value) else None
