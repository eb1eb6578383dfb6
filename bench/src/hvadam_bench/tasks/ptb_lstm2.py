"""AWD-LSTM of two layers on the Penn Treebank."""

from hvadam_bench.problems.ptb import task

# Test perplexities after the last of 200 epochs, all under the protocol "inherited": AdaBelief's by
# its authors, others by the re-run that the paper took its baselines from.
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
