"""HVAdam as a gradient transformation: state, the order of a step; arithmetic is in ``passes``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import HiddenGain, Preconditioner, RestartRule
from hvadam.jax import options, passes, sharding
from hvadam.jax.options import Options, Scope


class HiddenScalars(NamedTuple):
    """The scalars of the hidden vectors: of shape (), or with one number per leaf.

    The names are those of torch's ``diagnostics()``; ``optax.tree.get(state, name)`` finds them.
    """

    steps_since_restart: Array  # int32, -1 before the first start
    alignment_ema: Array
    alignment: Array  # the cosine of v and m_hat
    mix: Array
    hidden_gain: Array
    restarts: Array  # int32
    holds: Array  # int32
    exp_avg_norm: Array
    hidden_norm: Array


class HVAdamState(NamedTuple):
    """The state of the transformation, with the names that torch's state has."""

    step: Array  # int32
    exp_avg: Any  # m
    hidden: Any  # v
    exp_avg_var: Any  # s
    scalars: HiddenScalars


@options.answers_other_names
def scale_by_hvadam(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-12,
    gamma: float = 0.5,
    *,
    hidden_scale: float = 1.0,
    hidden_gain: HiddenGain = "exponential",
    restart_threshold: float = 0.1,
    preconditioner: Preconditioner = "hidden",
    scope: Scope = "global",
    restart_rule: RestartRule = "paper",
    axis_name: str | tuple[str, ...] | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Return the transformation of gradients into HVAdam's direction, without learning rate.

    It emits $\hat m / (\sqrt{\hat s} + \epsilon) + c\, b(\delta)\, v$. One hidden vector
    v spans all leaves that the transformation sees: what ``optax.masked`` leaves out stays out of
    it, and under ``optax.partition`` every label has its own.

    Args:
        b1: Decay of m.
        b2: Decay of s and of the alignment average.
        eps: Added to s at every step, and to its root.
        gamma: Bounds the ratio of (g - v)² to (g - m)² by 1/gamma.
        hidden_scale: c, multiplies the step along v; 0 switches it off.
        hidden_gain: b: "exponential" (``10**(6δ - 3)``) or "linear" (``δ/0.9*10``).
        restart_threshold: In [0, 1). 0 never restarts.
        preconditioner: "hidden", or "adam" for the second moment of g (ablation).
        scope: What one hidden vector spans: "global" all leaves, "tensor" one leaf.
        restart_rule: On the step that triggers a restart "paper" moves v once more, "authors"
            keeps it.
        axis_name: Inside ``shard_map`` or ``pmap`` the mesh axes that leaves are pieces along; ()
            for none. Under plain ``jit`` leave it out, however arrays are sharded.

    Raises:
        TypeError: An argument of the wrong kind; in ``init``, a leaf that is not real.
        ValueError: An argument out of its range; in ``update``, shards without ``axis_name``.

    State is kept in float32, or float64 for float64 leaves, and so are the sums over a leaf:
    gradients whose squares overflow there make v hold, and those that vanish count as zero.
    """
    o = Options(
        b1,
        b2,
        eps,
        gamma,
        hidden_scale,
        hidden_gain,
        restart_threshold,
        preconditioner,
        scope,
        restart_rule,
        options.axes(axis_name),
    )
    options.check(o)

    def init(params: optax.Params) -> HVAdamState:
        dtypes = [_state_dtype(leaf) for leaf in jax.tree.leaves(params)]
        shape = (len(dtypes),) if o.scope == "tensor" else ()
        initial: dict[str, float] = dict(zip(policy.FIELDS, policy.INITIAL, strict=True))
        scalars = HiddenScalars(
            *(
                jnp.full(shape, initial[name], jnp.int32 if name in COUNTERS else _widest(dtypes))
                for name in HiddenScalars._fields
            )
        )
        m, v, s = (
            jax.tree.map(lambda x: jnp.zeros_like(x, dtype=_state_dtype(x)), params)
            for _ in range(3)
        )
        return HVAdamState(jnp.zeros((), jnp.int32), m, v, s, scalars)

    def update(
        updates: optax.Updates,
        state: Any,
        params: optax.Params | None = None,
        **extra_args: Any,
    ) -> tuple[optax.Updates, HVAdamState]:
        del params, extra_args
        return _step(updates, state, o)

    return optax.GradientTransformationExtraArgs(init, update)


COUNTERS = ("steps_since_restart", "restarts", "holds")


def _step(updates: Any, state: HVAdamState, o: Options) -> tuple[Any, HVAdamState]:
    """Return the direction and the next state: first pass, scalars, second pass."""
    gs, tree = jax.tree.flatten(updates)
    ms, vs, ss = (tree.flatten_up_to(x) for x in (state.exp_avg, state.hidden, state.exp_avg_var))
    step = jnp.asarray(optax.safe_increment(state.step))
    wide = _widest([m.dtype for m in ms])
    correction = 1.0 / _bias(o.b1, step, wide)
    root = jax.lax.rsqrt(_bias(o.b2, step, wide))

    averaged = [
        passes.average(g.astype(m.dtype), m, v, s, o)
        for g, m, v, s in zip(gs, ms, vs, ss, strict=True)
    ]
    ms, ss = [m for m, _ in averaged], [s for _, s in averaged]
    ds = [passes.difference(m, v, s, correction, o) for m, v, s in zip(ms, vs, ss, strict=True)]
    vectors = _HiddenVectors(o, state, ms, ds, correction)
    mix = vectors.first_mix()
    vs = _moved(ms, ds, correction, mix)
    scalars = vectors.advance([(passes.squared_norm(v),) for v in vs])
    if o.restart_rule == "authors":
        vs = _moved(ms, ds, correction, _each(scalars.mix, len(ms)))

    gains = _each(_number(o.hidden_scale, wide) * scalars.hidden_gain, len(ms))
    directions = [
        passes.direction(m, v, s, correction, root, gain, o)
        for m, v, s, gain in zip(ms, vs, ss, gains, strict=True)
    ]
    made = [u.astype(g.dtype) for u, g in zip(directions, gs, strict=True)]
    m, v, s = (tree.unflatten(x) for x in (ms, vs, ss))
    return tree.unflatten(made), HVAdamState(step, m, v, s, scalars)


class _HiddenVectors:
    """The scalars of the hidden vectors in one step: sums first, then the policy of ``core``."""

    def __init__(
        self, o: Options, state: HVAdamState, ms: list[Array], ds: list[Array], correction: Array
    ) -> None:
        self._o, self._before = o, state.scalars
        self._count = len(ms)
        self._axes = sharding.axes_of(ds, o.axis_name)
        self._dtype = correction.dtype
        self._fields = [
            jnp.broadcast_to(state.step, state.scalars.mix.shape),
            *(x for x in state.scalars),
        ]
        self._rounding = max((float(jnp.finfo(m.dtype).eps) for m in ms), default=0.0)
        dd, dm, mm = self._total([passes.dots(m, d) for m, d in zip(ms, ds, strict=True)], 3)
        # ‖v‖ was measured when v was made.
        squares = jnp.square(state.scalars.hidden_norm)
        self._dots = [dd, dd + correction * dm, jnp.square(correction) * mm, squares]

    def first_mix(self) -> list[Array]:
        """Return the mix that moves v to the foot, for each leaf."""
        mix = policy.first_mix(jnp, self._fields, self._dots, rounding=self._rounding)
        return _each(mix, self._count)

    def advance(self, squares: list[tuple[Array]]) -> HiddenScalars:
        """Return the next scalars, from the squared norm of each leaf of v as it was moved."""
        (foot,) = self._total(squares, 1)
        o = self._o
        after = policy.decide(
            jnp,
            self._fields,
            self._dots,
            beta2=_number(o.b2, self._dtype),
            threshold=_number(o.restart_threshold, self._dtype),
            gain=o.gain,
            restart_rule=o.restart_rule,
            rounding=self._rounding,
            foot=foot,
        )
        return HiddenScalars(
            *(jnp.asarray(x, old.dtype) for x, old in zip(after[1:], self._before, strict=True))
        )

    def _total(self, rows: list[tuple[Array, ...]], kinds: int) -> list[Array]:
        """Return sums over all that each hidden vector spans, by their kind."""
        if not rows:
            return [jnp.zeros_like(self._before.mix)] * kinds
        sums = sharding.total(rows, self._axes, self._dtype)
        return list(sums if self._o.scope == "tensor" else jnp.sum(sums, 1))


def _moved(ms: list[Array], ds: list[Array], correction: Array, mix: list[Array]) -> list[Array]:
    """Return v of each leaf, mixed as told."""
    return [passes.move(m, d, correction, own) for m, d, own in zip(ms, ds, mix, strict=True)]


def _each(x: Array, count: int) -> list[Array]:
    """Return the number of each leaf: its own, or the one that all share."""
    return [x] * count if x.ndim == 0 else [x[i] for i in range(count)]


def _bias(beta: Any, step: Array, dtype: jnp.dtype) -> Array:
    """Return 1 - beta^step, to the last digits: 1 - 0.999 alone would cost float32 half of them."""
    if isinstance(beta, (int, float)):
        log = math.log(beta) if beta > 0 else -math.inf
    else:
        log = jnp.log1p(_number(beta, dtype) - 1.0)
    return -jnp.expm1(step.astype(dtype) * log)


def _number(x: Any, dtype: jnp.dtype) -> Any:
    """Return an option that may be an array in a dtype; Python's floats stay as they are."""
    return x if isinstance(x, (int, float)) else jnp.asarray(x, dtype)


def _state_dtype(leaf: Any) -> jnp.dtype:
    """Return the dtype of a leaf's state, or refuse the leaf."""
    dtype = jnp.asarray(leaf).dtype if not hasattr(leaf, "dtype") else leaf.dtype
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"HVAdam: parameters must be real floating-point arrays, got {dtype}; wrap complex "
            "ones in optax.contrib.split_real_and_imaginary, leave others out with optax.masked."
        )
    return jnp.promote_types(dtype, jnp.float32)


def _widest(dtypes: list[jnp.dtype]) -> jnp.dtype:
    """Return the dtype that scalars are kept in."""
    return jnp.result_type(jnp.float32, *dtypes)
