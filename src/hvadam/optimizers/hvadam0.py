"""Ablation 0: Adam, by HVAdam's kernels."""

from hvadam.optimizers._hvadam import contender

SPEC = contender(0)
