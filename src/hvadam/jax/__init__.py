"""HVAdam for JAX: a gradient transformation of Optax and its alias. Importing it loads no torch."""

from hvadam.jax.alias import hvadam
from hvadam.jax.meter import MeterState, gradient_meter, read_meter
from hvadam.jax.transform import HiddenScalars, HVAdamState, scale_by_hvadam

__all__ = [
    "HVAdamState",
    "HiddenScalars",
    "MeterState",
    "gradient_meter",
    "hvadam",
    "read_meter",
    "scale_by_hvadam",
]
