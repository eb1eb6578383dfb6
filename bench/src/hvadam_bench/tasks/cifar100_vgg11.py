"""VGG11 on CIFAR-100."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar100",
    "vgg11",
    published={
        "adabelief": 67.65,
        "sgd": 62.44,
        "adabound": 65.09,
        "yogi": 66.01,
        "adam": 58.75,
        "msvag": 63.49,
        "radam": 58.82,
        "adamw": 57.83,
        "fromage": 63.31,
    },
)
