"""The paper's tables and figures that take training, as sweeps, with published settings.

There are two of each. The plain one gives every contender the same tuning budget around its
published settings and holds a validation split out. `<name>_published` repeats what was done:
baselines at the settings of the literature, HVAdam over the grid of appendix F, with the inherited
protocol, which looks at the test set throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

Entries = Sequence[Entry]
BETAS = {"betas": (0.5, 0.999)}


def both(
    name: str,
    what: str,
    tasks: Sequence[str],
    tuned: Callable[[str], Entries],
    searched: Callable[[str], Entries],
    *,
    published_seeds: int = 1,
    **fair: Any,
) -> list[Recipe]:
    """Return the plain recipe of a table and the one that repeats what was published.

    Args:
        name: The name of the plain recipe.
        what: What the paper shows.
        tasks: What is trained.
        tuned: Returns who competes on a task, each tuned alike.
        searched: Returns the same contenders as the paper ran them.
        published_seeds: How many seeds the paper ran.
        fair: What the plain contests have that others do not.
    """
    plain = [Contest(task, tuned(task), **{"scale": "paper", "seeds": 3, **fair}) for task in tasks]
    repeated = [
        Contest(
            task,
            searched(task),
            scale="paper",
            protocol="inherited",
            budget="published",
            seeds=published_seeds,
            reference=plain[0].reference,
        )
        for task in tasks
    ]
    return [
        Recipe(name, what, plain),
        Recipe(f"{name}_published", f"{what}, as published", repeated),
    ]


def hvadam(options: Mapping[str, Any], **search: Any) -> Entry:
    """Return HVAdam with its options and, as published, the values that were searched."""
    return Entry("hvadam", options, **search)


def _cifar() -> list[Recipe]:
    """Convolutional networks on CIFAR: Figure 4, and the training curves of the appendix."""
    # As AdaBelief's code has them, which the paper's baselines ran with. The task's decay of 5e-4
    # goes for everyone else, except that Fromage has none. MSVAG is its authors', not that port.
    baselines = (
        Entry("sgd", {"lr": 0.1, "momentum": 0.9}),
        Entry("adam", {"lr": 1e-3}),
        Entry("adamw", {"lr": 1e-3, "weight_decay": 1e-2}),
        Entry("radam", {"lr": 1e-3}),
        Entry("msvag", {"lr": 0.1}),
        Entry("yogi", {"lr": 1e-3, "eps": 1e-3}),
        Entry("adabound", {"lr": 1e-3, "final_lr": 0.1}),
        Entry("fromage", {"lr": 1e-2}),
        Entry("adabelief", {"lr": 1e-3, "eps": 1e-8, "weight_decay_mode": "coupled"}),
    )
    # The paper does not say how HVAdam decays; coupled is its authors' default and everyone's here.
    own = {"eps": 1e-8, "weight_decay_mode": "coupled"}
    # Appendix F: 44 settings for HVAdam, one for each of the others.
    gammas = {"gamma": [float(gamma) for gamma in range(11)]}
    found: list[Recipe] = []
    for classes, panels in ((10, "(a-c)"), (100, "(d-f)")):
        found += both(
            f"cifar{classes}",
            f"Figure 4 {panels}: test accuracy on CIFAR-{classes} over 200 epochs, three networks",
            [f"cifar{classes}_{network}" for network in ("vgg11", "resnet34", "densenet121")],
            lambda _: [*baselines, hvadam(own)],
            lambda _: [*baselines, hvadam(own, axes=gammas, rates=(0.1, 0.01, 1e-3, 1e-4))],
        )
    return found


def _imagenet() -> list[Recipe]:
    """ResNet50 on ImageNet: Table 1."""
    # SGD, SWA, Lookahead and Lookaround as in Lookaround's code, Adai as its authors advise. The
    # paper took Adam's number from Adai's, whose code has no ImageNet: the rate is that of its
    # CIFAR.
    baselines = (
        Entry("sgd", {"lr": 0.1, "momentum": 0.9}),
        Entry("adam", {"lr": 1e-4}),
        Entry("adai", {"lr": 1.0}),
        Entry("swa", {"lr": 0.1}),
        Entry("lookahead", {"lr": 0.1, "k": 5, "alpha": 0.5}),
        Entry("lookaround", {"lr": 0.1, "heads": 3, "k": 5}),
    )
    own = {"eps": 1e-8, "gamma": 0.5, "weight_decay_mode": "coupled"}
    return both(
        "imagenet",
        "Table 1: top-1 accuracy of ResNet50 on ImageNet",
        ["imagenet_resnet50"],
        lambda _: [*baselines, hvadam(own)],
        lambda _: [*averaging(baselines, 71, 90), hvadam(own, rates=(4e-3, 1e-3))],
        trials=3,  # three rates each: nobody here could pay for seven
    )


def averaging(baselines: Entries, first: int, epochs: int) -> list[Entry]:
    """Return baselines with SWA as in Lookaround's code.

    That averages from an epoch on, once every turn of its three loaders; the rate goes to one of
    its own within ten epochs.
    """
    given = {"start": first / epochs, "every": 3, "swa_lr": 8e-4, "anneal": 10 / epochs}
    return [one.given(given) if one.contender == "swa" else one for one in baselines]


def _vit() -> list[Recipe]:
    """ViT-B/16 fine-tuned on CIFAR: Table 2."""
    # As in Lookaround's code, where the averaging methods average Adam.
    adam = {"inner": "adam", "lr": 1e-3}
    baselines = (
        Entry("adam", {"lr": 1e-3}),
        Entry("swa", adam),
        Entry("lookahead", {**adam, "k": 5, "alpha": 0.5}),
        Entry("lookaround", {**adam, "heads": 3, "k": 5}),
    )
    own = {"gamma": 1.0, "weight_decay_mode": "coupled"}
    search = {"axes": {"eps": [1e-12, 1e-16]}, "rates": (1e-3, 1e-4, 1e-5)}
    # Fine-tuning wants smaller rates than any of the defaults: begin lower, for everyone.
    lower = [entry.given({"lr": 1e-4}) for entry in (*baselines, hvadam(own))]
    return both(
        "vit",
        "Table 2: test accuracy of ViT-B/16 on CIFAR-10 and CIFAR-100",
        ["cifar10_vit_b16", "cifar100_vit_b16"],
        lambda _: lower,
        lambda _: [*averaging(baselines, 171, 200), hvadam(own, **search)],
    )


def _lstm() -> list[Recipe]:
    """LSTMs of one, two and three layers on the Penn Treebank: Figure 5."""
    own = {"gamma": 0.5, "weight_decay_mode": "coupled"}

    def baselines(task: str) -> list[Entry]:
        # Those of the re-run that the paper took its numbers from: AdaBelief's code, except that
        # AdamW and RAdam have 1e-3 at every depth. There SGD turns into averaged SGD when it
        # stalls, but what is evaluated is not the average.
        one = task == "ptb_lstm1"
        adam = {"lr": 1e-3 if one else 1e-2}
        belief = {**adam, "eps": 1e-16 if one else 1e-12, "weight_decay_mode": "coupled"}
        return [
            Entry("sgd", {"lr": 30.0, "momentum": 0.0}),
            Entry("adam", adam),
            Entry("adamw", {"lr": 1e-3}),
            Entry("radam", {"lr": 1e-3}),
            Entry("msvag", {"lr": 30.0}),
            Entry("yogi", {"lr": 1e-2, "eps": 1e-3}),
            Entry("adabound", {"lr": 1e-2, "final_lr": 30.0}),
            Entry("fromage", {"lr": 1e-2}),
            Entry("adabelief", belief),
        ]

    return both(
        "lstm",
        "Figure 5: perplexity of 1, 2 and 3-layer LSTMs on the Penn Treebank",
        ["ptb_lstm1", "ptb_lstm2", "ptb_lstm3"],
        lambda task: [*baselines(task), hvadam(own)],
        lambda task: [*baselines(task), hvadam(own, rates=(1e-2, 1e-3, 1e-4))],
    )


def _iwslt14() -> list[Recipe]:
    """A transformer on IWSLT14, which the paper lists among its experiments without a result."""
    # As in the fairseq scripts of AdaBelief's authors, where "adam" decays as AdamW does; RAdam has
    # the same rate.
    belief = {"eps": 1e-16, "weight_decay_mode": "decoupled", "rectify": True}
    entries = (
        Entry("adam", {"lr": 5e-4, "betas": (0.9, 0.98)}),
        Entry("adamw", {"lr": 5e-4, "betas": (0.9, 0.98)}),
        Entry("radam", {"lr": 5e-4}),
        Entry("adabelief", {"lr": 5e-4, **belief}),
        Entry("hvadam", {"lr": 5e-4}),
    )
    what = "a transformer on IWSLT14 German-English, which the paper lists without result"
    return [Recipe("iwslt14", what, [Contest("iwslt14_transformer", entries, "paper", seeds=3)])]


# GANs as AdaBelief's code has them: one learning rate for all, no decay.
GAN_BASELINES = (
    Entry("sgd", {"lr": 2e-4, "momentum": 0.0}),
    Entry("adam", {"lr": 2e-4, **BETAS}),
    Entry("rmsprop", {"lr": 2e-4}),
    Entry("radam", {"lr": 2e-4, **BETAS}),
    Entry("msvag", {"lr": 2e-4, "beta": 0.5}),
    Entry("yogi", {"lr": 2e-4, **BETAS, "eps": 1e-8}),
    Entry("adabound", {"lr": 2e-4, **BETAS, "final_lr": 1e-2}),
    Entry("fromage", {"lr": 2e-4}),
    Entry("adabelief", {"lr": 2e-4, **BETAS, "eps": 1e-12}),
)
GAN_HVADAM = {**BETAS, "eps": 1e-12}


def _gan() -> list[Recipe]:
    """WGAN and WGAN-GP on CIFAR-10: Figure 6, the appendix's samples, and its Padam table."""
    # Padam's power p: 1/2 is AMSGrad, 0 is SGD with averaged momentum.
    powers = {"1/2": 0.5, "1/4": 0.25, "1/8": 0.125, "1/16": 0.0625, "0": 0.0}
    decayed = {"lr": 2e-4, **BETAS, "weight_decay": 5e-4}
    padam = [
        Entry("padam", {**decayed, "partial": power}, variant=f"p {name}")
        for name, power in powers.items()
    ]
    beside = [one for one in GAN_BASELINES if one.contender in ("adam", "adabelief")] + padam

    def steps(options: dict[str, Any], **search: Any) -> list[Entry]:
        # The appendix made its table with the hidden step off, and perhaps the figure too.
        off = {**options, "hidden_scale": 0.0}
        return [hvadam(options, **search), hvadam(off, **search, variant="no hidden step")]

    ours = steps({**GAN_HVADAM, "lr": 2e-4})
    # Appendix F: eight settings for HVAdam, one for each of the others.
    searched = steps(GAN_HVADAM, axes={"gamma": [0.0, 0.1, 0.2, 0.5]}, rates=(1e-2, 1e-3))
    found: list[Recipe] = []
    for name, what, others in (
        (
            "gan",
            "Figure 6: Fréchet distances of WGAN and WGAN-GP on CIFAR-10, and samples",
            GAN_BASELINES,
        ),
        (
            "padam",
            "Table of appendix G: WGAN and WGAN-GP beside Padam with five powers",
            beside,
        ),
    ):
        found += both(
            name,
            what,
            ["wgan", "wgan_gp"],
            lambda _, others=others: [*others, *ours],
            lambda _, others=others: [*others, *searched],
            trials=5,
            seeds=5,
            published_seeds=5,
        )
    return found


def _sngan() -> list[Recipe]:
    """SN-GAN on CIFAR-10: Table 3."""
    # This code's Adam has an eps of its own, the rest is as for WGAN.
    entries = [e.given({"eps": 1e-6}) if e.contender == "adam" else e for e in GAN_BASELINES]
    # Appendix F: ten settings for HVAdam, one for each of the others.
    search = {"axes": {"gamma": [0.0, 0.001, 0.002, 0.1, 0.5]}, "rates": (1e-2, 1e-3)}
    return both(
        "sngan",
        "Table 3: Fréchet distance of SN-GAN on CIFAR-10",
        ["sngan"],
        lambda _: [*entries, hvadam({**GAN_HVADAM, "lr": 2e-4})],
        lambda _: [*entries, hvadam(GAN_HVADAM, **search)],
        trials=5,
        seeds=5,
        published_seeds=5,
    )


def _diffusion() -> list[Recipe]:
    """Diffusion on CIFAR-10: the appendix's table of SGD, Adam and HVAdam."""
    # The paper gives no settings for it, so there is nothing to repeat as published.
    rates = {"sgd": 1e-2, "adam": 1e-4, "hvadam": 1e-4}
    entries = [Entry(name, {"lr": lr}) for name, lr in rates.items()]
    what = "Table of the appendix: Fréchet distance of a diffusion model on CIFAR-10"
    return [Recipe("diffusion", what, [Contest("diffusion", entries, "paper", trials=5, seeds=3)])]


def _ablation() -> list[Recipe]:
    """What each part of the method adds, on the 1-layer LSTM: Table 4."""
    levels, decay = ("hvadam0", "hvadam1", "hvadam2", "hvadam"), {"weight_decay_mode": "coupled"}
    # The search of appendix F, for every level: the paper does not say which ones had it.
    rates = (1e-2, 1e-3, 1e-4)
    return both(
        "ablation",
        "Table 4: ablation, from Adam (level 0) to the full method, 1-layer LSTM",
        ["ptb_lstm1"],
        lambda _: [Entry(level, decay) for level in levels],
        lambda _: [Entry(level, decay, rates=rates) for level in levels],
        reference="hvadam0",
    )


def _laptop() -> Recipe:
    """Everyone on every task, at the scale of a laptop."""
    tasks = (
        *("digits_mlp", "digits_cnn", "fashion_mnist_cnn"),
        *("cifar10_vgg11", "cifar10_resnet34", "cifar10_densenet121"),
        *("cifar100_vgg11", "cifar100_resnet34", "cifar100_densenet121"),
        *("cifar10_vit_b16", "cifar100_vit_b16"),
        *("ptb_lstm1", "ptb_lstm2", "ptb_lstm3", "shakespeare_lstm", "pydoc_lstm"),
        *("wikitext2_transformer", "iwslt14_transformer", "multi30k_transformer"),
        *("imagenet_resnet50", "wgan", "wgan_gp", "sngan", "diffusion"),
    )
    # The paper's baselines and what came after; not the levels of its ablation.
    contenders = (
        *("sgd", "adam", "adamw", "rmsprop", "radam", "msvag", "yogi", "adabound", "fromage"),
        *("adabelief", "adai", "padam", "swa", "lookahead", "lookaround"),
        *("lion", "muon", "schedule_free_adamw", "hvadam"),
    )
    entries = [Entry(name) for name in contenders]
    what = "ours: everyone on every task, scaled down"
    return Recipe("laptop", what, [Contest(task, entries) for task in tasks])


# What takes no training, as studies of their own do it.
_TYPED = (
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
)
_THEOREMS = Recipe(
    "theorems",
    "Theorems of appendices B to D: the hidden vector, regret, convergence",
    commands=["hvadam theory"],
)

# In the order of the paper.
RECIPES = (
    _laptop(),
    *_TYPED,
    *_cifar(),
    *_imagenet(),
    *_vit(),
    *_lstm(),
    *_iwslt14(),
    *_gan(),
    *_sngan(),
    *_diffusion(),
    *_ablation(),
    _THEOREMS,
)
