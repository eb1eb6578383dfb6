"""What eight virtual devices run: steps sharded in every way of JAX, beside one device.

Prints JSON: for each way how far parameters are from one device's, relative to their size, and
how many collectives the compiled step has.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hvadam.jax import HVAdamState, hvadam

LEAVES = 30
STEPS = 6
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def values(seed: int) -> dict[str, np.ndarray]:
    """Return arrays for all leaves: matrices, vectors and a number that cannot be sharded."""
    random = np.random.default_rng(seed)
    shapes = [(16, 24) if i % 2 else (32,) for i in range(LEAVES - 1)]
    made = {f"leaf{i}": 1 + random.standard_normal(shape) for i, shape in enumerate(shapes)}
    return {k: np.asarray(x, np.float32) for k, x in {**made, "scale": random.random()}.items()}


SPECS = {name: P("data") if x.ndim else P() for name, x in values(0).items()}


def step(optimizer: Any) -> Callable[..., Any]:
    """Return a step of parameters and state."""

    def run(params: Any, state: Any, grads: Any) -> Any:
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return run


def train(run: Any, params: Any, state: Any, place: Callable[[Any], Any]) -> tuple[Any, Any, str]:
    """Return parameters and state after the steps, and the text of the compiled step."""
    run = jax.jit(run)
    text = run.lower(params, state, place(values(1))).compile().as_text()
    for i in range(STEPS):
        params, state = run(params, state, place(values(1 + i)))
    return params, state, text


def single() -> Any:
    """Return what one device makes of it."""
    optimizer = hvadam(0.01)
    params = {k: jnp.asarray(x) for k, x in values(0).items()}
    place = lambda tree: {k: jnp.asarray(x) for k, x in tree.items()}  # noqa: E731
    return train(step(optimizer), params, optimizer.init(params), place)[:2]


def global_arrays(kind: AxisType) -> Any:
    """Return parameters, state and text under jit, all of them sharded over a mesh, as by FSDP."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(kind,))
    optimizer = hvadam(0.01)

    def place(tree: Any) -> Any:
        return {k: jax.device_put(x, NamedSharding(mesh, SPECS[k])) for k, x in tree.items()}

    with jax.set_mesh(mesh):
        params = place(values(0))
        made = train(step(optimizer), params, optimizer.init(params), place)
    assert made[1][0].hidden["leaf0"].sharding.spec == P("data")
    return made


def pieces(check: bool) -> Any:
    """Return parameters, state and text under shard_map; without its checks all must be pieces."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    optimizer = hvadam(0.01, axis_name="data")
    chosen = SPECS if check else {k: s for k, s in SPECS.items() if s != P()}
    params = {k: x for k, x in values(0).items() if k in chosen}
    state = optimizer.init({k: jnp.asarray(x) for k, x in params.items()})
    specs = jax.tree.map(lambda _: P(), state)
    own = specs[0]
    trees = {"exp_avg": chosen, "hidden": chosen, "exp_avg_var": chosen}
    specs = (HVAdamState(own.step, **trees, scalars=own.scalars), *specs[1:])
    run = jax.shard_map(
        step(optimizer),
        mesh=mesh,
        in_specs=(chosen, specs, chosen),
        out_specs=(chosen, specs),
        check_vma=check,
    )
    keep = lambda tree: {k: jnp.asarray(x) for k, x in tree.items() if k in chosen}  # noqa: E731
    return train(run, keep(values(0)), state, keep)


def refusals() -> dict[str, str]:
    """Return what is said where a hidden vector per device would come of it silently."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    optimizer = hvadam(0.01)
    said: dict[str, str] = {}
    for check in (True, False):

        def one(x: Any) -> Any:
            return optimizer.update(x, optimizer.init(x), x)[0]

        run = jax.shard_map(
            one, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=check
        )
        try:
            jax.jit(run).lower(jnp.ones(16))
        except ValueError as error:
            said[f"check_vma={check}"] = str(error)
    try:
        jax.pmap(one, axis_name="data")(jnp.ones((8, 2)))
    except ValueError as error:
        said["pmap"] = str(error)
    return said


def compared(made: Any, expected: Any) -> dict[str, Any]:
    """Return how far a result is from one device's, and its collectives."""
    params, state, text = made
    far = max(
        float(np.max(np.abs(np.asarray(x) - expected[0][k])) / np.max(np.abs(expected[0][k])))
        for k, x in params.items()
    )
    counts = {name: len(re.findall(rf" {name}(?:-start)?\(", text)) for name in COLLECTIVES}
    counters = [int(x) for x in (state[0].step, state[0].scalars.steps_since_restart)]
    return {"far": far, "counters": counters, **counts}


if __name__ == "__main__":
    one = single()
    found = {
        "auto": compared(global_arrays(AxisType.Auto), one),
        "explicit": compared(global_arrays(AxisType.Explicit), one),
        "shard_map": compared(pieces(True), one),
    }
    # Without the number that is whole everywhere, the vector is another: compare what is counted.
    unchecked = compared(pieces(False), one)
    found["unchecked"] = {k: v for k, v in unchecked.items() if k not in ("far", "counters")}
    print(json.dumps({"found": found, "refused": refusals()}))
