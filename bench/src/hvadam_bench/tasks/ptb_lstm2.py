"""AWD-LSTM of two layers on the Penn Treebank."""

from hvadam_bench.problems.ptb import task

TASK = task(
    2,
    published={
        "adabelief": 66.29,
        "adam": 67.07,
        "sgd": 67.13,
        "adabound": 67.57,
        "msvag": 68.82,
        "yogi": 71.66,
        "adamw": 73.82,
        "radam": 74.06,
        "fromage": 71.75,
    },
)
