"""The answer in words: who is ahead of Adam, by how much and how surely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from hvadam.bench import stats
from hvadam.bench.report.boards import Board, Entry
from hvadam.bench.report.looks import OURS, REFERENCE, look
from hvadam.bench.report.numbers import Units, chance
from hvadam.bench.report.tables import units_of

Standing = Literal["ahead", "behind", "tie", "unsettled", "none"]


class Verdict(NamedTuple):
    """What one board says of HVAdam, and of the others in a line."""

    standing: Standing
    sentence: str
    others: str


def verdict(board: Board) -> Verdict:
    """One plain sentence on HVAdam against Adam; then who else is ahead, ties or is behind."""
    ours, reference = board.entries.get(OURS), board.reference
    if reference is None:
        return Verdict("none", "Adam has no finished runs here, so there is no verdict.", "")
    others = _others(board, reference)
    if ours is None or not ours.judged:
        return Verdict("none", "HVAdam has no finished runs here.", others)
    standing, sentence = _sentence(board, ours, reference)
    alike = [look(entry.name).label for entry in (ours, reference) if _collapsed(entry)]
    if alike:
        sentence += f" {' and '.join(alike)} collapsed on most seeds: the samples are all alike."
    return Verdict(standing, sentence, others)


def overall(verdicts: Iterable[Verdict]) -> str:
    """All boards in one sentence.

    Example:
        >>> overall([Verdict("ahead", "", ""), Verdict("tie", "", "")])
        'Against Adam, HVAdam is ahead on 1 of 2 tasks and ties on 1.'
        >>> overall([])
        'There is nothing to compare yet: no task has finished runs of both HVAdam and Adam.'
    """
    counts = Counter(one.standing for one in verdicts if one.standing != "none")
    total = counts.total()
    if not total:
        return "There is nothing to compare yet: no task has finished runs of both HVAdam and Adam."
    words = {
        "ahead": "is ahead on {}",
        "behind": "is behind on {}",
        "tie": "ties on {}",
        "unsettled": "is unsettled on {} for want of seeds",
    }
    parts = [text.format(counts[key]) for key, text in words.items() if counts[key]]
    parts[0] += f" of {total} task{'s' * (total > 1)}"
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Against Adam, HVAdam {listed}."


def by(found: stats.Comparison, metric: stats.Metric, units: Units) -> str:
    """How far ahead or behind, as a size: less perplexity is ahead too."""
    ends = [found.interval.low, found.interval.high]
    if (found.verdict == "better") == (metric.goal == "min"):
        ends = [-end for end in reversed(ends)]
    return f"{units.value(abs(found.difference))}{units.unit} [{', '.join(map(units.bound, ends))}]"


def _sentence(board: Board, ours: Entry, reference: Entry) -> tuple[Standing, str]:
    found, units = board.against(ours, reference), units_of(board)
    us, them = look(OURS).label, look(REFERENCE).label
    seeds = f"n = {found.n}"
    if math.isinf(found.difference):
        lost, won = (us, them) if found.difference == board.metric.worst else (them, us)
        standing: Standing = "unsettled"
        if found.settled:
            standing = "ahead" if won == us else "behind"
        return standing, f"{lost} diverged on most seeds where {won} did not ({seeds})."
    if found.n < stats.FEWEST_PAIRS:
        plural = "seed" if found.n == 1 else "seeds"
        return "unsettled", f"{us} and {them} have {found.n or 'no'} {plural} in common: too few."
    if found.verdict == "tie":
        amount = f"{units.change(found.difference)}{units.unit}"
        interval = units.interval(found.interval, signed=True)
        return "tie", f"{us} and {them} tie: {amount} {interval} ({seeds})."
    amount = by(found, board.metric, units)
    if found.settled:
        word = "ahead of" if found.verdict == "better" else "behind"
        standing = "ahead" if found.verdict == "better" else "behind"
        return standing, f"{us} is {word} {them} by {amount} ({seeds})."
    return "unsettled", (
        f"{us} did {found.verdict} than {them}, by {amount}, but with {found.n} seeds chance alone "
        f"does as much {chance(found.p)}: not settled."
    )


def _others(board: Board, reference: Entry) -> str:
    """The rest of the field against Adam."""
    units = units_of(board)
    groups: dict[str, list[str]] = {"Ahead of Adam": [], "Tie or unsettled": [], "Behind": []}
    for entry in board.race:
        if entry is reference or entry.name == OURS or not entry.judged:
            continue
        found, label = board.against(entry, reference), look(entry.name).label
        label += " (collapsed)" if _collapsed(entry) else ""
        if not found.settled:
            groups["Tie or unsettled"].append(label)
        elif found.verdict == "worse":
            lost = " (diverged)" if math.isinf(found.difference) else ""
            groups["Behind"].append(label + lost)
        elif math.isinf(found.difference):
            groups["Ahead of Adam"].append(f"{label}, for Adam diverged")
        else:
            groups["Ahead of Adam"].append(f"{label} by {by(found, board.metric, units)}")
    told = [f"{place}: {', '.join(names)}." for place, names in groups.items() if names]
    return " ".join(told)


def _collapsed(entry: Entry) -> bool:
    return 2 * sum(run.status == "collapsed" for run in entry.judged) > len(entry.judged)
