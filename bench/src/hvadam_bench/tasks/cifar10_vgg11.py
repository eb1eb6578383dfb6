"""VGG11 on CIFAR-10."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar10",
    "vgg11",
    published={
        "adabelief": 91.34,
        "sgd": 89.67,
        "adabound": 90.52,
        "yogi": 90.42,
        "adam": 88.54,
        "msvag": 89.86,
        "radam": 88.89,
        "adamw": 88.63,
        "fromage": 89.38,
    },
)
