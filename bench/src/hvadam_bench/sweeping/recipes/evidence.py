"""What we compared ourselves on: ten small tasks, the ablation, sensitivity, and generators.

The tasks keep the character of the larger ones at 1 to 20 seconds a run, 45 for generators, so that
everyone can be tuned alike and judged by fresh seeds on a laptop. A run has about a thousand steps:
the hidden step needs some 700 to wake up, if the hidden vector and the momentum agree wholly.
"""

from __future__ import annotations

from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.recipes.gan import BASELINES, HVADAM, NO_HIDDEN_STEP, PADAM
from hvadam_bench.sweeping.search import Entry, Study

# In the order in which they run, and with what is changed of the laptop's scale.
TASKS: dict[str, dict[str, Any]] = {
    "digits_mlp": {"epochs": 40},
    "digits_cnn": {"epochs": 30},
    "fashion_mnist_cnn": {
        **{"train_images": 4500, "test_images": 2000, "width": 8},
        **{"batch_size": 24, "epochs": 6, "milestones": [4.5]},
    },
    "cifar10_vgg11": {
        **{"train_images": 2500, "test_images": 2000},
        **{"batch_size": 10, "epochs": 4, "milestones": [3]},
    },
    "cifar10_resnet34": {
        **{"train_images": 2500, "test_images": 2000, "width": 4},
        **{"batch_size": 12, "epochs": 5, "milestones": [3.75]},
    },
    "shakespeare_lstm": {
        **{"tokens": 100_000, "evaluated": 10_000, "hidden": 64},
        **{"length": 32, "epochs": 10},
    },
    "ptb_lstm1": {
        **{"tokens": 40_000, "evaluated": 10_000, "vocabulary": 1000, "width": 48, "hidden": 96},
        **{"columns": 10, "bptt": 20, "epochs": 5, "milestones": [3.5, 4.5]},
    },
    "wikitext2_transformer": {
        **{"tokens": 60_000, "evaluated": 10_000, "vocabulary": 1000, "width": 48, "inner": 128},
        **{"layers": 1, "length": 32, "batch_size": 8, "epochs": 4},
    },
    "multi30k_transformer": {
        **{"train_pairs": 2000, "evaluated_pairs": 100, "width": 48, "inner": 96, "layers": 1},
        **{"batch_tokens": 200, "epochs": 4, "scored": 20},
    },
    "cifar10_vit_b16": {
        **{"train_images": 2500, "test_images": 2000, "dim": 48, "depth": 2},
        **{"batch_size": 16, "epochs": 7},
    },
}
EVERYONE_ON = ("digits_cnn", "fashion_mnist_cnn")
# Who was there when the records were made, besides the core.
OTHERS = (
    *("sgd_ema", "rmsprop", "msvag", "yogi", "adabound", "fromage", "adai", "padam", "swa"),
    *("lookahead", "lookaround", "hvadam0", "hvadam1", "hvadam2"),
)
# Without a decay of its own AdamW would be Adam wherever the task has none.
ADAMW = Entry("adamw", {"weight_decay": 0.01})
# "usual": the values that the paper calls so.
VARIANTS = (
    Entry("hvadam", {"gamma": 0.0, "eps": 1e-16}, variant="usual"),
    Entry("hvadam", {"hidden_scale": 0.0}, variant=NO_HIDDEN_STEP),
)
CORE = (
    *(Entry("sgd"), Entry("adam"), ADAMW, Entry("adabelief"), Entry("radam"), Entry("lion")),
    *(Entry("muon"), Entry("schedule_free_adamw"), Entry("hvadam"), *VARIANTS),
)
LEVELS = ("hvadam0", "hvadam1", "hvadam2", "hvadam")
LONGER = 4
# Each map is the learning rate against one option, the others at their defaults.
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
MAPS: dict[str, list[float]] = {
    "gamma": [0.0, 0.1, 0.5, 1.0, 2.0],
    "eps": [1e-16, 1e-12, 1e-8, 1e-6],
    "hidden_scale": [0.0, 0.3, 1.0, 3.0],
}
MAPPED = ("digits_cnn", "shakespeare_lstm", "wikitext2_transformer")


# Likewise of the generators, the GANs with everybody of the paper's figures first.
_WASSERSTEIN = {"train_images": 10_000, "width": 8, "epochs": 8, "samples": 1000}
GANS: dict[str, dict[str, Any]] = {"wgan": _WASSERSTEIN, "wgan_gp": _WASSERSTEIN}
FEW_ON: dict[str, dict[str, Any]] = {
    "sngan": {"iterations": 150, "evaluations": 5, "samples": 500},
    "diffusion": {"iterations": 200, "samples": 200},
}


def _entries(task: str) -> list[Entry]:
    return [*CORE, *map(Entry, OTHERS if task in EVERYONE_ON else ())]


def _ablation(task: str, longer: int) -> Study:
    own = dict(TASKS[task])
    own["epochs"] *= longer
    if "milestones" in own:
        own["milestones"] = [longer * epoch for epoch in own["milestones"]]
    entries = [Entry(level) for level in LEVELS]
    return Study(task, entries, settings=own, trials=6, reference="hvadam0")


def _map(task: str, option: str) -> Study:
    entry = Entry("hvadam", {}, {option: MAPS[option]}, RATES, f"lr and {option}")
    return Study(
        task, [entry], settings=TASKS[task], budget="published", seeds=1, reference="hvadam"
    )


def _generators() -> list[Study]:
    ours = [
        Entry("hvadam", {**HVADAM, "lr": 1e-3}),
        Entry("hvadam", {**HVADAM, "lr": 1e-3, "hidden_scale": 0.0}, variant=NO_HIDDEN_STEP),
    ]
    everyone = [*BASELINES, *ours, *PADAM]
    few = [Entry("sgd"), Entry("adam"), Entry("adabelief"), Entry("hvadam")]
    return [
        Study(task, entries, settings=own, trials=3, seeds=3)
        for entries, tasks in ((everyone, GANS), (few, FEW_ON))
        for task, own in tasks.items()
    ]


RECIPES = (
    Recipe(
        name="evidence_tasks",
        reproduces="ours: eleven entries on ten small tasks, on two of them everyone",
        studies=[
            Study(task, _entries(task), settings=own, trials=6) for task, own in TASKS.items()
        ],
    ),
    Recipe(
        name="evidence_ablation",
        reproduces="ours: the ablation on two small tasks, and on runs four times as long",
        studies=[
            _ablation(task, longer)
            for longer in (1, LONGER)
            for task in ("ptb_lstm1", "shakespeare_lstm")
        ],
    ),
    Recipe(
        name="evidence_sensitivity",
        reproduces="ours: HVAdam over lr and gamma, eps or hidden_scale on three small tasks",
        studies=[_map(task, option) for task in MAPPED for option in MAPS],
    ),
    Recipe(
        name="evidence_generative",
        reproduces="ours: generators of small images, with the paper's contenders",
        studies=_generators(),
    ),
)
