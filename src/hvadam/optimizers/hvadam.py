"""HVAdam, as it stands in the paper."""

from hvadam.optimizers._hvadam import contender

SPEC = contender("full")
