"""DenseNet121 on CIFAR-10."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar10",
    "densenet121",
    published={
        "adabelief": 95.55,
        "sgd": 93.13,
        "adabound": 95.10,
        "yogi": 95.15,
        "adam": 92.89,
        "msvag": 94.90,
        "radam": 94.45,
        "adamw": 93.97,
        "fromage": 94.69,
    },
)
