"""Optax's own table of tests for contributed optimizers, with HVAdam as their one contribution.

The table ships in Optax's wheel. Its lists of optimizers are replaced before its class is made, so
that ours is all it knows, by itself and inside the wrapper that it tries every optimizer in.
"""

from __future__ import annotations

import unittest
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import optax.contrib
import pytest

from hvadam.jax import hvadam

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
