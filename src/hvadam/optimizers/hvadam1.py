"""Ablation 1: Adam with the hidden step, without restarts."""

from hvadam.optimizers._hvadam import contender

SPEC = contender(1)
