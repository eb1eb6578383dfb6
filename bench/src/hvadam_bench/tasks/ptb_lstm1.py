"""AWD-LSTM of one layer on the Penn Treebank."""

from hvadam_bench.problems.ptb import task

TASK = task(
    1,
    published={
        "hvadam": 83.31,
        "hvadam2": 83.42,
        "hvadam1": 84.54,
        "hvadam0": 85.04,
        "adabelief": 84.21,
        "adam": 84.46,
        "sgd": 85.20,
        "adabound": 84.90,
        "msvag": 84.35,
        "yogi": 86.92,
        "adamw": 88.25,
        "radam": 88.83,
        "fromage": 85.03,
    },
    note="HVAdam's and its levels' are the paper's Table 4, where Adam is level 0.",
)
