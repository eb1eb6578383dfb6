"""HVAdam as an alias of Optax: the transformation, decay and the learning rate in one chain.

Annotations are evaluated here: Optax's own tests ask them whether an optimizer takes a schedule.
"""

from collections.abc import Callable
from typing import Any

import optax

from hvadam.core.hyperparams import HiddenGain, Preconditioner, RestartRule
from hvadam.jax.options import Scope, answers_other_names, check_rate
from hvadam.jax.transform import scale_by_hvadam


@answers_other_names
def hvadam(
    learning_rate: optax.ScalarOrSchedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-12,
    gamma: float = 0.5,
    weight_decay: float = 0.0,
    mask: Any | Callable[[optax.Params], Any] | None = None,
    *,
    hidden_scale: float = 1.0,
    hidden_gain: HiddenGain = "exponential",
    restart_threshold: float = 0.1,
    preconditioner: Preconditioner = "hidden",
    scope: Scope = "global",
    restart_rule: RestartRule = "paper",
    axis_name: str | tuple[str, ...] | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Return HVAdam: Adam with a hidden vector, the trend that all parameters share.

    The update is ``-learning_rate (m_hat / (sqrt(s_hat) + eps) + c b v + weight_decay params)``,
    as `scale_by_hvadam` explains it, so a schedule moves all of its parts.

    Args:
        learning_rate: A number or a schedule.
        b1: Decay of the gradient average.
        b2: Decay of the preconditioner and of the alignment average.
        eps: Added to s at *every* step: 1e-12 acts like 3e-5 in the place of Adam's eps.
        gamma: Bounds the ratio of (g - v)² to (g - m)² by 1/gamma.
        weight_decay: Decoupled decay, as in ``optax.adamw``; above 0 ``update`` needs ``params``.
        mask: A tree of booleans, or a function of the parameters that gives one: what decays.
        hidden_scale: See `scale_by_hvadam`, as all that follow.
        hidden_gain: "exponential" or "linear".
        restart_threshold: In [0, 1).
        preconditioner: "hidden" or "adam".
        scope: "global" or "tensor".
        restart_rule: "paper" or "authors".
        axis_name: Mesh axes that parameters are sharded over, inside ``shard_map``.

    Raises:
        TypeError: An argument of the wrong kind.
        ValueError: An argument out of its range.

    Example:
        >>> import jax, jax.numpy as jnp, optax
        >>> from hvadam.jax import hvadam
        >>> x = jax.random.normal(jax.random.key(0), (64, 8))
        >>> loss = lambda w: jnp.mean((x @ w - x @ jnp.arange(8.0)) ** 2)
        >>> optimizer = hvadam(learning_rate=0.1)
        >>> params = jnp.zeros(8)
        >>> state = optimizer.init(params)
        >>> @jax.jit
        ... def step(params, state):
        ...     updates, state = optimizer.update(jax.grad(loss)(params), state)
        ...     return optax.apply_updates(params, updates), state
        >>> before = loss(params)
        >>> for _ in range(100):
        ...     params, state = step(params, state)
        >>> bool(loss(params) < before / 10)
        True

    References:
        HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025.

    Differs from:
        ``hvadam.HVAdam`` of torch: clipping, coupled decay, maximizing and bounds are links of
        Optax around it (``docs/howto/jax.md`` lists them); low-bit state is torch's.
    """
    check_rate("learning_rate", learning_rate)
    check_rate("weight_decay", weight_decay)
    direction = scale_by_hvadam(
        b1,
        b2,
        eps,
        gamma,
        hidden_scale=hidden_scale,
        hidden_gain=hidden_gain,
        restart_threshold=restart_threshold,
        preconditioner=preconditioner,
        scope=scope,
        restart_rule=restart_rule,
        axis_name=axis_name,
    )
    # Without decay the parameters are not needed; either link has the same, empty state.
    plain = mask is None and isinstance(weight_decay, (int, float)) and weight_decay == 0
    decay = optax.identity() if plain else optax.add_decayed_weights(weight_decay, mask)
    return optax.chain(direction, decay, optax.scale_by_learning_rate(learning_rate))
