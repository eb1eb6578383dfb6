"""HVAdam for JAX: a gradient transformation of Optax and its alias. Importing it loads no torch."""

from hvadam.jax.alias import hvadam
from hvadam.jax.transform import HiddenScalars, HVAdamState, scale_by_hvadam

__all__ = ["HVAdamState", "HiddenScalars", "hvadam", "scale_by_hvadam"]
