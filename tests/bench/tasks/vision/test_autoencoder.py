"""Autoencoders of all images at once: the floor of the loss, PCA's error, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hvadam_bench.tasks import get
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks.vision.problems import autoencoder_full_batch, linear_error


def made(**changes: Any) -> FullBatchProblem:
    settings = get("autoencoder_full_batch").scales["smoke"]
    return autoencoder_full_batch(
        {**settings, "dtype": "float64", **changes}, seed=0, protocol="standard"
    )


class Perfect(nn.Module):
    """A network that gives back what it is given, as logits."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.logit(pixels, eps=1e-12)


def test_the_loss_is_above_its_floor_by_what_is_not_told() -> None:
    problem = made()
    with torch.no_grad():
        problem.model = Perfect()
        found = problem.evaluate("valid")
    assert abs(found["loss"]) < 1e-9
    assert (found["pca_ratio"] < 1e-9, found["arrived"]) == (True, 1.0)


def test_an_untrained_network_has_not_arrived() -> None:
    found = made().evaluate("valid")
    assert found["loss"] > 0.01
    assert (found["pca_ratio"] > 1, found["arrived"]) == (True, 0.0)


def test_batches_that_cover_all_images_have_the_mean_of_all() -> None:
    problem = made(batch=16)
    with torch.no_grad():
        parts = [
            next(iter(problem.updates(part))).loss.item() for part in torch.arange(64).split(16)
        ]
    assert np.mean(parts) == pytest.approx(problem.evaluate("valid")["loss"], rel=1e-12)
    assert np.std(parts) > 1e-4


def test_pca_s_error_is_what_projections_leave() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 6)) @ np.diag([5, 4, 3, 2, 1, 0.5]) + 7
    centred = rows - rows.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    kept = vectors[:, -2:]
    left = centred - centred @ kept @ kept.T
    assert linear_error(torch.tensor(rows), 2) == pytest.approx((left**2).mean())


def test_images_are_shrunk_by_means() -> None:
    sides = {1: 28 * 28, 2: 14 * 14}
    for shrink, pixels in sides.items():
        first = next(made(shrink=shrink).model.parameters())
        assert first.shape[1] == pixels
