"""The answer for a task: whom to use, how surely, and how the others stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from hvadam_bench.analysis.effects import FEWEST_PAIRS, Judgement
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options
from hvadam_bench.analysis.judging import UNSOLVED, judge_against
from hvadam_bench.contenders import OURS, label
from hvadam_bench.pages.formatting import counted, listed
from hvadam_bench.pages.standings import difference, more_seeds, units_of

# The words on a contender, and how a list of those begins.
GROUPS = {
    "ahead": "Also ahead",
    "leans ahead": "Also leaning ahead",
    "equal": "Equal to {}",
    "leans equal": "Leaning equal",
    "behind": "Behind",
    "leans behind": "Leaning behind",
    "undecided": "Undecided",
}


class Answer(NamedTuple):
    """Whom to use on a task, and how the others stand.

    Attributes:
        kind: "ahead" if someone is ahead of the reference, "leans" if someone leans so, "stay" if
            nobody does, "none" if nothing can be said.
        sentence: Whom to use, in one plain sentence.
        others: How the others stand.
        badge: The answer in a few words.
        reference: The label of the one that all are compared with.
        ours: The word on HVAdam versus the reference, if it runs.
    """

    kind: Literal["ahead", "leans", "stay", "none"]
    sentence: str = ""
    others: str = ""
    badge: str = "no verdict"
    reference: str = ""
    ours: str = ""

    @property
    def told(self) -> str:
        """Return all of it."""
        return f"{self.sentence} {self.others}".rstrip()


def answer_of(task: TaskResults) -> Answer:
    """Return whom to use on a task, from the verdicts versus its reference."""
    reference = task.reference
    cut = [label(one.name) for one in task.race if one.is_cut]
    judged: dict[str, Judgement] = {}
    if reference and not reference.is_cut:
        found = judge_against(task, reference.name)
        judged = {name: one for name, one in found.items() if one.effect.n}
    if reference is None or not judged:
        return _nothing(label(reference.name) if reference else "", cut)
    sides = {name: one for name, one in judged.items() if one.side == "ahead"}
    settled = {name: one for name, one in sides.items() if one.verdict == "ahead"} or sides
    best = max(settled, key=lambda name: settled[name].effect.estimate, default=reference.name)
    solved = all(one.reason != UNSOLVED for one in judged.values())
    chosen = judged.get(best)
    kind = "stay" if chosen is None else "ahead" if chosen.verdict == "ahead" else "leans"
    runs = [reference, *(task.contenders[name] for name in judged)]
    alike = " and ".join(label(one.name) for one in runs if _collapsed(one))
    sentence = _use(best, judged, reference, task) if solved else _unsolved(judged)
    if alike:
        sentence += f" {alike} collapsed on most seeds: the samples are all alike."
    others = _others(best, judged, reference, task) if solved else []
    others += [f"Not finished: {', '.join(cut)}."] if cut else []
    doing = {"leans": "leans to", "ahead": "use", "stay": "stay with"}[kind]
    return Answer(
        kind,
        sentence,
        " ".join(others),
        f"{doing} {label(best)}" if solved else "no verdict",
        label(reference.name),
        judged[OURS].word if OURS in judged else "",
    )


def overall(answers: Iterable[Answer]) -> str:
    """Return all tasks in one sentence: the answer if there is one task, else HVAdam's story.

    Example:
        >>> both = [Answer("ahead", reference="Adam", ours=word) for word in ("ahead", "equal")]
        >>> overall(both)
        'Against Adam, HVAdam is ahead on 1 of 2 tasks and equal on 1.'
    """
    found = list(answers)
    if len(found) == 1:
        return found[0].sentence
    references = {one.reference for one in found if one.ours}
    counts = Counter(one.ours for one in found if one.ours)
    if not counts:
        return f"{counted(len(found), 'task')}, and whom to use on each."
    said: list[str] = []
    for word in (word for word in GROUPS if counts[word]):
        verb = "" if said or word.startswith("leans") else "is "
        of = "" if said else f" of {counted(counts.total(), 'task')}"
        said.append(f"{verb}{word} on {counts[word]}{of}")
    against = references.pop() if len(references) == 1 else "the reference"
    return f"Against {against}, HVAdam {listed(said)}."


def _nothing(reference: str, cut: list[str]) -> Answer:
    """Return the answer where no verdict is possible yet."""
    said = "There is nothing to compare yet"
    said += f": nobody has a finished run with a seed of {reference}'s." if reference else "."
    if cut:
        said = f"Runs of {listed(cut)} are not finished, so there is no verdict; sweep again."
    return Answer("none", said, reference=reference)


def _unsolved(judged: Mapping[str, Judgement]) -> str:
    n = min(one.effect.n for one in judged.values())
    return (
        f"Nobody solves this task in at least half of the runs, so there is no verdict (n = {n})."
    )


def _use(
    best: str, judged: Mapping[str, Judgement], reference: ContenderRuns, task: TaskResults
) -> str:
    """Return whom to use with which options, how far it is ahead, and on how many seeds."""
    found, runs = judged.get(best), task.contenders[best]
    how = f"{'at lr' if 'lr' in runs.options else 'with'} {describe_options(runs.options)}"
    use = f"se {label(best)} {how}:"
    if found is None:
        n = min(one.effect.n for one in judged.values())
        if n < FEWEST_PAIRS:
            return f"So far, u{use} nobody leans ahead of it (n = {n})."
        return f"U{use} nobody is ahead of it (n = {n})."
    by = f"ahead of {label(reference.name)}, {_lead(runs, found, reference, task)}"
    n, more = found.effect.n, found.more_seeds
    if found.verdict == "ahead":
        return f"U{use} it is {by} (n = {n})."
    settle = f"; about {more_seeds(more)} would settle an effect of that size" if more else ""
    return f"So far, u{use} it leans {by} (n = {n}){settle}."


def _others(
    best: str, judged: Mapping[str, Judgement], reference: ContenderRuns, task: TaskResults
) -> list[str]:
    """Return a sentence for each verdict that others have, with how far they are away."""
    groups: dict[str, list[str]] = {}
    for name, one in judged.items():
        if name == best:
            continue
        told: list[str] = []
        if one.side != "equal":
            told.append(_lead(task.contenders[name], one, reference, task, brief=True))
        told += [more_seeds(one.more_seeds)] if one.more_seeds else []
        groups.setdefault(one.word, []).append(
            label(name) + (f" ({'; '.join(told)})" if told else "")
        )
    return [
        f"{words.format(label(reference.name))}: {', '.join(groups[word])}."
        for word, words in GROUPS.items()
        if word in groups
    ]


def _lead(
    one: ContenderRuns,
    found: Judgement,
    reference: ContenderRuns,
    task: TaskResults,
    *,
    brief: bool = False,
) -> str:
    """Return a difference and what it is of: a ratio or percents of the measure, or its units."""
    told, units = difference(found, one, reference, task, brief=brief), units_of(task)
    if "diverged" in told:
        return told
    return told + (f" {units.measure}" if found.effect.scale.kind == "factor" else units.unit)


def _collapsed(one: ContenderRuns) -> bool:
    return 2 * sum(run.status == "collapsed" for run in one.judged) > len(one.judged)
