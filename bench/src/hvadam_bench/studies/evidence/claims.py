"""The paper's claims one by one, and what can be said of them here.

A claim is judged by the paper's own functions and theorems. Where it is about a training that is
not run here it is *not testable here*, whatever other trainings say, and the note names what would
test it.
"""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.studies._results import load
from hvadam_bench.studies._words import FAILS, HOLDS, PARTLY, UNTESTED, all_of
from hvadam_bench.studies.evidence.result import Claim
from hvadam_bench.studies.theory.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory
from hvadam_bench.studies.valley.result import CLAIMED, REGIMES, Comparison, Criterion

# What it is to be ahead of all others, or behind one.
_HELD = {"ahead": HOLDS, "behind": FAILS}
_VALLEY: dict[Criterion, str] = {
    "lowest": "The lowest loss on the toy functions",
    "first": "First at the minimum of the toy functions",
}
_THEOREMS = {
    HIDDEN_VECTOR: ("The hidden vector finds the trend at a rate of 1/T", "the bound"),
    REGRET: ("A bound on the regret in online convex problems", "the corrected bound"),
    NONCONVEX: ("A rate of convergence in non-convex problems", "the corrected bound"),
}
# What the paper trains, and what makes it again: days on a large GPU.
_TRAININGS = (
    (
        "The highest test accuracy with convolutional networks",
        "Figure 4: VGG11, ResNet34 and DenseNet121 on CIFAR-10 and CIFAR-100",
        "`hvadam sweep cifar10` and `hvadam sweep cifar100`",
    ),
    (
        "Outperforms other adaptive methods on ImageNet",
        "Table 1: ResNet50",
        "`hvadam sweep imagenet`",
    ),
    (
        "Outperforms all other optimizers with a vision transformer",
        "Table 2: ViT-B/16, pre-trained, on CIFAR-10 and CIFAR-100",
        "`hvadam sweep vit`",
    ),
    (
        "The lowest perplexity with LSTMs",
        "Figure 5: 1, 2 and 3 layers on the Penn Treebank",
        "`hvadam sweep lstm`",
    ),
    (
        "The lowest FID with all GANs",
        "Figure 6 and Table 3: WGAN, WGAN-GP and SN-GAN on CIFAR-10",
        "`hvadam sweep gan` and `hvadam sweep sngan`",
    ),
    ("The lowest FID with a diffusion model", "Appendix G: CIFAR-10", "`hvadam sweep diffusion`"),
    ("Every part of the method helps", "Table 4: ablation", "`hvadam sweep ablation`"),
    ("Faster convergence", "abstract, Figure 4", "`hvadam sweep cifar10`"),
    ("Outperforms almost all other optimizers", "conclusion", "all of the above"),
)


def judge(results: Path) -> tuple[Claim, ...]:
    """Return every claim with its verdict; `results` is where the other studies' results are."""
    valley, theory = results / "valley.json", results / "theory.json"
    return (
        *(_races(load(Comparison, valley)) if valley.exists() else ()),
        *(_theorems(load(Theory, theory)) if theory.exists() else ()),
        *(
            Claim(claim, where, UNTESTED, f"Its trainings are not run here: {recipe}.")
            for claim, where, recipe in _TRAININGS
        ),
    )


def _races(study: Comparison) -> list[Claim]:
    claims: list[Claim] = []
    for criterion in CLAIMED:
        held: list[str] = []
        said: list[str] = []
        for regime, rate in REGIMES.items():
            found = study.functions_by_verdict(regime, criterion)
            held += [_HELD.get(word, PARTLY) for word, names in found.items() for _ in names]
            told = "; ".join(f"{word} on {', '.join(names)}" for word, names in found.items())
            said.append(f"{rate[0].upper()}{rate[1:]}: {told}.")
        note = " ".join([*said, "[The valley](valley.md)."])
        claims.append(Claim(_VALLEY[criterion], "Figures 1 to 3", all_of(held), note))
    return claims


def _theorems(study: Theory) -> list[Claim]:
    claims: list[Claim] = []
    for theorem, standing in study.standings.items():
        claim, bound = _THEOREMS[theorem]
        said = [f"{standing.within} cases are within {bound}."]
        if standing.vacuous.count:
            said.append(
                f"It is vacuous in {standing.vacuous}: no lower than what holds without a theorem."
            )
        note = " ".join([*said, "[The theorems, measured](theory.md)."])
        claims.append(Claim(claim, theorem, standing.verdict, note))
    return claims
