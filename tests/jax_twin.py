"""A twin of torch's HVAdam that steps with JAX, so that one judge holds both to the reference.

It has what ``judge`` reads of an optimizer, param groups and state as torch tensors. ``step`` runs
the transformation from them and writes the result back, so every step is teacher-forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from torch import Tensor

from hvadam.core.scalars import FIELDS, INITIAL
from hvadam.jax import HiddenScalars, HVAdamState, hvadam
from hvadam.torch.groups import OPTIONS

ARRAYS = ("exp_avg", "hidden", "exp_avg_var")


class Twin:
    """An optimizer whose steps JAX takes; gradients go in as float32, or float64.

    Args:
        params: The parameters.
        compiled: Whether the whole step is compiled. Op by op it computes the same, and what is
            compiled for one set of options serves all.
        options: Those of torch's HVAdam.
    """

    def __init__(self, params: Sequence[Tensor], *, compiled: bool = False, **options: Any) -> None:
        from hvadam import HVAdam

        defaults = HVAdam([torch.zeros(1)], **options).param_groups[0]
        group = {name: defaults[name] for name in OPTIONS}
        self.defaults = {**group, "hidden_gain": options.get("hidden_gain", "exponential")}
        self.param_groups: list[dict[str, Any]] = [{**group, "params": list(params)}]
        if group["scope"] != "tensor":
            self.param_groups[0]["scalars"] = torch.tensor(INITIAL, dtype=torch.float64)
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._wide = any(p.dtype == torch.float64 for p in params)
        self._transform = transform(self.defaults)
        self._run = jax.jit(self._update) if compiled else self._update

    def step(self) -> None:
        """Take one step: torch tensors to JAX, the step there, and back."""
        group = self.param_groups[0]
        params = group["params"]
        with jax.enable_x64(self._wide):
            theta = [jnp.asarray(as_numpy(p)) for p in params]
            grads = [jnp.asarray(as_numpy(p.grad)) for p in params]
            before = self._gather(self._transform.init(theta))
            moved, after = self._run(theta, grads, before)
        self._scatter(params, moved, own_state(after))

    def _update(self, theta: Any, grads: Any, state: Any) -> Any:
        updates, state = self._transform.update(grads, state, theta)
        theta = optax.apply_updates(theta, updates)
        bounds = self.defaults["bounds"]
        if bounds is not None:
            theta = jax.tree.map(lambda x: jnp.clip(x, *bounds), theta)
        return theta, state

    def _gather(self, made: Any) -> Any:
        """Return the Optax state with what the torch tensors hold; at first as made."""
        if not self.state:
            return made
        group, own = self.param_groups[0], own_state(made)
        states = [self.state[p] for p in group["params"]]
        rows = [group["scalars"]] if "scalars" in group else [x["scalars"] for x in states]
        values = np.array([row.tolist() for row in rows]).T
        columns: dict[str, np.ndarray] = dict(zip(FIELDS, values, strict=True))
        scalars = HiddenScalars(
            *(
                jnp.asarray(columns[name].reshape(old.shape), old.dtype)
                for name, old in own.scalars._asdict().items()
            )
        )
        m, v, s = ([jnp.asarray(state[key].numpy()) for state in states] for key in ARRAYS)
        step = jnp.asarray(int(states[0]["step"]), jnp.int32)
        new = HVAdamState(step, m, v, s, scalars)
        return jax.tree.map(
            lambda x: new if x is own else x, made, is_leaf=lambda x: isinstance(x, HVAdamState)
        )

    def _scatter(self, params: Sequence[Tensor], moved: Any, state: HVAdamState) -> None:
        """Write parameters and state back to the torch tensors."""
        group = self.param_groups[0]
        rows = np.array(
            [np.broadcast_to(state.step, state.scalars.mix.shape), *state.scalars], np.float64
        )
        if "scalars" in group:
            group["scalars"] = torch.from_numpy(rows)
        for i, p in enumerate(params):
            p.data.copy_(torch.from_numpy(np.array(moved[i])))
            self.state[p] = {
                "step": torch.tensor(float(state.step)),
                **{key: torch.from_numpy(np.array(getattr(state, key)[i])) for key in ARRAYS},
            }
            if "scalars" not in group:
                self.state[p]["scalars"] = torch.from_numpy(rows[:, i].copy())


def transform(options: dict[str, Any]) -> optax.GradientTransformationExtraArgs:
    """Return HVAdam for JAX with the options of torch's class, some of them as links."""
    b1, b2 = options["betas"]
    coupled = options["weight_decay_mode"] == "coupled"
    names = ("eps", "gamma", "hidden_scale", "hidden_gain", "restart_threshold")
    own = {name: options[name] for name in (*names, "preconditioner", "scope", "restart_rule")}
    decay = options["weight_decay"]
    main = hvadam(float(options["lr"]), b1, b2, weight_decay=0.0 if coupled else decay, **own)
    links = (
        [optax.clip_by_global_norm(options["max_grad_norm"])] if options["max_grad_norm"] else []
    )
    links += [optax.scale(-1.0)] if options["maximize"] else []
    links += [optax.add_decayed_weights(decay)] if coupled else []
    return optax.chain(*links, main)


def own_state(state: Any) -> HVAdamState:
    """Return the state of HVAdam in that of a chain."""
    found = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, HVAdamState))
    return next(x for x in found if isinstance(x, HVAdamState))


def as_numpy(x: Tensor) -> np.ndarray:
    """Return a tensor as NumPy has it, half precision widened."""
    x = x.detach()
    return (x if x.dtype == torch.float64 else x.float()).numpy().copy()
