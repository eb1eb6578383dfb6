"""AWD-LSTM of three layers on the Penn Treebank."""

from hvadam_bench.problems.ptb import task

TASK = task(
    3,
    published={
        "adabelief": 61.25,
        "adam": 64.85,
        "sgd": 63.54,
        "adabound": 63.34,
        "msvag": 65.12,
        "yogi": 67.85,
        "adamw": 70.56,
        "radam": 70.25,
        "fromage": 67.50,
    },
)
