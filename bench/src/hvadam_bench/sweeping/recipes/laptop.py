"""Everyone on every task, at the scale of a laptop."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

TASKS = (
    *("digits_mlp", "digits_cnn", "fashion_mnist_cnn"),
    *("cifar10_vgg11", "cifar10_resnet34", "cifar10_densenet121"),
    *("cifar100_vgg11", "cifar100_resnet34", "cifar100_densenet121"),
    *("cifar10_vit_b16", "cifar100_vit_b16"),
    *("ptb_lstm1", "ptb_lstm2", "ptb_lstm3", "shakespeare_lstm", "pydoc_lstm"),
    *("wikitext2_transformer", "iwslt14_transformer", "multi30k_transformer"),
    *("imagenet_resnet50", "wgan", "wgan_gp", "sngan", "diffusion"),
)
# The paper's baselines and what came after; not the levels of its ablation.
CONTENDERS = (
    *("sgd", "adam", "adamw", "rmsprop", "radam", "msvag", "yogi", "adabound", "fromage"),
    *("adabelief", "adai", "padam", "swa", "lookahead", "lookaround"),
    *("lion", "muon", "schedule_free_adamw", "hvadam"),
)

RECIPES = (
    Recipe(
        name="laptop",
        reproduces="ours: everyone on every task, scaled down",
        studies=[Contest(task, [Entry(name) for name in CONTENDERS]) for task in TASKS],
    ),
)
