"""The tables of the pages: numbers read from the evidence, none computed.

A number that does not exist is never written as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from hvadam_bench import tasks
from hvadam_bench.contenders import OURS, REFERENCE, label
from hvadam_bench.pages import formatting
from hvadam_bench.pages.formatting import (
    CLOSE,
    NOTHING,
    Units,
    counted,
    fixed,
    listed,
    number,
    quartiles,
    ranged,
    rate,
    relative,
    share,
    signed,
    three_digits,
    times,
)
from hvadam_bench.pages.markdown import Markdown, escape
from hvadam_bench.pages.rendering import say
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.evidence.result import (
    Baselines,
    Costs,
    Difference,
    Dose,
    Entrant,
    EvaluationTimes,
    Evidence,
    Number,
    Suite,
    TaskEvidence,
)

WORDS = Path(__file__).with_name("words.txt.j2")
ARROWS = {"min": "↓", "max": "↑"}


def suite(found: Suite) -> Table:
    """Return HVAdam on the tasks of a suite, against the reference and the best of the family."""
    reference, everyone = label(found.reference), [one for t in found.tasks for one in _all(t)]
    optional = {  # columns that some suites have
        "trivial baseline": any(task.baseline for task in found.tasks),
        f"solved: HVAdam, {reference}": any(one.arrived is not None for one in everyone),
        "decay of all": any(_decay(task) != "none" for task in found.tasks),
    }
    rows = [_suite_row(task, found.reference) for task in found.tasks]
    heads = [
        *("", "trivial baseline", "HVAdam", reference, f"HVAdam versus {reference}"),
        *("versus the best of Adam's family", "best of all"),
        *(f"solved: HVAdam, {reference}", "decay of all"),
    ]
    kept = [i for i, head in enumerate(heads) if optional.get(head, True)]
    return Table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _suite_row(task: TaskEvidence, reference: str) -> list[str]:
    ours, theirs = (task.contenders[name] for name in (OURS, reference))
    trivial, rival, best = task.baseline, task.family_best, task.best
    return [
        Markdown(f"{escape(task.title)}<br>{units_of(task).name} {ARROWS[task.goal]}"),
        f"{value(trivial.value, task)} ({trivial.method})" if trivial else NOTHING,
        median(ours, task),
        median(theirs, task),
        _duel(task, reference),
        f"{_duel(task, rival)} ({label(rival)})" if rival else NOTHING,
        f"{label(best)}, {median(task.contenders[best], task)}" if best else NOTHING,
        f"{_solved(ours)}, {_solved(theirs)}",
        _decay(task),
    ]


def doses(evidence: Evidence) -> Table:
    """Return the response to each dose of noise, and what the hidden vector did."""
    rows = [
        [
            dose.title.removesuffix(", full batch"),  # as the task is by itself
            f"{dose.batch:,}",
            NOTHING if dose.share is None else fraction(dose.share),
            _ratio(dose),
            NOTHING if dose.alignment is None else f"{dose.alignment:.2f}",
            number(dose.hidden_share, 2),
            number(dose.hidden_most, 2),
            ", ".join(_rate(dose.rates.get(name)) for name in (OURS, REFERENCE)),
            str(dose.n),
        ]
        for dose in evidence.noise.doses
    ]
    heads = [
        *("", "batch", "of all", "HVAdam's loss / Adam's", "alignment", "hidden share", "at most"),
        *("lr: HVAdam, Adam", "n"),
    ]
    return Table(heads, rows)


def claims(evidence: Evidence) -> Table:
    """Return the paper's claims with their verdicts."""
    rows = [
        [one.claim, one.where, Cell(one.verdict, mark=True), Markdown(one.note)]
        for one in evidence.claims
    ]
    return Table(["claim", "in the paper", "here", "why"], rows)


def unfinished(evidence: Evidence) -> Table:
    """Return what has runs to come, the doses of a task in one row."""
    parts = {
        "smooth": evidence.smooth.unfinished,
        "noise": evidence.noise.unfinished,
        "mini-batch": evidence.minibatch.unfinished,
    }
    rows: list[list[str]] = []
    for part, cut in parts.items():
        for task in dict.fromkeys(one.task for one in cut):
            own = [one for one in cut if one.task == task]
            about = counted(len(own), "dose") if part == "noise" else ""
            finished = f"{sum(one.finished for one in own)} of {sum(one.of for one in own)}"
            runs = str(sum(one.runs for one in own))
            rows.append([part, Markdown(f"`{task}`"), about, finished, runs])
    return Table(["part", "task", "", "contenders finished", "runs recorded"], rows)


def everyone(task: TaskEvidence, costs: Costs | None = None) -> Table:
    """Return all contenders of a task, with what an evaluation takes where that was measured."""
    taken = costs.of.get(task.task, {}) if costs else {}
    others = sorted({name for one in _all(task) for name in one.others})
    reference = label(task.reference)

    def cost(name: str) -> str:
        """Return the milliseconds of an evaluation, and how many times the reference's they are."""
        one = taken.get(name)
        return f"{three_digits(one.milliseconds)} (×{fixed(one.ratio, 2)})" if one else NOTHING

    rows = [
        [
            Cell.of(name),
            Cell(median(one, task), mark=name == task.best),
            _judged(one.against_reference, task) if one.against_reference else "reference",
            _solved(one),
            _count(one.to_target),
            _count(one.evaluations),
            *([cost(name)] if taken else []),
            _chosen(one),
            one.decay,
            *(number(one.others.get(other)) for other in others),
        ]
        for name, one in task.contenders.items()
    ]
    heads = [
        *("", f"median {units_of(task).name}", f"versus {reference}", "solved"),
        *("gradient evaluations to the target", "in all"),
        *([f"ms each (× {reference}'s)"] if taken else []),
        *("lr", "decay", *(name.replace("_", " ") for name in others)),
    ]
    return Table(heads, rows)


def runs(task: TaskEvidence) -> Table:
    """Return where each run ended, seed by seed."""
    rows = [
        [Cell.of(name), *(value(x, task) for x in one.values)]
        for name, one in task.contenders.items()
    ]
    return Table(["seed", *map(str, range(max(len(one.values) for one in _all(task))))], rows)


def rates(task: TaskEvidence) -> Table:
    """Return what each learning rate gave in tuning; the one taken is bold."""
    tried = sorted({lr for one in _all(task) for lr in one.rates}, key=float)
    rows: list[list[Cell]] = []
    for name, one in task.contenders.items():
        taken = f"{one.options.get('lr', 0.0):g}"
        shown = {lr: value(x, task) for lr, x in one.rates.items()}
        if shown:
            cells = [Cell(shown.get(lr, ""), mark=lr in shown and lr == taken) for lr in tried]
            rows.append([Cell.of(name), *cells])
    return Table(["", *(rate(float(lr)) for lr in tried)], rows)


def targets(found: Suite) -> Table:
    """Return how soon each gets to the target, as a share of the reference's time."""
    names = list(found.profiles)
    rows: list[list[str]] = []
    for task in found.tasks:
        theirs = task.contenders[found.reference].to_target
        reached = [task.contenders[name].to_target for name in names]
        cells = [
            "never" if x is None else share(x / theirs) if theirs else NOTHING for x in reached
        ]
        rows.append([task.title, *cells])
    rows.append(["score", *(fixed(found.scores[name], 2) for name in names)])
    return Table(["", *map(label, names)], rows)


def power(evidence: Evidence) -> Table:
    """Return what the seeds of each task can show."""
    rows = [
        [task.title, amount(task.margin, task), amount(task.power, task), str(task.seeds)]
        for task in evidence.tasks
    ]
    return Table(["", "smallest that matters", "seen four times in five", "n"], rows)


def printed(found: Results) -> Iterator[Table | str]:
    """Give the tables and lines that a terminal shows of new results."""
    if "baselines" in found:
        yield trivial_models(found["baselines"])
    if "evaluation-times" in found:
        yield evaluation_times(found["evaluation-times"])
    if evidence := found.get("evidence"):
        for part in (evidence.smooth, evidence.noise, evidence.minibatch):
            yield from (f"not finished: {one.task} {one.about}".rstrip() for one in part.unfinished)


def trivial_models(found: Baselines) -> Table:
    """Return what trivial models reach, a row for each task."""
    rows = [
        [tasks.get(task).title, one.method, f"{one.test:g}", formatting.measure(one.metric, ())]
        for task, one in found.of.items()
    ]
    return Table(["task", "trivial model", "test", ""], rows)


def evaluation_times(found: EvaluationTimes) -> Table:
    """Return what everyone's evaluations take, the reference of a task first."""
    rows: list[list[str | Cell]] = []
    for task, own in found.tasks.items():
        middle = own.reference_milliseconds.median
        rows.append([task, Cell.of(own.reference), three_digits(middle), ""])
        for name, one in own.contenders.items():
            ratio = quartiles(one.ratio.median, one.ratio.q1, one.ratio.q3, lambda x: fixed(x, 3))
            rows.append([task, Cell.of(name), three_digits(one.milliseconds.median), ratio])
    heads = ["task", "", "ms per evaluation", "versus the first"]
    return Table(heads, rows, reading=say(WORDS, "evaluation_times", found))


def units_of(task: TaskEvidence) -> Units:
    """Return how a task's values are written."""
    return Units(task.measure, [[x for x in one.values if x is not None] for one in _all(task)])


def value(x: Number, task: TaskEvidence) -> str:
    """Return where a run ended: losses that are compared by factors in two digits.

    Other values have as many decimals as their spread over seeds allows.
    """
    if x is None:
        return "diverged"
    by_factors = task.unit == "factor" and task.margin >= CLOSE
    return number(x, 2) if by_factors else units_of(task).value(x)


def median(one: Entrant, task: TaskEvidence) -> str:
    """Return the median over runs, and how many of them diverged."""
    lost = f", {one.diverged} of {len(one.values)} diverged" if one.diverged else ""
    return value(one.median, task) + (lost if one.median is not None else "")


def difference(found: Difference, task: TaskEvidence) -> str:
    """Return a paired difference with its interval.

    A ratio of losses is ours over theirs, so that below 1 is better; where so little matters that
    it is better told in percent, it is. Points of accuracy are better above 0.
    """
    if found.amount is None or found.low is None or found.high is None:
        return NOTHING
    if task.unit == "points":
        return ranged(found.amount, found.low, found.high, lambda x: signed(x, 2))
    return relative(found.amount, found.low, found.high, task.margin)


def amount(x: Number, task: TaskEvidence) -> str:
    """Return a difference without a sign: a factor, percents or points."""
    if x is None:
        return NOTHING
    if task.unit == "points":
        return f"{x:.2f} points"
    if task.margin < CLOSE:
        return f"{100 * math.expm1(x):.2f}%"
    return f"a factor of {math.exp(x):.3g}"


def fraction(share: float) -> str:
    """Return a share of all examples as a fraction.

    Example:
        >>> fraction(1.0), fraction(0.0625)
        ('all', '1/16')
    """
    return "all" if share == 1 else f"1/{round(1 / share)}"


def _duel(task: TaskEvidence, rival: str) -> str:
    """Return HVAdam's difference to a rival on a task, and what it amounts to."""
    found = task.duels.get(rival)
    return NOTHING if found is None else _judged(found, task)


def _judged(found: Difference, task: TaskEvidence) -> str:
    """Return a difference and a word on it; there is no verdict where nobody solves the task."""
    return f"{difference(found, task)} {found.verdict if task.solved else 'no verdict'}"


def _ratio(dose: Dose) -> str:
    if dose.amount is None or dose.low is None or dose.high is None:
        return NOTHING
    middle, *ends = (times(math.exp(-x)) for x in (dose.amount, dose.high, dose.low))
    return f"×{middle} [{', '.join(ends)}]"


def _chosen(one: Entrant) -> str:
    """Return a learning rate and how it came about."""
    words = f" (that of {label(one.rate_of)})" if one.rate_of else "" if one.tuned else " (fixed)"
    return _rate(one.options.get("lr")) + (" (edge)" if one.at_edge else words)


def _decay(task: TaskEvidence) -> str:
    """Return the weight decay that a task's runs worked with; several if they differ."""
    return listed(sorted({one.decay for one in _all(task)}))


def _solved(one: Entrant) -> str:
    return NOTHING if one.arrived is None else share(one.arrived)


def _count(x: Number) -> str:
    return "never" if x is None else f"{x:,.0f}"


def _rate(lr: Number) -> str:
    return NOTHING if lr is None else rate(lr)


def _all(task: TaskEvidence) -> Sequence[Entrant]:
    return list(task.contenders.values())
