"""The transformation among Optax's own: state, wrappers, loops and trees of every kind."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false
# pyright: reportCallIssue=false
# Optax's types know a state only as some tree.

from __future__ import annotations

from pathlib import Path
from typing import Any

import exact
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hvadam.core.scalars import FIELDS
from hvadam.jax import HiddenScalars, HVAdamState, hvadam, scale_by_hvadam

PARAMS = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3)}


def gradients(step: int, like: Any = PARAMS) -> Any:
    """Return a trend plus noise, the same for the same step."""
    keys = iter(jax.random.split(jax.random.key(step), len(jax.tree.leaves(like))))
    return jax.tree.map(lambda x: 1.0 + jax.random.normal(next(keys), x.shape, x.dtype), like)


def train(optimizer: Any, params: Any, steps: int, state: Any = None, first: int = 0) -> Any:
    """Return parameters and state after some steps, each compiled as a whole."""
    state = optimizer.init(params) if state is None else state

    @jax.jit
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    for i in range(first, first + steps):
        params, state = step(params, state, gradients(i, params))
    return params, state


def assert_equal(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_the_state_has_the_names_of_torch() -> None:
    assert HVAdamState._fields == ("step", "exp_avg", "hidden", "exp_avg_var", "scalars")
    assert ("step", *HiddenScalars._fields) == FIELDS


@pytest.mark.parametrize("scope", ["global", "tensor"])
def test_the_state_keeps_shapes_and_dtypes(scope: Any) -> None:
    params = {"half": jnp.ones(2, jnp.bfloat16), "empty": jnp.ones((0, 2)), "none": None}
    transform = scale_by_hvadam(scope=scope)
    state = transform.init(params)
    assert state.exp_avg["half"].dtype == jnp.float32
    updates, after = jax.eval_shape(transform.update, params, state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype, x.weak_type), jax.eval_shape(lambda: state)
    )
    assert updates["half"].dtype == jnp.bfloat16


def test_no_leaves_at_all() -> None:
    transform = scale_by_hvadam()
    updates, state = transform.update({}, transform.init({}))
    assert updates == {}
    assert state.scalars.holds == 1


@pytest.mark.slow
def test_what_is_not_finite_makes_the_vector_hold() -> None:
    optimizer = hvadam(0.1)
    params, state = train(optimizer, PARAMS, 3)
    before = state[0].hidden
    spoilt = gradients(3)
    spoilt["b"] = spoilt["b"].at[1].set(jnp.nan)
    updates, state = optimizer.update(spoilt, state, params)
    assert state[0].scalars.holds == 1
    assert state[0].scalars.steps_since_restart == 2
    np.testing.assert_allclose(state[0].hidden["w"], before["w"], rtol=1e-6, atol=1e-6)
    assert jnp.isfinite(updates["w"]).all()
    assert jnp.isnan(updates["b"]).tolist() == [False, True, False]


@pytest.mark.slow
def test_zeros_before_the_first_gradient_are_holds() -> None:
    optimizer = hvadam(0.1)
    zeros = jax.tree.map(jnp.zeros_like, PARAMS)
    updates, state = optimizer.update(zeros, optimizer.init(PARAMS))
    assert_equal(updates, jax.tree.map(jnp.negative, zeros))
    assert (int(state[0].scalars.holds), int(state[0].scalars.steps_since_restart)) == (1, -1)


@pytest.mark.slow
def test_complex_leaves_in_optax_s_wrapper_are_pairs() -> None:
    params = jnp.array([1 + 2j, 3 - 1j], jnp.complex64)
    wrapped, plain = optax.contrib.split_real_and_imaginary(hvadam(0.1)), hvadam(0.1)
    updates, _ = wrapped.update(params, wrapped.init(params))
    pair = (params.real, params.imag)
    parts: Any = plain.update(pair, plain.init(pair))[0]
    np.testing.assert_allclose(updates, parts[0] + 1j * parts[1], rtol=1e-6)


@pytest.mark.slow
def test_masked_leaves_stay_out_of_the_dots() -> None:
    whole = {**PARAMS, "frozen": 100.0 * jnp.ones(4)}
    masked = optax.masked(hvadam(0.1), {"w": True, "b": True, "frozen": False})
    _, state = train(masked, whole, 4)
    own = optax.tree.get(state, "scalars")
    # The same gradients for the two leaves that count.
    alone = hvadam(0.1)
    params, expected = PARAMS, alone.init(PARAMS)
    for i in range(4):
        grads = {k: v for k, v in gradients(i, whole).items() if k != "frozen"}
        updates, expected = alone.update(grads, expected, params)
        params = optax.apply_updates(params, updates)
    for name, value in expected[0].scalars._asdict().items():
        np.testing.assert_allclose(getattr(own, name), value, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_one_vector_over_two_rates() -> None:
    """Rates in optax.partition, the vector before it: with equal rates it is the plain optimizer.

    The other way around, a whole optimizer per label, each label has a vector of its own.
    """
    labels = {"w": "slow", "b": "fast"}
    rates = {name: optax.scale_by_learning_rate(0.1) for name in ("slow", "fast")}
    shared = optax.chain(scale_by_hvadam(), optax.partition(rates, labels))
    params, state = train(shared, PARAMS, 4)
    expected, _ = train(hvadam(0.1), PARAMS, 4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), params, expected)
    assert optax.tree.get(state, "scalars").mix.shape == ()


@pytest.mark.slow
def test_accumulation_and_skipping() -> None:
    params, state = train(optax.MultiSteps(hvadam(0.1), 2), PARAMS, 4)
    assert optax.tree.get(state, "scalars").steps_since_restart == 1
    optimizer = optax.apply_if_finite(hvadam(0.1), 5)
    params, state = train(optimizer, PARAMS, 2)
    bad = jax.tree.map(lambda x: x * jnp.nan, PARAMS)
    updates, after = optimizer.update(bad, state, params)
    assert_equal(after.inner_state, state.inner_state)
    assert not any(jnp.any(x) for x in jax.tree.leaves(updates))


@pytest.mark.slow
def test_seeds_in_vmap_and_steps_in_scan() -> None:
    optimizer = hvadam(0.1)

    def run(scale: jax.Array) -> Any:
        def step(carry: Any, i: jax.Array) -> Any:
            params, state = carry
            grads = jax.tree.map(lambda x: scale * jnp.cos(i + x), params)
            updates, state = optimizer.update(grads, state)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (PARAMS, optimizer.init(PARAMS)), jnp.arange(5.0))[0]

    many = jax.jit(jax.vmap(run))(jnp.array([1.0, 3.0]))
    for i, scale in enumerate((1.0, 3.0)):
        one = jax.jit(run)(jnp.array(scale))
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=2e-5, atol=1e-6), many, one
        )


@pytest.mark.slow
def test_a_schedule_compiles_once() -> None:
    optimizer = hvadam(optax.cosine_decay_schedule(0.1, 1000))
    count = 0

    @jax.jit
    def step(params: Any, state: Any, grads: Any) -> Any:
        nonlocal count
        count += 1
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    params, state = PARAMS, optimizer.init(PARAMS)
    grads = gradients(0)
    for _ in range(1000):
        params, state = step(params, state, grads)
    assert count == 1
    assert step._cache_size() == 1
    assert state[0].step == 1000


@pytest.mark.slow
def test_orbax_resumes_bit_for_bit(tmp_path: Path) -> None:
    import orbax.checkpoint as ocp

    optimizer = hvadam(0.1, weight_decay=0.01)
    params, state = train(optimizer, PARAMS, 3)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "saved", (params, state))
        checkpointer.wait_until_finished()
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, (params, state))
        restored = checkpointer.restore(tmp_path / "saved", like)
    assert_equal(
        train(optimizer, restored[0], 3, restored[1], first=3),
        train(optimizer, params, 3, state, first=3),
    )


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [[(1_000_000,)], [(64, 3, 7, 7), (64,), (256, 2000)]])
def test_a_step_needs_next_to_no_memory(shapes: list[tuple[int, ...]]) -> None:
    """XLA's own account, with parameters and state donated; see the decision record."""
    params = [jnp.zeros(shape) for shape in shapes]
    optimizer = hvadam(0.1)

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    arguments = (params, optimizer.init(params), params)
    compiled = jax.jit(step, donate_argnums=(0, 1)).lower(*arguments).compile()
    memory = compiled.memory_analysis()
    assert memory is not None
    assert memory.temp_size_in_bytes <= 0.5 * sum(x.size for x in params)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000_000, 10_000_000])
@pytest.mark.parametrize(
    ("noise", "shrinking"), [(1e-3, 1.0), (1.0, 1.0), (30.0, 1.0), (1e-3, 0.5)]
)
def test_the_cosine_keeps_its_digits(size: int, noise: float, shrinking: float) -> None:
    """Sums in float32 over millions of elements, beside float64.

    Gradients that shrink leave v and m̂ parallel and the foot near 0, where a difference of squares
    has lost it.
    """
    transform = scale_by_hvadam(restart_threshold=0.0)
    random = np.random.default_rng(0)
    trend = random.standard_normal(size, np.float32)
    state = transform.init(jnp.zeros(size))
    step = jax.jit(transform.update)
    for t in range(1, 4):
        g = shrinking**t * trend + noise * random.standard_normal(size, np.float32)
        before = state
        _, state = step(jnp.asarray(g), before)
        if t == 1:
            continue
        m_hat = (0.9 * np.asarray(before.exp_avg, float) + 0.1 * g) / (1 - 0.9**t)
        v = np.asarray(before.hidden, float)
        d = v - m_hat
        foot = v - (d @ v) / (d @ d) * d
        cosine = np.linalg.norm(foot) / np.linalg.norm(m_hat)
        assert abs(float(state.scalars.alignment) - cosine) < 3e-7


@pytest.mark.slow
@pytest.mark.parametrize("seed", [56, 161])
def test_in_float64_it_is_as_near_to_sixty_digits_as_can_be(seed: int) -> None:
    """Where it is 1e-8 of a step from the reference, that is as far from the truth."""
    grads = exact.gradients(seed, 30)
    transform = scale_by_hvadam(exact.B1, exact.B2, hidden_gain="linear")
    step = jax.jit(transform.update)
    with jax.enable_x64(True):
        state = transform.init([jnp.zeros(shape) for shape in exact.SHAPES])
        for g, expected in zip(grads, exact.run(grads), strict=True):
            before = np.concatenate([np.ravel(x) for x in state.hidden])
            updates, state = step(
                [jnp.asarray(g[:120].reshape(40, 3)), jnp.asarray(g[120:])], state
            )
            assert updates[0].dtype == jnp.float64
            update = -exact.LR * np.concatenate([np.ravel(x) for x in updates])
            after = np.concatenate([np.ravel(x) for x in state.hidden])
            v_error = max(abs(before - expected.v_before).max(), abs(after - expected.v).max())
            assert v_error < 1e-12 * np.linalg.norm(expected.m_hat)
            error = abs(update - expected.update)
            assert (error <= exact.allowed(expected, g, v_error)).all()
