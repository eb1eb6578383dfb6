"""Published settings and numbers, held to tables copied from the sources themselves.

The sources: the paper's tables and appendices F and G; the code and curves of AdaBelief's authors
and of the re-run by Buvanesh & Panwar (2021), which the paper's baselines are taken from; and the
code of Lookaround.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hvadam_bench import contenders, tasks
from hvadam_bench.running.options import decay_of
from hvadam_bench.studies import _recipes as recipes
from hvadam_bench.sweeping.search import Arm

ADAM = {"betas": (0.9, 0.999), "eps": 1e-8}
GAN_ADAM = {"lr": 2e-4, "betas": (0.5, 0.999), "eps": 1e-8}

# By recipe and task, contender -> options; "decay" is (kind, value). What is not named is nobody's
# to choose; HVAdam's searched options are sets.
CIFAR = {
    "sgd": {"lr": 0.1, "momentum": 0.9, "decay": ("coupled", 5e-4)},
    "adam": {"lr": 1e-3, **ADAM, "decay": ("coupled", 5e-4)},
    "adamw": {"lr": 1e-3, **ADAM, "decay": ("decoupled", 1e-2)},
    "adabelief": {"lr": 1e-3, **ADAM, "rectify": False, "decay": ("coupled", 5e-4)},
    "yogi": {
        **{"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-3, "initial_accumulator": 1e-6},
        **{"decay": ("coupled", 5e-4)},
    },
    "msvag": {"lr": 0.1, "beta": 0.9, "decay": ("coupled", 5e-4)},
    "radam": {"lr": 1e-3, **ADAM, "decay": ("decoupled", 5e-4)},
    "fromage": {"lr": 1e-2, "decay": ("none", 0.0)},
    "adabound": {"lr": 1e-3, **ADAM, "final_lr": 0.1, "gamma": 1e-3, "decay": ("coupled", 5e-4)},
    "hvadam": {
        **{"lr": {0.1, 1e-2, 1e-3, 1e-4}, "gamma": set(range(11))},
        **ADAM,
    },
}
LITTLE = 1.2e-6


def lstm(layers: int) -> dict[str, dict[str, Any]]:
    one = layers == 1
    rate = 1e-3 if one else 1e-2
    coupled, decoupled = ("coupled", LITTLE), ("decoupled", LITTLE)
    return {
        "adabelief": {
            **{"lr": rate, "betas": (0.9, 0.999), "eps": 1e-16 if one else 1e-12},
            **{"rectify": False, "decay": coupled},
        },
        "adam": {"lr": rate, **ADAM, "decay": coupled},
        # The re-run's, whose numbers stand beside; AdaBelief's authors had 1e-2 for more layers.
        "adamw": {"lr": 1e-3, **ADAM, "decay": decoupled},
        "radam": {"lr": 1e-3, **ADAM, "decay": decoupled},
        "yogi": {"lr": 1e-2, "eps": 1e-3, "decay": coupled},
        "adabound": {"lr": 1e-2, "final_lr": 30.0, "gamma": 1e-3, "decay": coupled},
        "msvag": {"lr": 30.0, "beta": 0.9, "decay": coupled},
        "sgd": {"lr": 30.0, "momentum": 0.0, "decay": coupled},
        "fromage": {"lr": 1e-2, "decay": ("none", 0.0)},
        "hvadam": {"lr": {1e-2, 1e-3, 1e-4}, "gamma": 0.5},
    }


NO_DECAY = {"decay": ("none", 0.0)}
GAN = {
    "sgd": {"lr": 2e-4, "momentum": 0.0, **NO_DECAY},
    "adam": {**GAN_ADAM, **NO_DECAY},
    "rmsprop": {"lr": 2e-4, "alpha": 0.99, "eps": 1e-8, "momentum": 0.0, **NO_DECAY},
    "radam": {**GAN_ADAM, **NO_DECAY},
    "msvag": {"lr": 2e-4, "beta": 0.5, **NO_DECAY},
    "yogi": {**GAN_ADAM, **NO_DECAY},
    "adabound": {**GAN_ADAM, "final_lr": 1e-2, **NO_DECAY},
    "fromage": {"lr": 2e-4, **NO_DECAY},
    "adabelief": {**GAN_ADAM, "eps": 1e-12, "rectify": False, **NO_DECAY},
}
GAN_HVADAM = {"lr": {1e-2, 1e-3}, "betas": (0.5, 0.999), "eps": 1e-12, **NO_DECAY}
WGAN_HVADAM = {**GAN_HVADAM, "gamma": {0.0, 0.1, 0.2, 0.5}}
WGAN = {
    "hvadam": {**WGAN_HVADAM, "hidden_scale": 1.0},
    "hvadam (no hidden step)": {**WGAN_HVADAM, "hidden_scale": 0.0},
}
PADAM = {
    f"padam (p {name})": {**GAN_ADAM, "partial": power, "decay": ("coupled", 5e-4)}
    for name, power in (("1/2", 1 / 2), ("1/4", 1 / 4), ("1/8", 1 / 8), ("1/16", 1 / 16), ("0", 0))
}
COUPLED = {"decay": ("coupled", 5e-4)}
AVERAGES = {"every": 3, "swa_lr": 8e-4}
IMAGENET = {
    "sgd": {"lr": 0.1, "momentum": 0.9, **COUPLED},
    "adam": {**COUPLED},  # of Adai's paper, without settings
    "adai": {"lr": 1.0, "betas": (0.1, 0.99), "eps": 1e-3, **COUPLED},
    "swa": {
        **{"inner": "sgd", "lr": 0.1, "momentum": 0.9, "start": 71 / 90, "anneal": 10 / 90},
        **AVERAGES,
        **COUPLED,
    },
    "lookahead": {"inner": "sgd", "lr": 0.1, "momentum": 0.9, "k": 5, "alpha": 0.5, **COUPLED},
    "lookaround": {"inner": "sgd", "lr": 0.1, "momentum": 0.9, "k": 5, "heads": 3, **COUPLED},
    "hvadam": {"lr": {4e-3, 1e-3}, **ADAM, "gamma": 0.5},
}
VIT_ADAM = {"lr": 1e-3, **ADAM, "decay": ("coupled", 5e-5)}
VIT = {
    "adam": VIT_ADAM,
    "swa": {"inner": "adam", **VIT_ADAM, "start": 171 / 200, "anneal": 10 / 200, **AVERAGES},
    "lookahead": {"inner": "adam", **VIT_ADAM, "k": 5, "alpha": 0.5},
    "lookaround": {"inner": "adam", **VIT_ADAM, "k": 5, "heads": 3},
    "hvadam": {
        **{"lr": {1e-3, 1e-4, 1e-5}, "betas": (0.9, 0.999), "eps": {1e-12, 1e-16}, "gamma": 1.0},
    },
}
SETTINGS = {
    **{
        (f"cifar{classes}_published", f"cifar{classes}_{network}"): CIFAR
        for classes in (10, 100)
        for network in ("vgg11", "resnet34", "densenet121")
    },
    **{("lstm_published", f"ptb_lstm{n}"): lstm(n) for n in (1, 2, 3)},
    **{("gan_published", task): {**GAN, **WGAN} for task in ("wgan", "wgan_gp")},
    **{
        ("padam_published", task): {
            **{name: GAN[name] for name in ("adam", "adabelief")},
            **PADAM,
            **WGAN,
        }
        for task in ("wgan", "wgan_gp")
    },
    ("sngan_published", "sngan"): {
        **GAN,
        "adam": {**GAN_ADAM, "eps": 1e-6, **NO_DECAY},
        "hvadam": {**GAN_HVADAM, "gamma": {0.0, 0.001, 0.002, 0.1, 0.5}},
    },
    ("imagenet_published", "imagenet_resnet50"): IMAGENET,
    **{("vit_published", f"cifar{classes}_vit_b16"): VIT for classes in (10, 100)},
    ("ablation_published", "ptb_lstm1"): {
        level: {"lr": {1e-2, 1e-3, 1e-4}} for level in ("hvadam0", "hvadam1", "hvadam2", "hvadam")
    },
    ("diffusion", "diffusion"): {"sgd": {}, "adam": NO_DECAY, "hvadam": NO_DECAY},
}
# Runs of each choice.
SEEDS = {"gan_published": 5, "padam_published": 5, "sngan_published": 5, "diffusion": 3}

# In this order, on VGG11, ResNet34 and DenseNet121; final accuracies.
CNN = ("adabelief", "sgd", "adabound", "yogi", "adam", "msvag", "radam", "adamw", "fromage")
CNNS = ("vgg11", "resnet34", "densenet121")
CIFAR10 = {
    "vgg11": (91.34, 89.67, 90.52, 90.42, 88.54, 89.86, 88.89, 88.63, 89.38),
    # AdaBelief's own: the re-run's is cut short.
    "resnet34": (95.20, 92.57, 95.01, 94.62, 92.82, 94.55, 94.47, 94.28, 93.07),
    "densenet121": (95.55, 93.13, 95.10, 95.15, 92.89, 94.90, 94.45, 93.97, 94.69),
}
CIFAR100 = {
    "vgg11": (67.65, 62.44, 65.09, 66.01, 58.75, 63.49, 58.82, 57.83, 63.31),
    "resnet34": (None, 72.60, 75.91, 76.63, 71.29, 75.53, 74.02, 72.47, 74.52),
    "densenet121": (78.51, 74.43, 77.30, 77.44, 73.39, 77.43, 76.56, 75.43, 76.19),
}
LSTM = ("adabelief", "adam", "sgd", "adabound", "msvag", "yogi", "adamw", "radam", "fromage")
PTB = {
    1: (84.21, 84.46, 85.20, 84.90, 84.35, 86.92, 88.25, 88.83, 85.03),
    2: (66.29, 67.07, 67.13, 67.57, 68.82, 71.66, 73.82, 74.06, 71.75),
    3: (61.25, 64.85, 63.54, 63.34, 65.12, 67.85, 70.56, 70.25, 67.50),
}
ABLATION = {"hvadam0": 85.04, "hvadam1": 84.54, "hvadam2": 83.42, "hvadam": 83.31}
FIDS = ("hvadam (no hidden step)", "adabelief", *PADAM)
NUMBERS: dict[str, dict[str, float]] = {
    **{
        f"{data}_{network}": {k: v for k, v in zip(CNN, row, strict=True) if v is not None}
        for data, rows in (("cifar10", CIFAR10), ("cifar100", CIFAR100))
        for network, row in rows.items()
    },
    **{
        f"ptb_lstm{n}": {**dict(zip(LSTM, row, strict=True)), **(ABLATION if n == 1 else {})}
        for n, row in PTB.items()
    },
    "imagenet_resnet50": {
        **{"sgd": 76.49, "adam": 72.87, "adai": 76.80, "swa": 76.78, "lookahead": 76.52},
        **{"lookaround": 77.32, "hvadam": 77.22},
    },
    "cifar10_vit_b16": {
        **{"adam": 98.34, "swa": 98.47, "lookahead": 98.51, "lookaround": 98.71, "hvadam": 99.00},
    },
    "cifar100_vit_b16": {
        **{"adam": 91.55, "swa": 91.32, "lookahead": 91.76, "lookaround": 92.21, "hvadam": 92.38},
    },
    "wgan": dict(zip(FIDS, (65.48, 82.85, 106.38, 422.62, 330.44, 357.26, 459.01), strict=True)),
    "wgan_gp": dict(zip(FIDS, (58.76, 75.37, 71.87, 152.34, 205.57, 228.40, 236.99), strict=True)),
    "sngan": {
        **{"hvadam": 12.72, "adabelief": 12.98, "radam": 13.10, "rmsprop": 12.86, "adam": 13.01},
        **{"fromage": 46.31, "yogi": 14.16, "sgd": 48.94, "adabound": 16.84},
    },
    "diffusion": {"hvadam": 11.68, "adam": 15.09, "sgd": 82.29},
}
# What of a task's paper scale the sources give: batches, length, decay, schedule.
SCALES: dict[str, dict[str, Any]] = {
    **{
        f"cifar{classes}_{network}": {
            **{"batch_size": 128, "epochs": 200, "milestones": [150], "weight_decay": 5e-4}
        }
        for classes in (10, 100)
        for network in CNNS
    },
    **{
        f"ptb_lstm{n}": {
            **{"columns": 20, "evaluation_columns": 1, "bptt": 70, "epochs": 200, "width": 400},
            **{"milestones": [100, 145], "dropouts": [0.1, 0.4, 0.25, 0.4, 0.5], "hidden": 1150},
            **{"ar": 2.0, "tar": 1.0, "weight_decay": LITTLE, "max_grad_norm": 0.25},
        }
        for n in (1, 2, 3)
    },
    **{
        name: {
            **{"size": 64, "batch_size": 64, "epochs": 100, "latent": 100, "width": 64},
            **{"critic_steps": 5, "samples": 64_000, kind: limit},
        }
        for name, kind, limit in (("wgan", "clip", 0.01), ("wgan_gp", "penalty", 10.0))
    },
    "sngan": {
        **{"size": 32, "batch_size": 64, "iterations": 100_000, "latent": 128},
        **{"critic_steps": 5, "evaluations": 50, "samples": 10_000},
    },
    "imagenet_resnet50": {
        **{"size": 224, "batch_size": 256, "epochs": 90, "warmup": 1, "milestones": [30, 60]},
        **{"weight_decay": 5e-4},
    },
    **{
        f"cifar{classes}_vit_b16": {
            **{"size": 224, "batch_size": 64, "epochs": 200, "warmup": 1, "floor": 1e-5},
            **{"weight_decay": 5e-5, "dim": 768, "depth": 12, "heads": 12, "dropout": 0.1},
        }
        for classes in (10, 100)
    },
    "iwslt14_transformer": {
        **{"width": 512, "inner": 1024, "heads": 4, "layers": 6, "dropout": 0.3},
        **{"smoothing": 0.1, "batch_tokens": 4096, "epochs": 50, "warmup": 4000, "average": 5},
        **{"weight_decay": 1e-4, "beam": 5},
    },
    "diffusion": {
        **{"width": 128, "multipliers": (1, 2, 2, 2), "blocks": 3, "attention": (16, 8)},
        **{"heads": 4, "dropout": 0.3, "batch_size": 128, "iterations": 500_000, "ema": 0.9999},
        **{"diffusion_steps": 4000, "sampling_steps": 4000, "samples": 10_000},
    },
}


def effective(arm: Arm) -> dict[str, Any]:
    """Return what an arm's runs work with; of searched options, the set of values."""
    name, study = arm.entry.contender, arm.contest
    spec, scale = contenders.get(name), tasks.get(study.task).scales[study.scale]
    decayed = {"weight_decay": scale.get("weight_decay", 0.0)}
    given = {key: value for key, value in decayed.items() if key in spec.defaults}
    every = [{**spec.defaults, **given, **trial.options} for trial in arm.trials]
    found: dict[str, Any] = {key: every[0][key] for key in every[0]}
    for key in {key for trial in every for key in trial if trial[key] != every[0][key]}:
        found[key] = {trial[key] for trial in every}
    optimizer = contenders.create(name, [torch.nn.Parameter(torch.zeros(1))], **every[0])
    decay = decay_of(spec, optimizer)
    return {**found, "decay": (decay.kind, decay.value)}


@pytest.mark.parametrize(("recipe", "task"), SETTINGS)
def test_recipes_have_the_published_settings(recipe: str, task: str) -> None:
    [study] = [one for one in recipes.get(recipe).studies if one.task == task]
    expected = SETTINGS[recipe, task]
    assert {arm.entry.entrant for arm in study.arms()} == set(expected)
    assert (study.scale, study.settings, study.seeds) == ("paper", {}, SEEDS.get(recipe, 1))
    for arm in study.arms():
        found = effective(arm)
        for name, value in expected[arm.entry.entrant].items():
            assert found[name] == value, f"{arm.entry.entrant}: {name}"


def test_every_published_recipe_is_in_the_table() -> None:
    published = [name for name in recipes.names() if name.endswith("_published")]
    swept = {(name, study.task) for name in published for study in recipes.get(name).studies}
    assert swept == SETTINGS.keys() - {("diffusion", "diffusion")}


@pytest.mark.parametrize("name", tasks.names())
def test_published_numbers_are_the_papers_and_say_where_they_are_from(name: str) -> None:
    task = tasks.get(name)
    assert task.published == NUMBERS.get(name, {})
    assert bool(task.published) == bool(task.published_from)
    if task.published:
        assert task.published_from.startswith("They are ")
        assert task.published_from.endswith(".")


@pytest.mark.parametrize("name", SCALES)
def test_paper_scale_has_the_published_settings(name: str) -> None:
    paper = tasks.get(name).scales["paper"]
    assert {key: paper[key] for key in SCALES[name]} == SCALES[name]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_published_number_has_a_run_beside_it(name: str) -> None:
    """Under the protocol that is published, in a recipe that changes no setting of the task."""
    protocol = "inherited" if "inherited" in tasks.get(name).protocols else "standard"
    running = {
        arm.entry.entrant
        for recipe in map(recipes.get, recipes.names())
        for study in recipe.studies
        if (study.task, study.scale, study.protocol) == (name, "paper", protocol)
        and not study.settings
        for arm in study.arms()
    }
    assert tasks.get(name).published.keys() <= running
