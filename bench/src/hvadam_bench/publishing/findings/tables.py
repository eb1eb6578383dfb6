"""The tables of the findings: numbers read from the evidence, none computed but medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hvadam_bench import contenders
from hvadam_bench.analysis import statistics
from hvadam_bench.contenders import OURS, REFERENCE, label
from hvadam_bench.publishing.findings.wording import (
    against,
    as_float,
    beside,
    standing,
    steps_share,
    title,
    units_of,
    value,
)
from hvadam_bench.publishing.formatting import NOTHING, fixed, quartiles, ranged, rate, shortfall
from hvadam_bench.publishing.markdown import Markdown
from hvadam_bench.publishing.tables import Cell, Table
from hvadam_bench.studies.evidence.claims import MISSING, UNTESTED
from hvadam_bench.studies.evidence.describe import ADAMW
from hvadam_bench.studies.evidence.result import (
    AblationEvidence,
    Evidence,
    Hidden,
    Measured,
    OptionEvidence,
    Pace,
    Rates,
    StepTimes,
    TaskEvidence,
)

# The name that a claim has for its figure -> the heading under which it stands.
ANCHORS = {
    "against Adam": "hvadam-beside-adam",
    "curves": "on-the-way",
    "ablation": "the-parts-of-the-method",
    "generators": "generators",
}
# What the contenders of `hvadam speed` are.
TIMED = {
    "HVAdam native": "compiled kernel",
    "HVAdam native, late": 'compiled kernel, `hidden_step="late"`',
    "HVAdam native, bf16 state": 'compiled kernel, `state_dtype="bfloat16"`',
    "HVAdam portable": "without a compiler",
    "Adam loop": "`torch.optim.Adam` as it is by default on CPUs",
    "Adam fused": "fused Adam beside a copy of itself: the noise",
}
# The figure of what a learning rate costs ends here: percent from the best.
MOST = 100.0
_ARROWS = {"min": "↓", "max": "↑"}


def anchors(evidence: Evidence) -> dict[str, str]:
    """Return where the figures are that bear out the verdicts, by the claims."""
    drawn = {
        "against Adam": evidence.tasks,
        "curves": evidence.tasks,
        "ablation": evidence.ablation,
        "generators": evidence.generative,
    }
    return {
        one.claim: ANCHORS[one.figure]
        for one in evidence.claims
        if one.verdict not in (MISSING, UNTESTED) and drawn[one.figure]
    }


def claims(evidence: Evidence) -> Table:
    """Return the paper's claims with their verdicts, and where to see why."""
    told = anchors(evidence)
    rows = []
    for one in evidence.claims:
        link = Markdown(f"[figure](#{told[one.claim]})") if one.claim in told else ""
        rows.append([one.claim, one.where, Cell(one.verdict, mark=True), link])
    return Table(["claim", "in the paper", "here", ""], rows)


def beside_adam(tasks: Sequence[TaskEvidence]) -> Table:
    """Return HVAdam, Adam, AdamW and the best of the others, with what is between them."""
    rows = []
    for task in tasks:
        units, best = units_of(task), task.best_other
        ours = task.contenders.get(OURS)
        rows.append(
            [
                Markdown(f"{title(task)}<br>{units.name}, {_ARROWS[task.goal]}"),
                *(_value_of(task, name) for name in (OURS, REFERENCE)),
                *(against(task, name) for name in (REFERENCE, ADAMW)),
                f"{label(best)}: {against(task, best)}" if best else NOTHING,
                str(ours.n) if ours else NOTHING,
            ]
        )
    heads = ["", "HVAdam", "Adam", "HVAdam − Adam", "HVAdam − AdamW", "HVAdam − best other", "n"]
    return Table(heads, rows)


def front(tasks: Sequence[TaskEvidence]) -> Table:
    """Return HVAdam beside Adam, for the README."""
    rows = [
        [
            Markdown(title(task)),
            f"{units_of(task).name} {_ARROWS[task.goal]}",
            *(_value_of(task, name) for name in (OURS, REFERENCE)),
            against(task, REFERENCE),
            str(task.contenders[OURS].n),
        ]
        for task in tasks
    ]
    return Table(["task", "measure", "HVAdam", "Adam", "HVAdam − Adam", "n"], rows)


def sooner(tasks: Sequence[TaskEvidence]) -> Table:
    """Return the steps to where Adam ended."""
    rows = [
        [
            Markdown(title(task)),
            steps_share(found),
            standing(found),
            f"{found.never} of {found.n}",
            str(found.n),
        ]
        for task in tasks
        if (found := task.sooner)
    ]
    return Table(["", "steps, as a share of Adam's", "", "never got there", "n"], rows)


def awakenings(evidence: Evidence) -> list[tuple[str, Hidden]]:
    """Return what HVAdam's hidden step did, study by study."""
    found = [
        (f"{title(task)}, {task.steps:,} steps", task.hidden)
        for task in evidence.tasks
        if task.hidden
    ]
    return found + [
        (f"{title(task)}, {task.steps:,} steps (ablation)", level.hidden)
        for task in evidence.ablation
        for level in task.levels
        if level.name == OURS and level.hidden
    ]


def awakening(evidence: Evidence) -> Table:
    """Return whether the hidden step grew large enough to matter, and when."""
    rows = [
        [
            Markdown(about),
            f"{as_float(one.gain):.2g}",
            f"{one.woke} of {one.runs}",
            f"{one.step:,.0f}" if one.step is not None else NOTHING,
            f"{as_float(one.restarts):g}",
        ]
        for about, one in awakenings(evidence)
    ]
    heads = ["", "gain at the end", "runs with a gain of 1", "first seen at step", "restarts"]
    return Table(heads, rows)


class OffRates(NamedTuple):
    """What a third of the best learning rate, and three times it, cost: percents, task by task."""

    third: list[float]
    triple: list[float]

    @property
    def worse(self) -> float:
        """Return the median cost to the side on which it is larger."""
        return max(map(statistics.median, self))


def off_rates(tasks: Sequence[TaskEvidence]) -> dict[str, OffRates]:
    """Return the costs of those that are on every task, who loses least first."""
    common = [n for n in tasks[0].contenders if all(n in task.contenders for task in tasks)]
    found: dict[str, OffRates] = {}
    for name in common:
        own = [task.contenders[name] for task in tasks]
        third, triple = ([one.third for one in own], [one.triple for one in own])
        costs = OffRates(*([x for x in side if x is not None] for side in (third, triple)))
        if all(costs):
            found[name] = costs
    return dict(sorted(found.items(), key=lambda item: item[1].worse))


def sensitivity(tasks: Sequence[TaskEvidence]) -> Table:
    """Return what a learning rate three times off costs, by contender."""
    rows = [
        [
            Cell.of(name),
            *(shortfall(statistics.median(side)) for side in own),
            *(shortfall(max(side)) for side in own),
            str(len(own.third)),
        ]
        for name, own in off_rates(tasks).items()
    ]
    heads = [
        "",
        "lost at a third: median",
        "at three times: median",
        "at a third: most",
        "at three times: most",
        "tasks",
    ]
    return Table(heads, rows)


def ablation(task: AblationEvidence) -> Table:
    """Return the levels side by side."""
    units = units_of(task)
    rows = [
        [
            Cell.of(level.name),
            value(level, units),
            beside(level.against_previous, units) if level.against_previous else "",
            beside(level.against_first, units) if level.against_first else "",
            str(level.n),
            _rate_of(level),
        ]
        for level in task.levels
    ]
    heads = ["", f"test {units.name}", "against the level before", "against HVAdam⁰", "n", "lr"]
    return Table(heads, rows)


def option(name: str, found: OptionEvidence) -> Table:
    """Return how far each value of an option is from the best, task by task."""
    default = f"{found.default:g}"
    rows = [
        [
            f"{text} (default)" if text == default else text,
            *(shortfall(one.short[task]) for task in found.tasks),
            shortfall(one.worst),
            f"{one.tied} of {len(found.tasks)}",
        ]
        for text, one in found.values.items()
    ]
    heads = [Markdown(f"`{name}`"), *(Markdown(f"`{task}`") for task in found.tasks)]
    return Table([*heads, "worst", "best or tied"], rows)


def rates(found: Rates) -> Table:
    """Return what each learning rate costs HVAdam, over the tasks."""
    default = f"{contenders.get(OURS).defaults['lr']:g}"
    rows = [
        [
            rate(float(lr)) + (" (default)" if lr == default else ""),
            f"{one.best} of {one.tasks}",
            shortfall(one.median),
            shortfall(one.worst),
        ]
        for lr, one in found.by_rate.items()
    ]
    return Table([Markdown("`lr`"), "best on", "short of the best: median", "worst"], rows)


def best_rates(found: Rates) -> Table:
    """Return the best learning rates of AdamW and HVAdam, task by task."""
    rows = [
        [
            Markdown(title(row)),
            rate(row.adamw),
            rate(row.hvadam),
            f"{row.ratio:.2g}" + (" (edge)" if row.at_edge else ""),
            "not tried" if row.short_at_adamws is None else shortfall(row.short_at_adamws),
        ]
        for row in found.tasks
    ]
    return Table(["", "AdamW", "HVAdam", "ratio", "at AdamW's rate"], rows)


def step_times(measured: StepTimes) -> Table:
    """Return the time of a step by itself over that of fused Adam."""
    rows = [
        [
            Markdown(about),
            *(
                quartiles(one.median, one.q1, one.q3, _two_decimals) if one else NOTHING
                for shape in measured.shapes
                for one in [shape.contenders.get(name)]
            ),
        ]
        for name, about in TIMED.items()
        if name in measured.shapes[0].contenders
    ]
    return Table(["", *(shape.title for shape in measured.shapes)], rows)


def paces(tasks: Sequence[TaskEvidence]) -> list[tuple[TaskEvidence, Pace]]:
    """Return the tasks on which HVAdam's training steps were timed beside Adam's."""
    found = [(task, task.contenders[OURS].pace) for task in tasks if OURS in task.contenders]
    return [(task, pace) for task, pace in found if pace]


def training_times(tasks: Sequence[TaskEvidence]) -> Table:
    """Return the time of a whole training step over that of Adam."""
    rows = []
    for task, pace in paces(tasks):
        ends = map(as_float, (pace.median, pace.low, pace.high))
        rows.append([Markdown(title(task)), ranged(*ends, write=_two_decimals), str(pace.n)])
    return Table(["", "HVAdam / Adam", "n"], rows)


def settles(task: TaskEvidence) -> bool:
    """Return whether a task has seeds enough that all of them agreeing is no chance."""
    return 2 / 2**task.seeds <= statistics.SETTLED


def everyone(task: TaskEvidence) -> Table:
    """Return one task with everyone on it."""
    units, adam = units_of(task), task.contenders.get(REFERENCE)
    rows = []
    for name, one in task.contenders.items():
        against_adam = (
            beside(one.against_adam, units, one, adam) if one.against_adam and adam else ""
        )
        rows.append(
            [
                Cell.of(name),
                Cell(value(one, units), mark=one.tied and settles(task)),
                "reference" if name == REFERENCE else against_adam,
                str(one.n),
                _rate_of(one),
            ]
        )
    return Table(["", f"test {units.name}", "against Adam", "n", "lr chosen"], rows)


def unfinished(evidence: Evidence) -> Table:
    """Return the studies that are cut."""
    rows = [
        [
            one.part,
            Markdown(f"`{one.task}`{', ' + one.about if one.about else ''}"),
            f"{one.finished} of {one.of}",
            f"{one.runs:,}",
        ]
        for one in evidence.unfinished
    ]
    return Table(["part", "task", "contenders finished", "runs recorded"], rows)


def _value_of(task: TaskEvidence, name: str) -> str:
    one = task.contenders.get(name)
    return value(one, units_of(task)) if one else NOTHING


def _rate_of(one: Measured) -> str:
    lr = one.options.get("lr")
    return (NOTHING if lr is None else rate(lr)) + (" (edge)" if one.at_edge else "")


def _two_decimals(x: float) -> str:
    return fixed(x, 2)
