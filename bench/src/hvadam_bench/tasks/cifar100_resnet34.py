"""ResNet34 on CIFAR-100."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar100",
    "resnet34",
    published={
        "sgd": 72.60,
        "adabound": 75.91,
        "yogi": 76.63,
        "adam": 71.29,
        "msvag": 75.53,
        "radam": 74.02,
        "adamw": 72.47,
        "fromage": 74.52,
    },
    note="AdaBelief's file there is cut short.",
)
