"""The tables of the findings: numbers read from the evidence, none computed."""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.pages.findings.wording import (
    amount,
    arrived,
    beside,
    decay,
    difference,
    measure,
    median,
    named,
    ratio,
    title,
    units_of,
    value,
    verdict,
)
from hvadam_bench.pages.formatting import (
    NOTHING,
    counted,
    fixed,
    number,
    rate,
    share,
    three_digits,
    times,
)
from hvadam_bench.pages.markdown import Markdown
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies.evidence.result import (
    Cost,
    Costs,
    Dose,
    Entrant,
    Evidence,
    Number,
    Suite,
    TaskEvidence,
)


def suite(found: Suite) -> Table:
    """Return HVAdam on the tasks of a suite: beside the reference, and the best of the family."""
    reference = named(found.reference)
    baselines = any(task.baseline for task in found.tasks)
    shares = any(one.arrived is not None for task in found.tasks for one in _everyone(task))
    decays = any(decay(task) != "none" for task in found.tasks)
    rows = []
    for task in found.tasks:
        ours, theirs = (task.contenders[name] for name in (OURS, found.reference))
        best = task.family_best
        rows.append(
            [
                Markdown(f"{title(task)}<br>{measure(task)}"),
                *([_baseline(task)] if baselines else []),
                median(ours, task),
                median(theirs, task),
                beside(task, found.reference),
                NOTHING if best is None else f"{beside(task, best)} ({named(best)})",
                _best(task),
                *([f"{arrived(ours)}, {arrived(theirs)}"] if shares else []),
                *([decay(task)] if decays else []),
            ]
        )
    heads = [
        "",
        *(["trivial baseline"] if baselines else []),
        "HVAdam",
        reference,
        f"HVAdam beside {reference}",
        "beside the best of Adam's family",
        "best of all",
        *([f"arrive: HVAdam, {reference}"] if shares else []),
        *(["decay of all"] if decays else []),
    ]
    return Table(heads, rows)


def doses(evidence: Evidence) -> Table:
    """Return the response to each dose of noise, beside what the hidden vector did."""
    rows = [
        [
            Markdown(title(dose).removesuffix(", full batch")),  # as the task is by itself
            f"{dose.batch:,}",
            NOTHING if dose.share is None else part_of(dose.share),
            _ratio(dose),
            _plain(dose.alignment),
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
    rows = []
    for part, cut in parts.items():
        for task in dict.fromkeys(one.task for one in cut):
            own = [one for one in cut if one.task == task]
            finished, of, runs = (
                sum(getattr(one, name) for one in own) for name in ("finished", "of", "runs")
            )
            about = counted(len(own), "dose") if part == "noise" else ""
            rows.append([part, Markdown(f"`{task}`"), about, f"{finished} of {of}", str(runs)])
    return Table(["part", "task", "", "contenders finished", "runs recorded"], rows)


def everyone(task: TaskEvidence, costs: Costs | None = None) -> Table:
    """Return all contenders of a task, with what an evaluation takes where that was measured."""
    taken = costs.of.get(task.task, {}) if costs else {}
    others = sorted({name for one in _everyone(task) for name in one.others})
    rows = []
    for name, one in task.contenders.items():
        found = one.against_reference
        rows.append(
            [
                Cell.of(name),
                Cell(median(one, task), mark=name == task.best),
                "reference"
                if found is None
                else f"{difference(found, task.unit, task.margin)} {verdict(task, found)}",
                arrived(one),
                _count(one.to_target),
                _count(one.evaluations),
                *([_cost(taken.get(name))] if taken else []),
                _chosen(one),
                one.decay,
                *(number(one.others.get(other)) for other in others),
            ]
        )
    heads = [
        "",
        f"median {units_of(task).name}",
        f"beside {named(task.reference)}",
        "arrive",
        "gradient evaluations to the target",
        "in all",
        *([f"ms each (× {named(task.reference)}'s)"] if taken else []),
        "lr",
        "decay",
        *(name.replace("_", " ") for name in others),
    ]
    return Table(heads, rows)


def runs(task: TaskEvidence) -> Table:
    """Return where each run ended, seed by seed."""
    rows = [
        [Cell.of(name), *(value(x, task) for x in one.values)]
        for name, one in task.contenders.items()
    ]
    seeds = max(len(one.values) for one in _everyone(task))
    return Table(["seed", *map(str, range(seeds))], rows)


def rates(task: TaskEvidence) -> Table:
    """Return what each learning rate gave in tuning; the one taken is bold."""
    tried = sorted({lr for one in _everyone(task) for lr in one.rates}, key=float)
    rows = []
    for name, one in task.contenders.items():
        if not one.rates:
            continue
        taken = f"{one.options.get('lr', 0.0):g}"
        cells = [
            Cell(value(one.rates[lr], task) if lr in one.rates else "", mark=lr == taken)
            for lr in tried
        ]
        rows.append([Cell.of(name), *cells])
    return Table(["", *(rate(float(lr)) for lr in tried)], rows)


def targets(found: Suite) -> Table:
    """Return how soon each gets to the target, as a share of the reference's time."""
    names = list(found.profiles)
    rows = []
    for task in found.tasks:
        theirs = task.contenders[found.reference].to_target
        cells = [_share_of(task.contenders[name].to_target, theirs) for name in names]
        rows.append([Markdown(title(task)), *cells])
    rows.append(["score", *(fixed(found.scores[name], 2) for name in names)])
    return Table(["", *map(named, names)], rows)


def power(evidence: Evidence) -> Table:
    """Return what the seeds of each task can show."""
    rows = [
        [
            Markdown(title(task)),
            amount(task.margin, task.unit, task.margin),
            amount(task.power, task.unit, task.margin),
            str(task.seeds),
        ]
        for task in evidence.tasks
    ]
    return Table(["", "smallest that matters", "seen four times in five", "n"], rows)


def part_of(share: float) -> str:
    """Return a share of all examples as a fraction.

    Example:
        >>> part_of(1.0), part_of(0.0625)
        ('all', '1/16')
    """
    return "all" if share == 1 else f"1/{round(1 / share)}"


def _everyone(task: TaskEvidence) -> Sequence[Entrant]:
    return list(task.contenders.values())


def _baseline(task: TaskEvidence) -> str:
    one = task.baseline
    return NOTHING if one is None else f"{value(one.value, task)} ({one.method})"


def _best(task: TaskEvidence) -> str:
    if task.best is None:
        return NOTHING
    return f"{named(task.best)}, {median(task.contenders[task.best], task)}"


def _ratio(dose: Dose) -> str:
    if dose.amount is None or dose.low is None or dose.high is None:
        return NOTHING
    middle, *ends = (times(ratio(x)) for x in (dose.amount, dose.high, dose.low))
    return f"×{middle} [{', '.join(ends)}]"


def _plain(x: Number) -> str:
    return NOTHING if x is None else f"{x:.2f}"


def _count(x: Number) -> str:
    return "never" if x is None else f"{x:,.0f}"


def _cost(one: Cost | None) -> str:
    """Return the milliseconds of an evaluation, and how many times the reference's they are."""
    return NOTHING if one is None else f"{three_digits(one.milliseconds)} (×{fixed(one.ratio, 2)})"


def _rate(lr: Number) -> str:
    return NOTHING if lr is None else rate(lr)


def _chosen(one: Entrant) -> str:
    """Return a learning rate and how it came about."""
    words = f" (that of {named(one.rate_of)})" if one.rate_of else "" if one.tuned else " (fixed)"
    return _rate(one.options.get("lr")) + (" (edge)" if one.at_edge else words)


def _share_of(own: Number, theirs: Number) -> str:
    if own is None:
        return "never"
    return NOTHING if not theirs else share(own / theirs)
