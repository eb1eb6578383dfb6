"""Gradients before a step: the norm, what clips and unscales them, what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from hvadam.torch import gradients


def test_the_norm_is_of_all_gradients_as_one_vector() -> None:
    grads = [torch.tensor([3.0, 0.0]), torch.tensor(4.0, dtype=torch.bfloat16), torch.zeros(0)]
    found = gradients.squared_norm(grads)
    assert found.dtype == torch.float64
    assert found == 25.0


@pytest.mark.parametrize("max_norm", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("scale", [None, 4.0])
def test_scaling_is_unscaling_and_then_clip_grad_norm(max_norm: float, scale: float | None) -> None:
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    p.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    grad_scale = None if scale is None else torch.tensor(scale)
    factor = gradients.scaling(grad_scale, max_norm, gradients.squared_norm([p.grad]))
    expected = p.grad.clone()
    p.grad /= scale or 1.0
    nn.utils.clip_grad_norm_([p], max_norm)
    torch.testing.assert_close(expected * factor, p.grad)


@pytest.mark.parametrize("norm", [math.inf, math.nan])
def test_a_norm_that_is_no_number_spares_the_rest(norm: float) -> None:
    assert gradients.scaling(None, 1.0, torch.tensor(norm, dtype=torch.float64)) == 0.0


def test_without_clipping_no_norm_is_needed() -> None:
    assert gradients.scaling(torch.tensor(8.0), None, None) == 0.125


def test_sparse_gradients_are_refused() -> None:
    gradients.refuse_sparse([torch.ones(2)])
    with pytest.raises(RuntimeError, match="gradients must be dense"):
        gradients.refuse_sparse([torch.ones(2), torch.ones(2).to_sparse()])
