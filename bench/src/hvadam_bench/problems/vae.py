"""A variational autoencoder of digits whose pixels are ink or none, in mini-batches.

The loss is the negative evidence lower bound, in nats per image. The noise of the codes is a
function of the seed and the step, and that of evaluations always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from hvadam_bench.models.digits import VAE
from hvadam_bench.problems.digits import AnnealedDigitsProblem
from hvadam_bench.tasks._spec import Split, Update


class Noisy(NamedTuple):
    """Images of ink or none, (n, 64), and the noise of their codes."""

    pixels: Tensor
    noise: Tensor


class VAEProblem(AnnealedDigitsProblem):
    """An autoencoder of digits with a random code.

    Args:
        settings: "hidden", "code", "batch_size", "epochs" and "warmup" are read.
        seed: The run's.
    """

    def __init__(self, settings: Mapping[str, Any], seed: int) -> None:
        self.code = settings["code"]

        def make(seed: int) -> VAE:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                return VAE(settings["hidden"], self.code)

        super().__init__(make, settings, seed)

    def batch(self, step: int, variant: int = 0) -> Any:
        return self._with_noise(
            super().batch(step).pixels, np.random.default_rng((self.seed, 1, step))
        )

    def updates(self, batch: Noisy) -> Iterator[Update]:
        yield Update(negative_bound(self.network, batch))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        shown = self._with_noise(self.parts[split].pixels, np.random.default_rng(0))
        return {"loss": negative_bound(self.network, shown).item()}

    def _with_noise(self, pixels: Tensor, rng: np.random.Generator) -> Noisy:
        noise = torch.from_numpy(rng.standard_normal((len(pixels), self.code), dtype=np.float32))
        return Noisy((pixels.flatten(1) > 0.5).float(), noise)


def negative_bound(network: Any, batch: Noisy) -> Tensor:
    """Return the negative evidence lower bound: nats per image."""
    logits, mean, log_scale = network(*batch)
    missed = binary_cross_entropy_with_logits(logits, batch.pixels, reduction="none").sum(1)
    divergence = 0.5 * (mean.square() + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(1)
    return (missed + divergence).mean()
