"""Bad input is refused at construction, in the words of the torch class."""

from __future__ import annotations

import inspect
import unittest
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib
import pytest

from hvadam.jax import hvadam, scale_by_hvadam


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"b1": 1.2}, r"HVAdam: b1 must be in \[0, 1\), got 1.2."),
        ({"b2": 1.0}, r"HVAdam: b2 must be in \[0, 1\), got 1."),
        ({"eps": 0.0}, r"HVAdam: eps must be finite and at least 2\*\*-126"),
        ({"gamma": -1.0}, "HVAdam: gamma must be >= 0 and finite, got -1."),
        ({"hidden_scale": float("inf")}, "HVAdam: hidden_scale must be >= 0 and finite, got inf."),
        ({"restart_threshold": 1.0}, r"HVAdam: restart_threshold must be in \[0, 1\), got 1."),
        (
            {"hidden_gain": "quadratic"},
            "HVAdam: hidden_gain must be one of 'exponential', 'linear'",
        ),
        ({"preconditioner": "rms"}, "HVAdam: preconditioner must be one of 'hidden', 'adam'"),
        ({"restart_rule": "never"}, "HVAdam: restart_rule must be one of 'paper', 'authors'"),
        ({"scope": "group"}, "HVAdam: scope must be one of 'global', 'tensor' .*optax.partition"),
        ({"b2": jnp.float32(1.0)}, r"HVAdam: b2 must be in \[0, 1\), got 1."),
        ({"b2": jnp.bfloat16(0.999)}, "HVAdam: b2 must be float32 or wider, .*hyperparam_dtype"),
    ],
)
def test_values_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scale_by_hvadam(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"b1": "0.9"}, "HVAdam: b1 must be a number, got '0.9'."),
        ({"gamma": None}, "HVAdam: gamma must be a number, got None."),
        ({"axis_name": 3}, "HVAdam: axis_name must be the name of a mesh axis"),
    ],
)
def test_values_of_the_wrong_kind(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        scale_by_hvadam(**options)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (hvadam, {"lr": 1e-3}, "HVAdam: hvadam got an .* 'lr'; here it is learning_rate."),
        (hvadam, {"learning_rate": 1e-3, "betas": (0.9, 0.99)}, "'betas'; here it is b1 and b2"),
        (hvadam, {"learning_rate": 1e-3, "max_grad_norm": 1.0}, "optax.clip_by_global_norm"),
        (hvadam, {"learning_rate": 1e-3, "gama": 1.0}, r"'gama'; did you mean 'gamma'\?"),
        (hvadam, {"learning_rate": 1e-3, "amsgrad": True}, r"argument 'amsgrad'\.$"),
        (scale_by_hvadam, {"lr": 1e-3}, "HVAdam: scale_by_hvadam .*optax.scale_by_learning_rate"),
    ],
)
def test_names_of_torch_are_answered_with_what_is_here(
    function: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        function(**options)
    assert [*inspect.signature(hvadam).parameters][:4] == ["learning_rate", "b1", "b2", "eps"]
    assert hvadam.__doc__
    assert hvadam.__doc__.startswith("Return HVAdam")


@pytest.mark.parametrize("eps", [1e-8, jnp.float32(1e-8)], ids=["float", "array"])
def test_an_eps_of_adams_size_warns(eps: Any) -> None:
    for build in (lambda **options: hvadam(1e-3, **options), scale_by_hvadam):
        with pytest.warns(UserWarning, match=r"^HVAdam: eps=1e-08 acts like 3e-03") as found:
            build(eps=eps)
        assert [x.filename for x in found] == [__file__]
        build(eps=eps, preconditioner="adam")


@pytest.mark.parametrize("name", ["learning_rate", "weight_decay"])
def test_rates(name: str) -> None:
    rates: dict[str, Any] = {"learning_rate": 0.1, name: -1.0}
    with pytest.raises(ValueError, match=f"HVAdam: {name} must be >= 0 and finite, got -1."):
        hvadam(**rates)


def test_half_precision_hyperparameters_are_refused_when_traced() -> None:
    """Injected into bfloat16 parameters they would be rounded, and b2 with them to 1."""
    params = jnp.ones(3, jnp.bfloat16)
    careless = optax.inject_hyperparams(hvadam)(learning_rate=0.1)
    with pytest.raises(ValueError, match="hyperparam_dtype"):
        jax.eval_shape(careless.init, params)
    careful = optax.inject_hyperparams(hvadam, hyperparam_dtype=jnp.float32)(learning_rate=0.1)
    assert jax.eval_shape(careful.init, params).hyperparams["b2"].dtype == jnp.float32


@pytest.mark.parametrize("dtype", [jnp.complex64, jnp.int32])
def test_parameters_that_are_not_real_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"HVAdam: parameters must be real .*split_real_and"):
        scale_by_hvadam().init({"w": jnp.ones(3, dtype)})


# Optax's own table of tests for contributed optimizers, with HVAdam as their one contribution.
OURS = {"opt_name": "hvadam", "wrapper_name": None, "wrapper_kwargs": None}
WRAPPED = {
    "opt_name": "hvadam",
    "opt_kwargs": {"learning_rate": 1.0},
    "wrapper_name": "mechanize",
    "wrapper_kwargs": {"weight_decay": 0.0},
}
TESTS = 27


@cache
def table() -> Any:
    """Return the class of the table, for HVAdam alone."""
    path = Path(optax.contrib.__file__).with_name("_common_test.py")
    before, after = path.read_text(encoding="utf-8").split("\ndef _get_opt_factory(")
    main = ({**OURS, "opt_kwargs": {"learning_rate": 1e-2}},)
    module = ModuleType("optax_table")
    module.__dict__.update(OURS_MAIN=main, OURS_ALL=(*main, WRAPPED), hvadam=hvadam)
    patch = """
_MAIN_OPTIMIZERS_UNDER_TEST, _ALL_OPTIMIZERS_UNDER_TEST = OURS_MAIN, OURS_ALL

def _get_opt_factory("""
    replaced = after.replace(
        "  raise ValueError(f'Unknown", "  return hvadam\n  raise ValueError(f'", 1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(before + patch + replaced, str(path), "exec"), module.__dict__)
    return module.ContribTest


NAMES = unittest.TestLoader().getTestCaseNames(table())


def test_the_table_is_whole() -> None:
    assert len(NAMES) == TESTS


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # theirs are theirs
@pytest.mark.parametrize("name", NAMES)
def test_of_optax(name: str) -> None:
    result = unittest.TestResult()
    table()(name).run(result)
    assert result.testsRun == 1
    assert not result.skipped
    assert not [text for _, text in (*result.errors, *result.failures)], result
