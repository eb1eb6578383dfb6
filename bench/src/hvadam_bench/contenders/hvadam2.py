"""Ablation 2: the preconditioner from the hidden vector too, without restarts."""

from hvadam_bench.contenders._hvadam import contender

SPEC = contender(2)
