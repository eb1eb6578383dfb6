"""The arithmetic on one leaf, cut so that XLA needs no temporary memory.

XLA compiles each function here to loops of its own, one per array it returns, in place where the
array it replaces is not read later. What keeps it so is the form of the expressions, which
``docs/decisions/0033-jax-without-temporaries.md`` explains and a test holds: the last operation of
an array that is kept joins two arrays (else XLA repeats it in every reader), v gives way to
d = v - m_hat and that to the new v, and sums are taken of products of arrays in memory.

Legend: g gradient, m its average, v hidden vector, s preconditioner; m_hat = correction m is
bias-corrected, dev_v and dev_m are (g - v)² and (g - m)².
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from hvadam.jax.options import Options


def average(g: Array, m: Array, v: Array, s: Array, o: Options) -> tuple[Array, Array]:
    """Return the next m and s."""
    b1, b2, eps, gamma = (_like(m, x) for x in (o.b1, o.b2, o.eps, o.gamma))
    rest1, rest2 = (_like(m, 1.0 - x) for x in (o.b1, o.b2))
    m = b1 * m + rest1 * g
    if o.preconditioner == "adam":
        return m, b2 * s + rest2 * (g * g)
    dev_v, dev_m = jnp.square(g - v), jnp.square(g - m)
    # Where squares overflow, neither 0 ∞ nor ∞/∞, which are no numbers.
    largest = jnp.finfo(m.dtype).max
    below = jnp.minimum(dev_m + (gamma * jnp.minimum(dev_v, largest) + eps), largest)
    return m, (b2 * s + eps) + (rest2 * dev_v) * (dev_v / below)


def difference(m: Array, v: Array, s: Array, correction: Array, o: Options) -> Array:
    """Return d = v - m_hat, which takes v's place in memory."""
    d = v - _like(m, correction) * m
    # s, which was computed from v, is never negative. To ask for it orders the two: v is not
    # overwritten, nor copied, before s is done.
    return d if o.preconditioner == "adam" else jnp.where(s < 0, jnp.zeros_like(d), d)


def dots(m: Array, d: Array) -> tuple[Array, Array, Array]:
    """Return ‖d‖², <d, m> and ‖m‖²."""
    return jnp.sum(d * d), jnp.sum(d * m), jnp.sum(m * m)


def move(m: Array, d: Array, correction: Array, mix: Array) -> Array:
    """Return mix v + (1 - mix) m_hat."""
    return _like(m, correction) * m + _like(m, mix) * d


def squared_norm(v: Array) -> Array:
    """Return ‖v‖²."""
    return jnp.sum(v * v)


def direction(
    m: Array, v: Array, s: Array, correction: Array, root: Array, gain: Array, o: Options
) -> Array:
    """Return m_hat / (sqrt(s_hat) + eps) + gain v, with root = 1/sqrt(1 - b2^t)."""
    correction, root, gain = (_like(m, x) for x in (correction, root, gain))
    return correction * m / (jnp.sqrt(s) * root + _like(m, o.eps)) + gain * v


def _like(m: Array, x: Any) -> Any:
    """Return a number in the dtype of an array; Python's floats take it on by themselves."""
    return x.astype(m.dtype) if isinstance(x, Array) else x
