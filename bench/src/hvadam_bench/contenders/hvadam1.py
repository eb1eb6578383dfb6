"""Ablation 1: Adam with the hidden step, without restarts."""

from hvadam_bench.contenders._hvadam import contender

SPEC = contender(1)
