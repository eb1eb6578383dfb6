"""Ablation 0: Adam, by HVAdam's kernels."""

from hvadam_bench.contenders._hvadam import contender

SPEC = contender(0)
