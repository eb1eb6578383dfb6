"""WGAN on CIFAR-10: a critic whose weights are kept in a box."""

from hvadam_bench.problems.wgan import task

TASK = task(
    "wgan",
    "WGAN with DCGAN's networks",
    "clip",
    0.01,
    # By the names of the recipes' entries. The paper made HVAdam's with the hidden step off.
    published={
        **{"adabelief": 82.85, "hvadam (no hidden step)": 65.48},
        **{"padam (p 1/2)": 106.38, "padam (p 1/4)": 422.62, "padam (p 1/8)": 330.44},
        **{"padam (p 1/16)": 357.26, "padam (p 0)": 459.01},
    },
)
