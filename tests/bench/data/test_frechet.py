"""The Fréchet distance of known Gaussians, and its noise."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hvadam_bench.data.frechet import Moments, distance, noise


def test_distance_of_known_gaussians() -> None:
    # In one basis the covariances commute: Σ (√a - √b)² along its axes, and the means' distance.
    basis, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64))
    a, b = torch.rand(2, 5, dtype=torch.float64) + 0.1
    shift = torch.randn(5, dtype=torch.float64)
    one = Moments(torch.zeros(5, dtype=torch.float64), basis * a @ basis.T)
    other = Moments(shift, basis * b @ basis.T)
    expected = (shift.square().sum() + (a.sqrt() - b.sqrt()).square().sum()).item()
    assert distance(one, other) == pytest.approx(expected, rel=1e-9)
    assert distance(other, one) == pytest.approx(expected, rel=1e-9)
    assert distance(one, one) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow  # to import
def test_agrees_with_torchmetrics() -> None:
    fid = pytest.importorskip("torchmetrics.image.fid")

    class Corner(nn.Module):
        num_features = 12

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images[:, :, :2, :2].flatten(1).double()

    real, fake = torch.randint(0, 256, (2, 60, 3, 8, 8), dtype=torch.uint8)
    fake = fake // 2
    metric = fid.FrechetInceptionDistance(feature=Corner(), input_img_size=(3, 8, 8))
    metric.set_dtype(torch.float64)
    metric.update(real, real=True)
    metric.update(fake, real=False)
    ours = distance(Moments.of(Corner()(real)), Moments.of(Corner()(fake)))
    assert ours == pytest.approx(metric.compute().item(), rel=1e-5)


def test_noise_is_that_of_fresh_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    reference = Moments(torch.zeros(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64))
    drawn = torch.randn(200, 300, 4, generator=generator) + 1
    fresh = torch.tensor([distance(Moments.of(rows), reference) for rows in drawn]).std().item()
    assert noise(drawn[0], reference, generator, 200) == pytest.approx(fresh, rel=0.25)
