"""ResNet34 on CIFAR-10."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar10",
    "resnet34",
    published={
        "adabelief": 95.20,
        "sgd": 92.57,
        "adabound": 95.01,
        "yogi": 94.62,
        "adam": 92.82,
        "msvag": 94.55,
        "radam": 94.47,
        "adamw": 94.28,
        "fromage": 93.07,
    },
    note="AdaBelief's file there is cut short, so its number is its own authors'.",
)
