"""The answer for a task: whom to use, how surely, and how the others stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hvadam_bench.analysis.effects import FEWEST_PAIRS, Judgement
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options
from hvadam_bench.analysis.judging import UNSOLVED, judge_against
from hvadam_bench.pages.cells import amount, more_seeds, units_of
from hvadam_bench.pages.formatting import counted, listed
from hvadam_bench.pages.palette import OURS, label

# The words on a contender, and how a list of those begins.
_GROUPS = {
    "ahead": "Also ahead",
    "leans ahead": "Also leaning ahead",
    "equal": "Equal to {}",
    "leans equal": "Leaning equal",
    "behind": "Behind",
    "leans behind": "Leaning behind",
    "undecided": "Undecided",
}


@dataclass(frozen=True)
class Answer:
    """Whom to use on a task.

    Attributes:
        kind: "ahead" if someone is ahead of the reference, "leans" if someone leans so, "stay" if
            nobody does, "none" if nothing can be said.
        reference: The one that all are compared with.
        chosen: Who is to be used; the reference if nobody is ahead of it.
        options: What the chosen one was judged with, in words.
        lead: How far it is ahead.
        n: The fewest seeds that a pair has in common.
        more: How many more seeds would decide, where it only leans.
        groups: The others by the word on them.
        cut: Whose runs are not finished.
        solved: Whether anyone solves the task.
        collapsed: Those whose samples are alike on most seeds.
        ours: The word on HVAdam beside the reference, if it runs.
    """

    kind: Literal["ahead", "leans", "stay", "none"]
    reference: str = ""
    chosen: str = ""
    options: str = ""
    lead: str = ""
    n: int = 0
    more: int | None = None
    groups: Mapping[str, list[str]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    solved: bool = True
    collapsed: list[str] = field(default_factory=list)
    ours: str = ""

    @property
    def sentence(self) -> str:
        """Return whom to use, in one plain sentence."""
        alike = " and ".join(self.collapsed)
        alike = f" {alike} collapsed on most seeds: the samples are all alike." if alike else ""
        return self._use() + alike

    @property
    def others(self) -> str:
        """Return how the others stand."""
        said: list[str] = []
        if self.solved:
            said += [
                f"{words.format(self.reference)}: {', '.join(self.groups[word])}."
                for word, words in _GROUPS.items()
                if self.groups.get(word)
            ]
        if self.kind != "none" and self.cut:
            said.append(f"Not finished: {', '.join(self.cut)}.")
        return " ".join(said)

    @property
    def told(self) -> str:
        """Return all of it."""
        return f"{self.sentence} {self.others}".rstrip()

    @property
    def badge(self) -> str:
        """Return the answer in a few words."""
        if self.kind == "none" or not self.solved:
            return "no verdict"
        words = {"leans": "leans to", "ahead": "use", "stay": "stay with"}
        return f"{words[self.kind]} {self.chosen}"

    def _use(self) -> str:
        use, seeds = f"use {self.chosen} {self.options}", f"(n = {self.n})"
        if self.kind == "none":
            if self.cut:
                return (
                    f"Runs of {listed(self.cut)} are not finished, so there is no verdict; sweep "
                    "again."
                )
            if self.reference:
                return (
                    "There is nothing to compare yet: nobody has a finished run with a seed of "
                    f"{self.reference}'s."
                )
            return "There is nothing to compare yet."
        if not self.solved:
            return (
                "Nobody solves this task in at least half of the runs, so there is no verdict "
                f"{seeds}."
            )
        if self.kind == "ahead":
            return f"U{use[1:]}: it is ahead of {self.reference}, {self.lead} {seeds}."
        if self.kind == "leans":
            more = ""
            if self.more:
                more = f"; about {more_seeds(self.more)} would settle an effect of that size"
            return f"So far, {use}: it leans ahead of {self.reference}, {self.lead} {seeds}{more}."
        if self.n < FEWEST_PAIRS:
            return f"So far, {use}: nobody leans ahead of it {seeds}."
        return f"U{use[1:]}: nobody is ahead of it {seeds}."


def answer_of(task: TaskResults) -> Answer:
    """Return whom to use on a task, from the verdicts beside its reference."""
    reference = task.reference
    cut = [label(one.name) for one in task.race if one.is_cut]
    if reference is None or reference.is_cut:
        return Answer("none", label(reference.name) if reference else "", cut=cut)
    judged = judge_against(task, reference.name)
    judged = {name: one for name, one in judged.items() if one.effect.n}
    base = Answer("none", label(reference.name), cut=cut)
    if not judged:
        return base
    sides = {name: one for name, one in judged.items() if one.side == "ahead"}
    settled = {name: one for name, one in sides.items() if one.verdict == "ahead"} or sides
    best = max(settled, key=lambda name: settled[name].effect.estimate, default=reference.name)
    found, runs = judged.get(best), task.contenders[best]
    groups: dict[str, list[str]] = {}
    for name, one in judged.items():
        if name != best:
            told = _told(task.contenders[name], one, reference, task)
            groups.setdefault(one.word, []).append(told)
    everyone = [reference, *(task.contenders[name] for name in judged)]
    return Answer(
        kind="stay" if found is None else "ahead" if found.verdict == "ahead" else "leans",
        reference=label(reference.name),
        chosen=label(best),
        options=f"{'at lr' if 'lr' in runs.options else 'with'} {describe_options(runs.options)}",
        lead=_lead(runs, found, reference, task) if found else "",
        n=found.effect.n if found else min(one.effect.n for one in judged.values()),
        more=found.more_seeds if found else None,
        groups=groups,
        cut=cut,
        solved=all(one.reason != UNSOLVED for one in judged.values()),
        collapsed=[label(one.name) for one in everyone if _collapsed(one)],
        ours=judged[OURS].word if OURS in judged else "",
    )


def overall(answers: Iterable[Answer]) -> str:
    """Return all tasks in one sentence: the answer if there is one task, else HVAdam's story.

    Example:
        >>> overall([Answer("ahead", "Adam", ours="ahead"), Answer("stay", "Adam", ours="equal")])
        'Against Adam, HVAdam is ahead on 1 of 2 tasks and equal on 1.'
        >>> overall([Answer("stay", "AdamW"), Answer("stay", "AdamW")])
        '2 tasks, and whom to use on each.'
    """
    found = list(answers)
    if len(found) == 1:
        return found[0].sentence
    beside = [one for one in found if one.ours]
    references = list(dict.fromkeys(one.reference for one in beside))
    counts = Counter(one.ours for one in beside)
    if not counts:
        return f"{counted(len(found), 'task')}, and whom to use on each."
    against = references[0] if len(references) == 1 else "the reference"
    return f"Against {against}, HVAdam {_count(counts)}."


def _count(counts: Mapping[str, int]) -> str:
    """Return how often each verdict was seen: "is ahead on 2 of 10 tasks and equal on 8"."""
    said: list[str] = []
    for word in (word for word in _GROUPS if counts[word]):
        verb = "" if said or word.startswith("leans") else "is "
        of = "" if said else f" of {counted(sum(counts.values()), 'task')}"
        said.append(f"{verb}{word} on {counts[word]}{of}")
    return listed(said)


def _told(one: ContenderRuns, found: Judgement, reference: ContenderRuns, task: TaskResults) -> str:
    """Return a name, with how far it is ahead or behind, or how many seeds would tell."""
    by = _lead(one, found, reference, task, brief=True) if found.side != "equal" else ""
    told = [by] if by else []
    told += [more_seeds(found.more_seeds)] if found.more_seeds else []
    return label(one.name) + (f" ({'; '.join(told)})" if told else "")


def _lead(
    one: ContenderRuns,
    found: Judgement,
    reference: ContenderRuns,
    task: TaskResults,
    *,
    brief: bool = False,
) -> str:
    """Return a difference and what it is of: a ratio or percents of the measure, or its units."""
    told, units = amount(found, one, reference, task, brief=brief), units_of(task)
    if "diverged" in told:
        return told
    return told + (f" {units.measure}" if found.effect.scale.kind == "factor" else units.unit)


def _collapsed(one: ContenderRuns) -> bool:
    return 2 * sum(run.status == "collapsed" for run in one.judged) > len(one.judged)
