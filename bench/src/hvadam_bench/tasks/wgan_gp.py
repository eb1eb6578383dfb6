"""WGAN-GP on CIFAR-10: a critic whose slope is kept near 1."""

from hvadam_bench.problems.wgan import task

TASK = task(
    "wgan_gp",
    "WGAN-GP with DCGAN's networks",
    "penalty",
    10.0,
    # By the names of the recipes' entries. The paper made HVAdam's with the hidden step off.
    published={
        **{"adabelief": 75.37, "hvadam (no hidden step)": 58.76},
        **{"padam (p 1/2)": 71.87, "padam (p 1/4)": 152.34, "padam (p 1/8)": 205.57},
        **{"padam (p 1/16)": 228.40, "padam (p 0)": 236.99},
    },
)
