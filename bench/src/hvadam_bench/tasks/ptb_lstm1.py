"""AWD-LSTM of one layer on the Penn Treebank."""

from hvadam_bench.problems.ptb import task

# Test perplexities after the last of 200 epochs, all under the protocol "inherited": AdaBelief's by
# its authors, others by the re-run that the paper took its baselines from, HVAdam's by the paper's
# ablation (whose Adam, level 0, is at 85.04).
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
)
