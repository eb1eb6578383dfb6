"""HVAdam as it stands in the paper, and the three steps by which its ablation grows from Adam."""

from hvadam_bench.contenders._hvadam import contender

SPECS = [contender(level) for level in ("full", 0, 1, 2)]
