"""A meter of what gradients are made of, as a link of an Optax chain."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from hvadam.core import hyperparams, meter
from hvadam.jax import options, sharding


class MeterState(NamedTuple):
    """The state of the meter; `read_meter` gives its numbers their names."""

    step: Array  # int32
    exp_avg: Any  # m
    hidden: Any  # v
    scalars: Array  # one for each of meter.FIELDS


def gradient_meter(
    b1: float = 0.9, *, axis_name: str | tuple[str, ...] | None = None
) -> optax.GradientTransformationExtraArgs:
    """Return a transformation that measures gradients and passes them on as they are.

    It sees what its place in the chain shows it: put it first for the gradients themselves.

    Args:
        b1: Decay of the momentum that gradients are held against; that of the optimizer.
        axis_name: The mesh axes that leaves are pieces along, as for `hvadam.jax.hvadam`.

    Raises:
        TypeError: ``b1`` is no number.
        ValueError: ``b1`` is not in [0, 1).

    Example:
        >>> import jax.numpy as jnp, optax
        >>> from hvadam.jax import gradient_meter, read_meter
        >>> optimizer = optax.chain(gradient_meter(), optax.adam(1e-2))
        >>> params = jnp.zeros(3)
        >>> state = optimizer.init(params)
        >>> for _ in range(3):  # a gradient that never changes is all trend
        ...     updates, state = optimizer.update(jnp.ones(3), state, params)
        >>> round(read_meter(state)["trend"], 6)
        1.0
    """
    hyperparams.in_range("b1", b1, 0.0, 1.0)
    axes = options.axes(axis_name)

    def init(params: optax.Params) -> MeterState:
        m, v = (jax.tree.map(_zeros, params) for _ in range(2))
        return MeterState(jnp.zeros((), jnp.int32), m, v, jnp.asarray(meter.INITIAL, jnp.float32))

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
    ) -> tuple[optax.Updates, MeterState]:
        del params, extra_args
        gs, tree = jax.tree.flatten(updates)
        ms, vs = (tree.flatten_up_to(x) for x in (state.exp_avg, state.hidden))
        bias = 1.0 - b1 ** jnp.maximum(state.step, 1).astype(jnp.float32)
        rows = [_dots(g, m / bias, v) for g, m, v in zip(gs, ms, vs, strict=True)]
        sums = sharding.total(rows, sharding.axes_of(gs, axes), jnp.dtype(jnp.float32))
        dots = jnp.sum(sums, 1)
        mix, fields = meter.advance(
            jnp, list(state.scalars), list(dots), rounding=float(jnp.finfo(jnp.float32).eps)
        )
        finite = jnp.isfinite(dots).all()  # a gradient that is not does not enter the momentum
        vs = [v + (1.0 - mix) * (m / bias - v) for m, v in zip(ms, vs, strict=True)]
        ms = [
            jnp.where(finite, m + (1.0 - b1) * (g.astype(m.dtype) - m), m)
            for g, m in zip(gs, ms, strict=True)
        ]
        after = MeterState(
            optax.safe_increment(state.step) * finite + state.step * ~finite,
            tree.unflatten(ms),
            tree.unflatten(vs),
            jnp.stack([jnp.asarray(x, jnp.float32) for x in fields]),
        )
        return updates, after

    return optax.GradientTransformationExtraArgs(init, update)


def read_meter(state: Any) -> dict[str, float]:
    """Return the reading of the meter in an optimizer's state, as torch's ``read`` has it.

    Raises:
        ValueError: The state has no meter, or several.
    """
    found = [x for x in jax.tree.leaves(state, is_leaf=_is_meter) if _is_meter(x)]
    if len(found) != 1:
        raise ValueError(f"read_meter: the state must have one gradient_meter, got {len(found)}.")
    return meter.reading(found[0].scalars.tolist())


def _dots(g: Array, m_hat: Array, v: Array) -> tuple[Array, ...]:
    g, d = g.astype(jnp.float32), v - m_hat
    pairs = ((d, d), (d, v), (m_hat, m_hat), (v, v), (g, g), (g, v), (g, d))
    return tuple(jnp.sum(a * b) for a, b in pairs)


def _zeros(x: Any) -> Array:
    return jnp.zeros(jnp.shape(x), jnp.float32)


def _is_meter(x: Any) -> bool:
    return isinstance(x, MeterState)
