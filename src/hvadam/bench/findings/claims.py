"""The paper's claims, and which of them the records bear out: every verdict follows from numbers.

A claim to be the best on some tasks *holds* where HVAdam is ahead of every one of the paper's
baselines that ran, *does not hold* where it is behind one of them on one task, holds *in part*
where it is ahead of all on some of the tasks, and is *undecided* where it is neither. A claim that
something helps, over many tasks, *holds* where it does on more than half of them and harms on none,
*does not hold* where it helps on none, and holds *in part* between these; it is not judged before
half of the tasks are finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hvadam.bench.findings.measures import STILL
from hvadam.bench.findings.words import (
    count,
    counted,
    difference,
    label,
    listed,
    lost,
    standing,
    title,
    units_of,
)
from hvadam.bench.report.looks import OURS

Content = Mapping[str, Any]
HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
OPEN, MISSING, UNTESTED = "undecided", "not finished", "not testable here"

# Those that the paper compares with, of its fifteen; Padam in the appendix only.
BASELINES = (
    *("sgd", "adam", "msvag", "adamw", "yogi", "adabound", "radam", "fromage", "rmsprop", "swa"),
    *("lookahead", "adabelief", "adai", "lookaround"),
)
# "Almost all other optimizers": so many of the comparisons.
ALMOST_ALL = 0.9


class Best(NamedTuple):
    """A claim to be the best."""

    claim: str
    where: str
    tasks: tuple[str, ...]
    figure: str
    rivals: tuple[str, ...] = BASELINES


BESTS = (
    Best(
        "The highest test accuracy with convolutional networks",
        "Figure 4: VGG11, ResNet34 and DenseNet121 on CIFAR-10 and CIFAR-100",
        ("cifar10_vgg11", "cifar10_resnet34"),
        "against Adam",
    ),
    Best(
        "Outperforms all other optimizers with a vision transformer",
        "Table 2: ViT-B/16, pre-trained, on CIFAR-10 and CIFAR-100",
        ("cifar10_vit_b16",),
        "against Adam",
    ),
    Best(
        "The lowest perplexity with LSTMs",
        "Figure 5: 1, 2 and 3 layers on the Penn Treebank",
        ("ptb_lstm1", "shakespeare_lstm"),
        "against Adam",
    ),
    Best(
        "The lowest FID with all GANs",
        "Figure 6 and Table 3: WGAN, WGAN-GP and SN-GAN on CIFAR-10",
        ("wgan", "wgan_gp", "sngan"),
        "generators",
    ),
    Best(
        "The lowest FID with a diffusion model",
        "Appendix G: beside Adam and SGD, on CIFAR-10",
        ("diffusion",),
        "generators",
        ("adam", "sgd"),
    ),
)
UNTESTABLE = (
    (
        "Outperforms other adaptive methods on ImageNet",
        "Table 1: ResNet50",
        "days on several GPUs: `hvadam sweep imagenet`",
    ),
    (
        "A Transformer on IWSLT14",
        "named among the experiments",
        "the paper gives no result; `hvadam sweep iwslt14` would make one. The small translation "
        "task above is another: Multi30k",
    ),
)


def judge(content: Content) -> list[dict[str, str]]:
    """Every claim with where the paper makes it, the verdict, the reason and the figure's name."""
    boards = [*content["tasks"], *content["generative"]]
    found = [_claim(b.claim, b.where, *_best(b, boards), b.figure) for b in BESTS]
    told = (
        ("Every part of the method helps", "Table 4: ablation", _ablation, "ablation"),
        ("Faster convergence", "abstract, Figure 4", _sooner, "curves"),
        (
            "Following the hidden vector matters",
            "Figures 1 to 3, the method's idea",
            _hidden_step,
            "against Adam",
        ),
        ("Outperforms almost all other optimizers", "conclusion", _almost_all, "against Adam"),
    )
    found += [_claim(claim, where, *of(content), figure) for claim, where, of, figure in told]
    found += [_claim(claim, where, UNTESTED, why, "") for claim, where, why in UNTESTABLE]
    return found


def all_of(standings: Sequence[str]) -> str:
    """The verdict on a claim for every task, from where HVAdam stands on each.

    Example:
        >>> all_of(["ahead", "ahead"]), all_of(["ahead", "tie"]), all_of(["ahead", "behind"])
        ('holds', 'holds in part', 'does not hold')
        >>> all_of(["tie", "unsettled"]), all_of([])
        ('undecided', 'not finished')
    """
    if not standings:
        return MISSING
    if "behind" in standings:
        return FAILS
    if all(one == "ahead" for one in standings):
        return HOLDS
    return PARTLY if "ahead" in standings else OPEN


def most_of(standings: Sequence[str]) -> str:
    """The verdict on a claim that something helps in general.

    Example:
        >>> most_of(["ahead", "ahead", "tie"]), most_of(["ahead", "behind", "tie"])
        ('holds', 'holds in part')
        >>> most_of(["tie", "behind"]), most_of(["unsettled"]), most_of([])
        ('does not hold', 'undecided', 'not finished')
    """
    if not standings:
        return MISSING
    if all(one == "unsettled" for one in standings):
        return OPEN
    ahead = sum(one == "ahead" for one in standings)
    if not ahead:
        return FAILS
    return HOLDS if 2 * ahead > len(standings) and "behind" not in standings else PARTLY


def among(board: Content, rivals: Sequence[str]) -> str:
    """Where HVAdam stands among several: ahead of all, behind one, or neither."""
    standings = [board["duels"][name]["standing"] for name in rivals if name in board["duels"]]
    if "behind" in standings:
        return "behind"
    if standings and all(one == "ahead" for one in standings):
        return "ahead"
    return "unsettled" if "unsettled" in standings else "tie"


def _claim(claim: str, where: str, verdict: str, why: str, figure: str) -> dict[str, str]:
    return {"claim": claim, "where": where, "verdict": verdict, "why": why, "figure": figure}


def _best(claim: Best, boards: Sequence[Content]) -> tuple[str, str]:
    found = [board for board in boards if board["task"] in claim.tasks and board["duels"]]
    missing = set(claim.tasks) - {board["task"] for board in found}
    said = [f"{title(board)}: {_field(board, claim.rivals)}" for board in found]
    said += [f"{task}: not finished" for task in claim.tasks if task in missing]
    verdict = all_of([among(board, claim.rivals) for board in found])
    # One task is enough to refute a claim about several, but not to bear it out.
    return (PARTLY if missing and verdict == HOLDS else verdict), "; ".join(said)


def _field(board: Content, rivals: Sequence[str]) -> str:
    """Whom HVAdam is ahead of, ties with and is behind, with the amount for the last."""
    units = units_of(board)
    groups: dict[str, list[str]] = {}
    for name in rivals:
        found = board["duels"].get(name)
        if found is None:
            continue
        counts = found["standing"] == "behind" and not lost(board["entries"][OURS])
        amount = f" ({difference(found, units)})" if counts else ""
        groups.setdefault(standing(found), []).append(label(name) + amount)
    words: dict[str, Callable[[str], str]] = {
        "ahead": "ahead of {}".format,
        "tie": "ties with {}".format,
        "behind": "behind {}".format,
        "ahead, unsettled": "ahead of {}, unsettled".format,
        "behind, unsettled": "behind {}, unsettled".format,
        "unsettled": "too few seeds beside {}".format,
    }
    return ", ".join(say(listed(groups[key])) for key, say in words.items() if key in groups)


def _ablation(content: Content) -> tuple[str, str]:
    standings: list[str] = []
    said: list[str] = []
    for board in content["ablation"]:
        steps = [level for level in board["levels"] if level["against_previous"]]
        standings += [level["against_previous"]["standing"] for level in steps]
        parts = [f"{label(s['name'])} {standing(s['against_previous'])}" for s in steps]
        said.append(f"{title(board)}, {board['steps']:,} steps: {', '.join(parts)}")
    why = f"each beside the level before it. {'; '.join(said)}" if said else "no study is finished"
    return all_of(standings), why


def _sooner(content: Content) -> tuple[str, str]:
    found = [board["sooner"] for board in content["tasks"] if board["sooner"]]
    why = f"in steps to where Adam ended, HVAdam {counted(count(found))}"
    return _in_general(content, found), why


def _hidden_step(content: Content) -> tuple[str, str]:
    found = [board["duels"][STILL] for board in content["tasks"] if STILL in board["duels"]]
    where = counted(count(found))
    why = f"beside itself with `hidden_scale=0`, each with its own rate, HVAdam {where}"
    return _in_general(content, found), why


def _almost_all(content: Content) -> tuple[str, str]:
    duels = [
        duel
        for board in (*content["tasks"], *content["generative"])
        for name, duel in board["duels"].items()
        if name in BASELINES
    ]
    counts = count(duels)
    where = counted(counts, "pair")
    why = f"over all pairs of a task and one of the paper's baselines, HVAdam {where}"
    if not duels or _too_few(content):
        return MISSING, why
    share = counts["ahead"] / len(duels)
    if share >= ALMOST_ALL:
        return HOLDS, why
    return (PARTLY if share > 0.5 else FAILS), why


def _in_general(content: Content, found: Sequence[Content]) -> str:
    return MISSING if _too_few(content) else most_of([one["standing"] for one in found])


def _too_few(content: Content) -> bool:
    """Whether more tasks are to come than there are."""
    coming = sum(one["part"] == "tasks" for one in content["unfinished"])
    return len(content["tasks"]) < coming
