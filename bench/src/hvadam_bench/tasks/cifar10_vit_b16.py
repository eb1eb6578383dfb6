"""ViT-B/16, pre-trained on ImageNet, on CIFAR-10."""

from hvadam_bench.problems.vit import task

TASK = task(
    "cifar10",
    "ViT-B/16 fine-tuned on CIFAR-10",
    published={
        "adam": 98.34,
        "swa": 98.47,
        "lookahead": 98.51,
        "lookaround": 98.71,
        "hvadam": 99.00,
    },
)
