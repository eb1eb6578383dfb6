"""The paper's tables and figures that take training, as sweeps, and which are made again.

There are two of each. The plain one gives every contender the same tuning budget around its
published settings and holds a validation split out. `<name>_published` repeats what was done:
baselines at the settings of the literature, HVAdam over the grid of appendix F, with the inherited
protocol, which looks at the test set throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hvadam_bench.registry import instead
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import Contest, Entry, narrowed

Entries = Sequence[Entry]


def plan(
    *, tables: tuple[str, ...] = ("ablation",), seeds: int | None = None, smoke: bool = False
) -> Sequence[Recipe]:
    """Return what is to be trained.

    Args:
        tables: The tables, by the names that `hvadam recipes` lists; commas between them.
        seeds: How many runs each winner gets; as many as the recipe has if not given.
        smoke: Train two contenders on a small task instead, to see that it works.
    """
    known = {one.name: one for one in RECIPES if one.studies}
    if smoke:
        few: dict[str, Any] = {
            "tasks": ["digits_mlp"],
            "contenders": ["adam", "hvadam"],
            "rates": [1e-3],
        }
        tried = narrowed(known["laptop"].studies, **few, seeds=1, scale="smoke")
        return [replace(known["laptop"], studies=tried)]
    for name in tables:
        if name not in known:
            raise ValueError(f"there is no table {name!r}; {instead(name, list(known))}")
    chosen = [known[name] for name in tables]
    return [replace(one, studies=narrowed(one.studies, seeds=seeds)) for one in chosen]


def both(
    name: str,
    what: str,
    baselines: Mapping[str, Entries],
    ours: Entries,
    *,
    averaged: tuple[int, int] | None = None,
    begin: Mapping[str, Any] | None = None,
    published_seeds: int = 1,
    **fair: Any,
) -> list[Recipe]:
    """Return the plain recipe of a table and the one that repeats what was published.

    Args:
        name: The name of the plain recipe.
        what: What the paper shows.
        baselines: With what HVAdam competes on each task.
        ours: HVAdam, with the values that were searched as published.
        averaged: The epoch from which SWA averages as published, and how many epochs there are.
        begin: Options with which everybody's tuning begins instead, where the budget is equal.
        published_seeds: How many seeds the paper ran.
        fair: What the plain contests have that others do not.
    """
    shared: dict[str, Any] = {"scale": "paper", "seeds": 3, **fair}
    tuned = [replace(one, axes={}, rates=()) for one in ours]
    plain = [
        Contest(task, [one.given(begin or {}) for one in (*others, *tuned)], **shared)
        for task, others in baselines.items()
    ]
    inherited: dict[str, Any] = {"scale": "paper", "protocol": "inherited", "budget": "published"}
    repeated = [
        Contest(
            task, [*entries, *ours], **inherited, seeds=published_seeds, reference=one.reference
        )
        for one, (task, others) in zip(plain, baselines.items(), strict=True)
        for entries in [averaging(others, *averaged) if averaged else others]
    ]
    as_published = Recipe(f"{name}_published", f"{what}, as published", repeated)
    return [Recipe(name, what, plain), as_published]


def averaging(baselines: Entries, first: int, epochs: int) -> list[Entry]:
    """Return baselines with SWA as in Lookaround's code.

    That averages from an epoch on, once every turn of its three loaders; the rate goes to one of
    its own within ten epochs.
    """
    given = {"start": first / epochs, "every": 3, "swa_lr": 8e-4, "anneal": 10 / epochs}
    return [one.given(given) if one.contender == "swa" else one for one in baselines]


def entries(**options: Mapping[str, Any]) -> list[Entry]:
    """Return contenders with their options."""
    return [Entry(name, given) for name, given in options.items()]


# HVAdam's decay, which the paper does not name: its authors' default, and everyone's here.
COUPLED = {"weight_decay_mode": "coupled"}
CNNS = ("vgg11", "resnet34", "densenet121")
# As AdaBelief's code has them, which the paper's baselines ran with. The task's decay of 5e-4 goes
# for everyone else, except that Fromage has none. MSVAG is its authors', not that port.
ON_CIFAR = entries(
    sgd={"lr": 0.1, "momentum": 0.9},
    adam={"lr": 1e-3},
    adamw={"lr": 1e-3, "weight_decay": 1e-2},
    radam={"lr": 1e-3},
    msvag={"lr": 0.1},
    yogi={"lr": 1e-3, "eps": 1e-3},
    adabound={"lr": 1e-3, "final_lr": 0.1},
    fromage={"lr": 1e-2},
    adabelief={"lr": 1e-3, "eps": 1e-8, **COUPLED},
)
# SGD, SWA, Lookahead and Lookaround as in Lookaround's code, Adai as its authors advise. The paper
# took Adam's number from Adai's, whose code has no ImageNet: the rate is that of its CIFAR.
ON_IMAGENET = entries(
    sgd={"lr": 0.1, "momentum": 0.9},
    adam={"lr": 1e-4},
    adai={"lr": 1.0},
    swa={"lr": 0.1},
    lookahead={"lr": 0.1, "k": 5, "alpha": 0.5},
    lookaround={"lr": 0.1, "heads": 3, "k": 5},
)
# As in Lookaround's code, where the averaging methods average Adam. Tuning begins lower than any of
# the defaults, for everyone, because fine-tuning wants small rates.
ON_VIT = entries(
    adam={"lr": 1e-3},
    swa={"inner": "adam", "lr": 1e-3},
    lookahead={"inner": "adam", "lr": 1e-3, "k": 5, "alpha": 0.5},
    lookaround={"inner": "adam", "lr": 1e-3, "heads": 3, "k": 5},
)
# As in the fairseq scripts of AdaBelief's authors, where "adam" decays as AdamW does; RAdam has the
# same rate.
ON_IWSLT14 = entries(
    adam={"lr": 5e-4, "betas": (0.9, 0.98)},
    adamw={"lr": 5e-4, "betas": (0.9, 0.98)},
    radam={"lr": 5e-4},
    adabelief={"lr": 5e-4, "eps": 1e-16, "weight_decay_mode": "decoupled", "rectify": True},
    hvadam={"lr": 5e-4},
)
# GANs as AdaBelief's code has them: one learning rate for all, no decay.
BETAS = {"betas": (0.5, 0.999)}
ON_GANS = entries(
    sgd={"lr": 2e-4, "momentum": 0.0},
    adam={"lr": 2e-4, **BETAS},
    rmsprop={"lr": 2e-4},
    radam={"lr": 2e-4, **BETAS},
    msvag={"lr": 2e-4, "beta": 0.5},
    yogi={"lr": 2e-4, **BETAS, "eps": 1e-8},
    adabound={"lr": 2e-4, **BETAS, "final_lr": 1e-2},
    fromage={"lr": 2e-4},
    adabelief={"lr": 2e-4, **BETAS, "eps": 1e-12},
)
# Padam's power p: 1/2 is AMSGrad, 0 is SGD with averaged momentum.
POWERS = {"1/2": 0.5, "1/4": 0.25, "1/8": 0.125, "1/16": 0.0625, "0": 0.0}
PADAM = Entry("padam", {"lr": 2e-4, **BETAS, "weight_decay": 5e-4})
PADAMS = [
    *(one for one in ON_GANS if one.contender in ("adam", "adabelief")),
    *(replace(PADAM.given({"partial": p}), variant=f"p {name}") for name, p in POWERS.items()),
]
# Appendix F: eight settings for HVAdam with a GAN, ten with SN-GAN, one for each of the others. The
# appendix made its table with the hidden step off, and perhaps the figure too.
OURS_ON_GANS = Entry(
    "hvadam",
    {**BETAS, "eps": 1e-12, "lr": 2e-4},
    axes={"gamma": [0.0, 0.1, 0.2, 0.5]},
    rates=(1e-2, 1e-3),
)
WITHOUT_STEP = replace(OURS_ON_GANS.given({"hidden_scale": 0.0}), variant="no hidden step")
FIVE: dict[str, Any] = {"trials": 5, "seeds": 5, "published_seeds": 5}
# Everyone at the scale of a laptop: the paper's baselines and what came after, but not the levels
# of its ablation.
EVERYONE = """
    sgd adam adamw rmsprop radam msvag yogi adabound fromage adabelief adai padam swa lookahead
    lookaround lion muon schedule_free_adamw hvadam
"""
EVERYWHERE = """
    digits_mlp digits_cnn fashion_mnist_cnn cifar10_vgg11 cifar10_resnet34 cifar10_densenet121
    cifar100_vgg11 cifar100_resnet34 cifar100_densenet121 cifar10_vit_b16 cifar100_vit_b16 ptb_lstm1
    ptb_lstm2 ptb_lstm3 shakespeare_lstm pydoc_lstm wikitext2_transformer iwslt14_transformer
    multi30k_transformer imagenet_resnet50 wgan wgan_gp sngan diffusion
"""


def on_lstm(layers: int) -> list[Entry]:
    """Return the baselines on an LSTM: those of the re-run that the paper took its numbers from.

    That is AdaBelief's code, except that AdamW and RAdam have 1e-3 at every depth. There SGD turns
    into averaged SGD when it stalls, but what is evaluated is not the average.
    """
    rate, eps = (1e-3, 1e-16) if layers == 1 else (1e-2, 1e-12)
    return entries(
        sgd={"lr": 30.0, "momentum": 0.0},
        adam={"lr": rate},
        adamw={"lr": 1e-3},
        radam={"lr": 1e-3},
        msvag={"lr": 30.0},
        yogi={"lr": 1e-2, "eps": 1e-3},
        adabound={"lr": 1e-2, "final_lr": 30.0},
        fromage={"lr": 1e-2},
        adabelief={"lr": rate, "eps": eps, **COUPLED},
    )


def _cifar(classes: int, panels: str) -> list[Recipe]:
    """Return the recipes of Figure 4; appendix F has 44 settings for HVAdam."""
    own = {"eps": 1e-8, **COUPLED}
    gammas = {"gamma": [float(gamma) for gamma in range(11)]}
    return both(
        f"cifar{classes}",
        f"Figure 4 {panels}: test accuracy on CIFAR-{classes} over 200 epochs, three networks",
        {f"cifar{classes}_{network}": ON_CIFAR for network in CNNS},
        [Entry("hvadam", own, axes=gammas, rates=(0.1, 0.01, 1e-3, 1e-4))],
    )


# In the order of the paper; what takes no training is a study of its own.
RECIPES = (
    Recipe(
        "laptop",
        "ours: everyone on every task, scaled down",
        [Contest(task, [Entry(name) for name in EVERYONE.split()]) for task in EVERYWHERE.split()],
    ),
    Recipe(
        "toy",
        "Figures 1 and 2: paths on f1 to f4, and from hundreds of other starts",
        commands=["hvadam valley --functions f1,f2,f3,f4"],
    ),
    Recipe(
        "worked_example",
        "Figure 3: two steps find the trend of 4|x - y| + |x + y|",
        commands=["hvadam valley --functions fig3"],
    ),
    *_cifar(10, "(a-c)"),
    *_cifar(100, "(d-f)"),
    *both(
        "imagenet",
        "Table 1: top-1 accuracy of ResNet50 on ImageNet",
        {"imagenet_resnet50": ON_IMAGENET},
        [Entry("hvadam", {"eps": 1e-8, "gamma": 0.5, **COUPLED}, rates=(4e-3, 1e-3))],
        averaged=(71, 90),
        trials=3,  # three rates each: nobody here could pay for seven
    ),
    *both(
        "vit",
        "Table 2: test accuracy of ViT-B/16 on CIFAR-10 and CIFAR-100",
        dict.fromkeys(("cifar10_vit_b16", "cifar100_vit_b16"), ON_VIT),
        [
            Entry(
                "hvadam",
                {"gamma": 1.0, **COUPLED},
                axes={"eps": [1e-12, 1e-16]},
                rates=(1e-3, 1e-4, 1e-5),
            )
        ],
        averaged=(171, 200),
        begin={"lr": 1e-4},
    ),
    *both(
        "lstm",
        "Figure 5: perplexity of 1, 2 and 3-layer LSTMs on the Penn Treebank",
        {f"ptb_lstm{layers}": on_lstm(layers) for layers in (1, 2, 3)},
        [Entry("hvadam", {"gamma": 0.5, **COUPLED}, rates=(1e-2, 1e-3, 1e-4))],
    ),
    Recipe(
        "iwslt14",
        "a transformer on IWSLT14 German-English, which the paper lists without result",
        [Contest("iwslt14_transformer", ON_IWSLT14, "paper", seeds=3)],
    ),
    *both(
        "gan",
        "Figure 6: Fréchet distances of WGAN and WGAN-GP on CIFAR-10, and samples",
        {"wgan": ON_GANS, "wgan_gp": ON_GANS},
        [OURS_ON_GANS, WITHOUT_STEP],
        **FIVE,
    ),
    *both(
        "padam",
        "Table of appendix G: WGAN and WGAN-GP beside Padam with five powers",
        {"wgan": PADAMS, "wgan_gp": PADAMS},
        [OURS_ON_GANS, WITHOUT_STEP],
        **FIVE,
    ),
    *both(
        "sngan",
        "Table 3: Fréchet distance of SN-GAN on CIFAR-10",
        # This code's Adam has an eps of its own, the rest is as for WGAN.
        {"sngan": [e.given({"eps": 1e-6}) if e.contender == "adam" else e for e in ON_GANS]},
        [replace(OURS_ON_GANS, axes={"gamma": [0.0, 0.001, 0.002, 0.1, 0.5]})],
        **FIVE,
    ),
    Recipe(
        "diffusion",
        "Table of the appendix: Fréchet distance of a diffusion model on CIFAR-10",
        # The paper gives no settings for it, so there is nothing to repeat as published.
        [
            Contest(
                "diffusion",
                entries(sgd={"lr": 1e-2}, adam={"lr": 1e-4}, hvadam={"lr": 1e-4}),
                "paper",
                trials=5,
                seeds=3,
            )
        ],
    ),
    *both(
        "ablation",
        "Table 4: ablation, from Adam (level 0) to the full method, 1-layer LSTM",
        {"ptb_lstm1": []},
        # The search of appendix F, for every level: the paper does not say which ones had it.
        [
            Entry(level, COUPLED, rates=(1e-2, 1e-3, 1e-4))
            for level in ("hvadam0", "hvadam1", "hvadam2", "hvadam")
        ],
        reference="hvadam0",
    ),
    Recipe(
        "theorems",
        "Theorems of appendices B to D: the hidden vector, regret, convergence",
        commands=["hvadam theory"],
    ),
)
