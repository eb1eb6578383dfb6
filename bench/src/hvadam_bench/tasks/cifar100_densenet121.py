"""DenseNet121 on CIFAR-100."""

from hvadam_bench.problems.cifar import task

TASK = task(
    "cifar100",
    "densenet121",
    published={
        "adabelief": 78.51,
        "sgd": 74.43,
        "adabound": 77.30,
        "yogi": 77.44,
        "adam": 73.39,
        "msvag": 77.43,
        "radam": 76.56,
        "adamw": 75.43,
        "fromage": 76.19,
    },
)
