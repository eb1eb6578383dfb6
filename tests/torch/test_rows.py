"""The table of what a step moves: rows, their hidden vectors, and what those round to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch import storage
from hvadam.torch.rows import Table


def stepped(**options: Any) -> HVAdam:
    """Return an optimizer of two groups, of two and three tensors, after a step of all."""
    params = [nn.Parameter(torch.full((3,), float(i))) for i in range(5)]
    optimizer = HVAdam([{"params": params[:2]}, {"params": params[2:], "lr": 0.1}], **options)
    for p in params:
        p.grad = torch.ones(3)
    optimizer.step()
    return optimizer


def all_params(optimizer: HVAdam) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def batches(table: Table) -> list[Any]:
    return [batch for own in table.batches.values() for batch in own]


@pytest.mark.parametrize(
    ("scope", "scopes"),
    [("global", [0, 0, 0, 0]), ("group", [0, 0, 1, 1]), ("tensor", [0, 1, 2, 3])],
)
def test_every_row_has_its_hidden_vector(scope: Any, scopes: list[int]) -> None:
    optimizer = stepped(scope=scope)
    params = all_params(optimizer)
    params[3].grad = None
    table = optimizer._collect_rows()
    found = {
        p: of for one in batches(table) for p, of in zip(one.tensors.theta, one.scopes, strict=True)
    }
    assert found == dict(zip([*params[:3], params[4]], scopes, strict=True))
    assert len(table.vectors.scalars) == 1 + max(scopes)
    assert [count for _, count in table.vectors.owners] == {
        "global": [1],
        "group": [1, 1],
        "tensor": [2, 2],
    }[scope]


def test_a_group_without_gradients_has_no_rows() -> None:
    optimizer = stepped(scope="group")
    for p in optimizer.param_groups[0]["params"]:
        p.grad = None
    table = optimizer._collect_rows()
    assert {batch.options.lr for batch in batches(table)} == {0.1}
    assert table.vectors.scalars == [optimizer.param_groups[1]["scalars"]]


def test_low_bit_rows_know_their_place_among_all_parameters() -> None:
    optimizer = stepped(state_dtype="int8")
    all_params(optimizer)[3].grad = None
    table = optimizer._collect_rows()
    assert [i for batch in batches(table) for i in batch.tensors.index] == [0, 1, 2, 4]


@pytest.mark.parametrize("scope", ["global", "group", "tensor"])
def test_a_hidden_vector_rounds_like_the_coarsest_of_its_state(scope: Any) -> None:
    dtypes = [torch.float64, torch.float32, torch.float64]
    params = [nn.Parameter(torch.ones(2, dtype=dtype)) for dtype in dtypes]
    optimizer = HVAdam([{"params": params[:1]}, {"params": params[1:]}], scope=scope)
    for p in params:
        p.grad = torch.ones_like(p)
    single, double = (storage.rounding(dtype) for dtype in (torch.float32, torch.float64))
    assert (
        optimizer._collect_rows().vectors.rounding
        == {
            "global": [single],
            "group": [double, single],
            "tensor": [double, single, double],
        }[scope]
    )
