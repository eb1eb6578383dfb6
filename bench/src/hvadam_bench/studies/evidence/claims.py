"""The paper's claims, and which of them the records bear out: every verdict follows from numbers.

A claim to be the best on some tasks *holds* where HVAdam is ahead of every one of the paper's
baselines that ran, *does not hold* where it is behind one of them on one task, holds *in part*
where it is ahead of all on some of the tasks, and is *undecided* where it is neither. A claim that
something helps, over many tasks, *holds* where it does on more than half of them and harms on none,
*does not hold* where it helps on none, and holds *in part* between these; it is not judged before
half of the tasks are finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

from hvadam_bench.analysis.verdicts import Standing
from hvadam_bench.studies.evidence.describe import STILL
from hvadam_bench.studies.evidence.result import Claim, Counts, Duel, Evidence, TaskEvidence

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
OPEN, MISSING, UNTESTED = "undecided", "not finished", "not testable here"

# Those that the paper compares with, of its fifteen; Padam in the appendix only.
BASELINES = (
    *("sgd", "adam", "msvag", "adamw", "yogi", "adabound", "radam", "fromage", "rmsprop", "swa"),
    *("lookahead", "adabelief", "adai", "lookaround"),
)
# "Almost all other optimizers": so many of the comparisons.
ALMOST_ALL = 0.9

BEST = (
    Claim(
        "The highest test accuracy with convolutional networks",
        "Figure 4: VGG11, ResNet34 and DenseNet121 on CIFAR-10 and CIFAR-100",
        "best",
        "against Adam",
        tasks=("cifar10_vgg11", "cifar10_resnet34"),
        rivals=BASELINES,
    ),
    Claim(
        "Outperforms all other optimizers with a vision transformer",
        "Table 2: ViT-B/16, pre-trained, on CIFAR-10 and CIFAR-100",
        "best",
        "against Adam",
        tasks=("cifar10_vit_b16",),
        rivals=BASELINES,
    ),
    Claim(
        "The lowest perplexity with LSTMs",
        "Figure 5: 1, 2 and 3 layers on the Penn Treebank",
        "best",
        "against Adam",
        tasks=("ptb_lstm1", "shakespeare_lstm"),
        rivals=BASELINES,
    ),
    Claim(
        "The lowest FID with all GANs",
        "Figure 6 and Table 3: WGAN, WGAN-GP and SN-GAN on CIFAR-10",
        "best",
        "generators",
        tasks=("wgan", "wgan_gp", "sngan"),
        rivals=BASELINES,
    ),
    Claim(
        "The lowest FID with a diffusion model",
        "Appendix G: beside Adam and SGD, on CIFAR-10",
        "best",
        "generators",
        tasks=("diffusion",),
        rivals=("adam", "sgd"),
    ),
)
ABLATION = Claim("Every part of the method helps", "Table 4: ablation", "ablation", "ablation")
SOONER = Claim("Faster convergence", "abstract, Figure 4", "sooner", "curves")
HIDDEN_STEP = Claim(
    "Following the hidden vector matters",
    "Figures 1 to 3, the method's idea",
    "hidden step",
    "against Adam",
)
ALMOST = Claim(
    "Outperforms almost all other optimizers", "conclusion", "almost all", "against Adam"
)
UNTESTABLE = (
    Claim(
        "Outperforms other adaptive methods on ImageNet",
        "Table 1: ResNet50",
        "untestable",
        verdict=UNTESTED,
        note="It takes days on several GPUs: `hvadam sweep imagenet`.",
    ),
    Claim(
        "A Transformer on IWSLT14",
        "named among the experiments",
        "untestable",
        verdict=UNTESTED,
        note="The paper gives no result; `hvadam sweep iwslt14` would make one. The small "
        "translation task above is another: Multi30k.",
    ),
)


def judge(evidence: Evidence) -> tuple[Claim, ...]:
    """Return every claim with its verdict, from all else that the evidence holds."""
    tasks = (*evidence.tasks, *evidence.generative)
    levels = [level for one in evidence.ablation for level in one.levels]
    steps = [level.against_previous for level in levels if level.against_previous]
    sooner = [task.sooner for task in evidence.tasks if task.sooner]
    still = [task.duels[STILL] for task in evidence.tasks if STILL in task.duels]
    return (
        *(replace(claim, verdict=_best(claim, tasks)) for claim in BEST),
        replace(ABLATION, verdict=all_of([step.standing for step in steps])),
        _in_general(SOONER, sooner, evidence),
        _in_general(HIDDEN_STEP, still, evidence),
        _almost_all(tasks, evidence),
        *UNTESTABLE,
    )


def all_of(standings: Sequence[Standing]) -> str:
    """Return the verdict on a claim for every task, from where HVAdam stands on each.

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


def most_of(standings: Sequence[Standing]) -> str:
    """Return the verdict on a claim that something helps in general.

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


def among(task: TaskEvidence, rivals: Sequence[str]) -> Standing:
    """Return where HVAdam stands among several: ahead of all, behind one, or neither."""
    standings = [task.duels[name].standing for name in rivals if name in task.duels]
    if "behind" in standings:
        return "behind"
    if standings and all(one == "ahead" for one in standings):
        return "ahead"
    return "unsettled" if "unsettled" in standings else "tie"


def count(duels: Iterable[Duel]) -> Counts:
    """Return how many duels ended with which standing."""
    counts = Counter(duel.standing for duel in duels)
    return {name: counts[name] for name in get_args(Standing)}


def _best(claim: Claim, tasks: Sequence[TaskEvidence]) -> str:
    found = [task for task in tasks if task.task in claim.tasks and task.duels]
    verdict = all_of([among(task, claim.rivals) for task in found])
    # One task is enough to refute a claim about several, but not to bear it out.
    cut = {task.task for task in found} != set(claim.tasks)
    return PARTLY if cut and verdict == HOLDS else verdict


def _in_general(claim: Claim, found: Sequence[Duel], evidence: Evidence) -> Claim:
    verdict = MISSING if _too_few(evidence) else most_of([duel.standing for duel in found])
    return replace(claim, verdict=verdict, counts=count(found))


def _almost_all(tasks: Sequence[TaskEvidence], evidence: Evidence) -> Claim:
    duels = [duel for task in tasks for name, duel in task.duels.items() if name in BASELINES]
    counts = count(duels)
    claim = replace(ALMOST, counts=counts)
    if not duels or _too_few(evidence):
        return claim
    share = counts["ahead"] / len(duels)
    if share >= ALMOST_ALL:
        return replace(claim, verdict=HOLDS)
    return replace(claim, verdict=PARTLY if share > 0.5 else FAILS)


def _too_few(evidence: Evidence) -> bool:
    """Return whether more tasks are to come than there are."""
    coming = sum(one.part == "tasks" for one in evidence.unfinished)
    return len(evidence.tasks) < coming
