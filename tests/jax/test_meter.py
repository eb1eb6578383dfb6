"""The meter in a chain: it passes updates through, and reads what torch's meter reads."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from hvadam import GradientMeter
from hvadam.jax import gradient_meter, read_meter


def gradients(steps: int, size: int = 500) -> list[Any]:
    rng = np.random.default_rng(0)
    slope, across = rng.normal(size=(2, size)).astype(np.float32)
    return [
        slope + (-1) ** i * across + 0.1 * rng.normal(size=size).astype(np.float32)
        for i in range(steps)
    ]


def test_it_passes_updates_through_and_reads_as_torch_does() -> None:
    params = {"a": jnp.zeros((20, 20)), "b": jnp.zeros(100)}
    meter, update = gradient_meter(), jax.jit(gradient_meter().update)
    state = meter.init(params)
    w = torch.nn.Parameter(torch.zeros(500))
    theirs = GradientMeter([w])
    for i, g in enumerate(gradients(60)):
        updates = {"a": jnp.asarray(g[:400].reshape(20, 20)), "b": jnp.asarray(g[400:])}
        passed, state = update(updates, state)
        jax.tree.map(np.testing.assert_array_equal, passed, updates)
        w.grad = torch.from_numpy(g)
        theirs.update()
        expected = theirs.read()
        if i:
            for name, value in read_meter(state).items():
                assert value == pytest.approx(expected[name], abs=1e-3), (i, name)
    assert expected["zigzag_average"] > 0.1


def test_training_in_a_chain_is_the_same_bit_for_bit() -> None:
    plain, watched = optax.adam(0.1), optax.chain(gradient_meter(), optax.adam(0.1))
    params = jnp.ones(500), jnp.ones(500)
    states = plain.init(params[0]), watched.init(params[1])
    for g in gradients(20):
        made = [o.update(jnp.asarray(g), s) for o, s in zip((plain, watched), states, strict=True)]
        states = [s for _, s in made]
        params = [optax.apply_updates(p, u) for p, (u, _) in zip(params, made, strict=True)]
    np.testing.assert_array_equal(params[0], params[1])


def test_a_gradient_that_is_not_finite_spoils_one_reading() -> None:
    meter = gradient_meter()
    state = meter.init(jnp.zeros(500))
    for g in gradients(10):
        _, state = meter.update(jnp.asarray(g), state)
    known = read_meter(state)
    _, spoilt = meter.update(jnp.full(500, jnp.nan), state)
    assert math.isnan(read_meter(spoilt)["zigzag"])
    assert read_meter(spoilt)["zigzag_average"] == known["zigzag_average"]
    np.testing.assert_array_equal(spoilt.exp_avg, state.exp_avg)
    _, after = meter.update(jnp.asarray(gradients(11)[-1]), spoilt)
    assert math.isfinite(read_meter(after)["zigzag"])


def test_a_state_without_a_meter_is_refused() -> None:
    with pytest.raises(ValueError, match="one gradient_meter, got 0"):
        read_meter(optax.adam(0.1).init(jnp.zeros(2)))


@pytest.mark.parametrize("b1", [1.0, -0.1])
def test_b1_out_of_its_range_is_refused(b1: float) -> None:
    with pytest.raises(ValueError, match=r"b1 must be in \[0, 1\)"):
        gradient_meter(b1)
