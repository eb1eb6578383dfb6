"""Small networks for scikit-learn's 8×8 digits."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def make_cnn(seed: int) -> nn.Module:
    """Build a CNN of 10k weights whose initial values depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):  # leaves the caller's random state as it was
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 10),
        )


def make_mlp(seed: int) -> nn.Module:
    """Build a perceptron of 26k weights whose initial values depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Flatten(), nn.Linear(64, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
        )


def make_normed_cnn(seed: int) -> nn.Module:
    """Build a CNN of 4k weights with batch norm, whose initial values depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
            nn.MaxPool2d(2),
            *(nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16 * 4 * 4, 10)),
        )


class VAE(nn.Module):
    """A variational autoencoder of 8×8 images by perceptrons, with a Gaussian code."""

    def __init__(self, hidden: int, code: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, pixels: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pixels' logits for codes with this noise, the codes' means and log scales."""
        mean, log_scale = self.encoder(pixels).chunk(2, dim=1)
        return self.decoder(mean + log_scale.exp() * noise), mean, log_scale
