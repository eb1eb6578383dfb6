"""HVAdam as an entry of torch's own table of optimizers, and a small model to train with it.

A test that asks for ``optim_input`` runs once per input of the table, one that asks for
``error_input`` once per declared error.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam

if TYPE_CHECKING:
    from torch.testing._internal.common_optimizers import (
        ErrorOptimizerInput,
        OptimizerInfo,
        OptimizerInput,
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.fixturenames
    if "optim_input" in names:
        inputs = optimizer_info().optim_inputs_func("cpu")
        metafunc.parametrize("optim_input", inputs, ids=[x.desc for x in inputs])
    if "error_input" in names:
        errors = _error_inputs("cpu", torch.float32)
        ids = [x.optimizer_error_input.desc for x in errors]
        metafunc.parametrize("error_input", errors, ids=ids)


@functools.cache
def optimizer_info() -> OptimizerInfo:
    """Return HVAdam's entry; torch's table takes seconds to import, so only its users do."""
    from torch.testing._internal.common_optimizers import OptimizerInfo

    return OptimizerInfo(
        HVAdam,  # pyright: ignore[reportArgumentType]  # annotated as an instance
        optim_inputs_func=_inputs,
        optim_error_inputs_func=_error_inputs,
        supported_impls=(),
        not_og_supported_flags=(),
    )


@pytest.fixture
def options(optim_input: OptimizerInput) -> dict[str, Any]:
    """Return an input's keyword arguments; a copy, since schedulers write to a tensor lr."""
    return copy.deepcopy(optim_input.kwargs)


@pytest.fixture
def declared_errors() -> list[ErrorOptimizerInput]:
    """Return all declared errors at once."""
    return _error_inputs("cpu", torch.float32)


@pytest.fixture
def build() -> Callable[..., nn.Module]:
    """Return a builder of the same small network."""
    return _build


@pytest.fixture
def train() -> Callable[..., list[float]]:
    """Return a loop over the batches of given steps; the same step has the same batch."""
    return _train


@pytest.fixture
def assert_same() -> Callable[[Any, Any], None]:
    """Return a comparison of nested containers, bit for bit."""
    return _assert_same


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)
        self.outer = nn.Linear(6, 2)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.outer(torch.tanh(self.inner(x)))


def _build(dtype: torch.dtype = torch.float32) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _Network().to(dtype)


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: Iterable[int]) -> list[float]:
    losses: list[float] = []
    dtype = next(model.parameters()).dtype
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(16, 4, generator=generator)
        y = torch.stack([x.sum(1), (x * x).mean(1)], dim=1)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(dtype)), y.to(dtype))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _assert_same(left: Any, right: Any, path: str = "") -> None:
    assert type(left) is type(right), path
    if isinstance(left, Tensor):
        assert left.dtype == right.dtype, path
        assert left.shape == right.shape, path
        assert torch.equal(_bytes(left), _bytes(right)), f"{path}: {left} is not {right}"
    elif isinstance(left, dict):
        assert list(left) == list(right), path
        for key in left:
            _assert_same(left[key], right[key], f"{path}[{key!r}]")
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right), path
        for i, (x, y) in enumerate(zip(left, right, strict=True)):
            _assert_same(x, y, f"{path}[{i}]")
    else:
        assert left == right, path


def _bytes(x: Tensor) -> Tensor:
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def _inputs(device: Any, dtype: torch.dtype | None = None) -> list[OptimizerInput]:
    from torch.testing._internal.common_optimizers import OptimizerInput

    cases: dict[str, dict[str, Any]] = {
        "default": {},
        "lr": {"lr": 0.01},
        "tensor lr": {"lr": torch.tensor(0.005)},
        "one-element float64 lr": {"lr": torch.tensor([0.005], dtype=torch.float64)},
        "betas": {"betas": (0.5, 0.9)},
        "gamma 0": {"gamma": 0.0},
        "clipped": {"max_grad_norm": 0.5},
        "decoupled decay": {"weight_decay": 0.1},
        "coupled decay": {"weight_decay": 0.1, "weight_decay_mode": "coupled"},
        "maximize": {"maximize": True, "weight_decay": 0.01},
        "bounds": {"bounds": (-0.3, 1.0), "lr": 0.01},
        "scope group": {"scope": "group"},
        "scope tensor": {"scope": "tensor", "hidden_gain": "linear"},
        "authors' restarts": {"restart_rule": "authors", "restart_threshold": 0.98},
        "restarts": {"restart_threshold": 0.98},
        "linear gain": {"hidden_gain": "linear", "hidden_scale": 0.5},
        "adam preconditioner": {"preconditioner": "adam"},
        "loop": {"kernel": "loop"},
        "foreach": {"kernel": "foreach"},
    }
    return [OptimizerInput(params=None, kwargs=kw, desc=desc) for desc, kw in cases.items()]  # pyright: ignore[reportArgumentType]


def _error_inputs(device: Any, dtype: torch.dtype) -> list[ErrorOptimizerInput]:
    from torch.testing._internal.common_optimizers import (
        ErrorOptimizerInput,
        OptimizerInput,
        get_error_inputs_for_all_optims,
    )

    weights = nn.Parameter(torch.zeros(2, device=device, dtype=dtype))
    bias = nn.Parameter(torch.zeros(2, device=device, dtype=dtype))
    counts = torch.zeros(2, device=device, dtype=torch.int64)

    def groups(**second: Any) -> list[dict[str, Any]]:
        return [{"params": [weights]}, {"params": [bias], **second}]

    bad_values: list[tuple[dict[str, Any], Any, str]] = [
        ({"shard_group": "world"}, TypeError, "shard_group must be a torch.distributed process"),
        ({"lr": -0.1}, ValueError, r"lr must be >= 0 and finite, got -0\.1"),
        ({"lr": float("nan")}, ValueError, "lr must be a number, got nan"),
        ({"lr": torch.tensor(-0.5)}, ValueError, r"lr must be >= 0 and finite, got -0\.5"),
        ({"lr": "fast"}, TypeError, "lr must be a number, got 'fast'"),
        ({"betas": (1.2, 0.999)}, ValueError, r"betas\[0\] must be in \[0, 1\), got 1\.2"),
        ({"betas": (0.9, -0.1)}, ValueError, r"betas\[1\] must be in \[0, 1\), got -0\.1"),
        ({"betas": 0.9}, TypeError, r"betas must be a pair of numbers, got 0\.9"),
        ({"eps": 0.0}, ValueError, r"eps must be finite and at least 2\*\*-126.*, got 0\.0"),
        ({"gamma": -1.0}, ValueError, "gamma must be >= 0 and finite, got -1"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be >= 0 and finite, got -1"),
        (
            {"weight_decay_mode": "l2"},
            ValueError,
            "weight_decay_mode must be one of 'decoupled', 'coupled', got 'l2'",
        ),
        (
            {"hidden_scale": float("inf")},
            ValueError,
            "hidden_scale must be >= 0 and finite, got inf",
        ),
        (
            {"hidden_gain": "cubic"},
            ValueError,
            "hidden_gain must be one of 'exponential', 'linear', got 'cubic'",
        ),
        ({"hidden_gain": abs}, ValueError, "hidden_gain must be one of 'exponential', 'linear', "),
        (
            {"restart_threshold": 1.0},
            ValueError,
            r"restart_threshold must be in \[0, 1\), got 1",
        ),
        ({"preconditioner": "sgd"}, ValueError, "preconditioner must be one of .*, got 'sgd'"),
        ({"scope": "layer"}, ValueError, "scope must be one of .*, got 'layer'"),
        ({"restart_rule": "never"}, ValueError, "restart_rule must be one of .*, got 'never'"),
        ({"bounds": (1.0, 0.0)}, ValueError, r"bounds must be \(low, high\), low < high"),
        ({"bounds": 1.0}, TypeError, r"bounds must be a pair of numbers, got 1\.0"),
        ({"maximize": "yes"}, TypeError, "maximize must be True or False, got 'yes'"),
        (
            {"max_grad_norm": -1.0},
            ValueError,
            "max_grad_norm must be > 0 and finite, or None for no clipping, got -1",
        ),
        ({"max_grad_norm": 0}, ValueError, "max_grad_norm must be .* or None for no .*, got 0"),
        ({"state_dtype": "int4"}, ValueError, "state_dtype must be one of .*, got 'int4'"),
        ({"rounding_seed": -1}, ValueError, r"rounding_seed must be in \[0, 2\*\*32\), got -1"),
        ({"rounding_seed": 0.5}, TypeError, r"rounding_seed must be a whole number, got 0\.5"),
        ({"kernel": "abacus"}, ValueError, "kernel must be one of 'auto', .*, got 'abacus'"),
    ]
    bad_groups: list[tuple[str, Any, Any, str]] = [
        ("integer parameter", [counts], TypeError, "floating point or complex, got torch.int64"),
        (
            "integer parameter, named",
            [("counts", counts)],
            TypeError,
            "floating point or complex, got torch.int64",
        ),
        (
            "integer parameter as a group",
            [{"params": counts}],
            TypeError,
            "floating point or complex, got torch.int64",
        ),
        ("group's lr", groups(lr=-1.0), ValueError, "lr must be >= 0 and finite, got -1"),
        ("group's scope", groups(scope="tensor"), ValueError, "scope is set for the whole"),
        ("group's kernel", groups(kernel="loop"), ValueError, "kernel is set for the whole"),
        (
            "group's restart rule",
            groups(restart_rule="authors"),
            ValueError,
            "restart_rule is set for the whole",
        ),
        ("group's gain", groups(hidden_gain=abs), ValueError, "hidden_gain must be one of"),
        (
            "group's betas[1]",
            groups(betas=(0.9, 0.9)),
            ValueError,
            r"betas\[1\] must be equal in all param groups",
        ),
        (
            "group's threshold",
            groups(restart_threshold=0.5),
            ValueError,
            "restart_threshold must be equal in all param groups",
        ),
    ]
    return [
        *get_error_inputs_for_all_optims(device, dtype),
        *(
            ErrorOptimizerInput(
                OptimizerInput(None, kwargs, f"{name}={value!r}"),  # pyright: ignore[reportArgumentType]
                error_type=error_type,
                error_regex=f"^HVAdam: {regex}",
            )
            for kwargs, error_type, regex in bad_values
            for name, value in kwargs.items()
        ),
        *(
            ErrorOptimizerInput(
                OptimizerInput(params, {}, desc),
                error_type=error_type,
                error_regex=f"^HVAdam: .*{regex}",
            )
            for desc, params, error_type, regex in bad_groups
        ),
    ]
