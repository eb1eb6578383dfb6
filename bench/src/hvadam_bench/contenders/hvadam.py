"""HVAdam, as it stands in the paper."""

from hvadam_bench.contenders._hvadam import contender

SPEC = contender("full")
