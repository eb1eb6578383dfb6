"""WGAN and WGAN-GP on CIFAR-10: Figure 6, the appendix's samples, and its Padam table."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

TASKS = ("wgan", "wgan_gp")
BETAS = {"betas": (0.5, 0.999)}
# As AdaBelief's code has them: one learning rate for all, no decay.
BASELINES = (
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
# Padam's power p: 1/2 is AMSGrad, 0 is SGD with averaged momentum.
POWERS = {"1/2": 0.5, "1/4": 0.25, "1/8": 0.125, "1/16": 0.0625, "0": 0.0}
PADAM = tuple(
    Entry(
        "padam",
        {"lr": 2e-4, **BETAS, "partial": power, "weight_decay": 5e-4},
        variant=f"p {name}",
    )
    for name, power in POWERS.items()
)
HVADAM = {**BETAS, "eps": 1e-12}
# The appendix made its table with the hidden step off, and the figure may have been made so too.
NO_HIDDEN_STEP = "no hidden step"
FIGURE = "Figure 6: Fréchet distances of WGAN and WGAN-GP on CIFAR-10, and samples"
TABLE = "Table of appendix G: WGAN and WGAN-GP beside Padam with five powers"


def both_steps(
    options: dict[str, object], axes: dict[str, list[float]], rates: tuple[float, ...]
) -> list[Entry]:
    """Return HVAdam with the hidden step and without it."""
    return [
        Entry("hvadam", options, axes, rates),
        Entry("hvadam", {**options, "hidden_scale": 0.0}, axes, rates, NO_HIDDEN_STEP),
    ]


def _tuned(entries: list[Entry]) -> list[Contest]:
    return [Contest(task, entries, scale="paper", trials=5, seeds=5) for task in TASKS]


def _published(entries: list[Entry]) -> list[Contest]:
    return [
        Contest(task, entries, "paper", "inherited", budget="published", seeds=5) for task in TASKS
    ]


_BESIDE = [e for e in BASELINES if e.contender in ("adam", "adabelief")] + list(PADAM)
_OURS = both_steps({**HVADAM, "lr": 2e-4}, {}, ())
# Appendix F: eight settings for HVAdam, one for each of the others.
_SEARCHED = both_steps({**HVADAM}, {"gamma": [0.0, 0.1, 0.2, 0.5]}, (1e-2, 1e-3))

RECIPES = (
    Recipe("gan", FIGURE, _tuned([*BASELINES, *_OURS])),
    Recipe("gan_published", f"{FIGURE}, as published", _published([*BASELINES, *_SEARCHED])),
    Recipe("padam", TABLE, _tuned([*_BESIDE, *_OURS])),
    Recipe("padam_published", f"{TABLE}, as published", _published([*_BESIDE, *_SEARCHED])),
)
