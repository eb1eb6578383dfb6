"""Ablation 2: the preconditioner from the hidden vector too, without restarts."""

from hvadam.optimizers._hvadam import contender

SPEC = contender(2)
