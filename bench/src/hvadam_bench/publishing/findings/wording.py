"""Numbers of the evidence as they are written; what has no number never gets one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hvadam_bench.analysis.statistics import Interval
from hvadam_bench.contenders import OURS, label
from hvadam_bench.publishing.cells import standing_word
from hvadam_bench.publishing.formatting import (
    NOTHING,
    Units,
    fixed,
    ranged,
    signed,
)
from hvadam_bench.publishing.markdown import escape
from hvadam_bench.studies.evidence.result import (
    AblationEvidence,
    Conditions,
    Duel,
    Evidence,
    Measured,
    OptionMap,
    Sooner,
    TaskEvidence,
    TaskRates,
)

# The tasks as they ran: the titles that they have by themselves are of the full protocols.
NAMES = {
    "digits_mlp": "MLP, digits",
    "digits_cnn": "CNN, digits",
    "fashion_mnist_cnn": "small CNN, Fashion-MNIST",
    "cifar10_vgg11": "small VGG, CIFAR-10",
    "cifar10_resnet34": "small ResNet, CIFAR-10",
    "cifar10_vit_b16": "small ViT, CIFAR-10",
    "shakespeare_lstm": "small LSTM, Shakespeare",
    "ptb_lstm1": "small LSTM, Penn Treebank",
    "wikitext2_transformer": "small transformer, WikiText-2",
    "multi30k_transformer": "small transformer, Multi30k",
    "wgan": "small WGAN",
    "wgan_gp": "small WGAN-GP",
    "sngan": "small SN-GAN",
    "diffusion": "small diffusion model",
}


def title(task: Conditions | OptionMap | TaskRates) -> str:
    """Return a task's name for people, as it ran."""
    return NAMES.get(task.task, escape(task.title))


def units_of(task: TaskEvidence | AblationEvidence) -> Units:
    """Return how a task's values are written."""
    everyone = task.levels if isinstance(task, AblationEvidence) else task.contenders.values()
    values = [[x for x in one.values if x is not None] for one in everyone]
    return Units(task.measure, values, task.measured)


def value(one: Measured, units: Units) -> str:
    """Return the median with its interval, and how many runs came to no end."""
    if one.lost:
        return one.lost
    middle, low, high = map(as_float, (one.median, one.low, one.high))
    text = units.spread(middle, Interval(low, high, 0.95) if one.n > 1 else None)
    if one.diverged:
        text += f", {one.diverged} of {one.n} diverged"
    return f"{text}, {one.collapsed} of {one.n} collapsed" if one.collapsed else text


def beside(found: Duel | None, units: Units, *pair: Measured) -> str:
    """Return a paired difference with its interval and what it amounts to, between two."""
    if not found:
        return NOTHING
    amount = "no number," if any(one.lost for one in pair) else difference(found, units)
    return f"{amount} {standing(found)}"


def against(task: TaskEvidence, rival: str) -> str:
    """Return HVAdam's difference to a rival on a task."""
    found = task.duels.get(rival)
    pair = [task.contenders[name] for name in (OURS, rival)] if found else []
    return beside(found, units_of(task), *pair)


def difference(found: Duel, units: Units) -> str:
    """Return a paired difference with its interval; a settled one shows however small it is."""
    middle, low, high = map(as_float, (found.difference, found.low, found.high))
    if not math.isfinite(middle):
        return "no number,"
    settled = found.standing in ("ahead", "behind")
    return units.difference(middle, Interval(low, high, as_float(found.level)), settled=settled)


def percent(found: Duel) -> str:
    """Return a difference in percent of the other's median, more being better."""
    middle, low, high = map(as_float, found.percent)
    if not math.isfinite(middle):
        return NOTHING
    return f"{signed(middle, 1)}% [{signed(low, 1)}, {signed(high, 1)}]"


def standing(found: Duel) -> str:
    """Return one word on how a contender stands, or which way it leans."""
    return standing_word(found.standing, found.leaning)


def steps_share(found: Sooner) -> str:
    """Return the steps to Adam's end as a share of Adam's."""
    ends = [1 + as_float(x) for x in (found.difference, found.low, found.high)]
    if math.isnan(ends[0]):
        return NOTHING
    return ranged(*ends, write=lambda x: "never" if math.isinf(x) else fixed(x, 2))


def rivals_by_standing(task: TaskEvidence, rivals: Sequence[str]) -> dict[str, list[str]]:
    """Return whom HVAdam is ahead of, ties with and so on, with the amount where it is behind."""
    units = units_of(task)
    groups: dict[str, list[str]] = {}
    for name in rivals:
        found = task.duels.get(name)
        if found is None:
            continue
        counts = found.standing == "behind" and not task.contenders[OURS].lost
        amount = f" ({difference(found, units)})" if counts else ""
        groups.setdefault(standing(found), []).append(escape(label(name)) + amount)
    return groups


def levels_by_standing(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    """Return which levels of the ablation are ahead of the one before, tie and so on, and where."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for task in evidence.ablation:
        where = f"{title(task)}, {task.steps:,} steps"
        for level in task.levels:
            if level.against_previous:
                word = standing(level.against_previous)
                groups.setdefault(word, []).append((label(level.name), where))
    return groups


def as_float(x: float | None) -> float:
    """Return a number of the evidence; NaN for none."""
    return math.nan if x is None else x
