"""ViT-B/16, pre-trained on ImageNet, on CIFAR-100."""

from hvadam_bench.problems.vit import task

TASK = task(
    "cifar100",
    "ViT-B/16 fine-tuned on CIFAR-100",
    published={
        "adam": 91.55,
        "swa": 91.32,
        "lookahead": 91.76,
        "lookaround": 92.21,
        "hvadam": 92.38,
    },
)
