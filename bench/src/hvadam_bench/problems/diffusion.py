"""Improved diffusion: a U-Net that takes the noise from images, and samples of its average.

Samples and measures are of an exponential moving average of the weights over the steps, which
starts from the initial ones. It is the task's own, and the same for every contender: it takes the
place of whatever average a contender would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

import torch
from torch import Generator, Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hvadam_bench.models.diffusion import Diffusion, Sampler
from hvadam_bench.models.unet import UNet
from hvadam_bench.problems.generative import GenerativeProblem
from hvadam_bench.tasks._seeds import seeded, seeded_generator
from hvadam_bench.tasks._spec import Split, Update

_SHOWN = 500  # images that the loss is evaluated on


class Batch(NamedTuple):
    """Images, how many steps of noise each gets, and the noise."""

    real: Tensor
    t: Tensor
    noise: Tensor


class DiffusionProblem(GenerativeProblem):
    """A U-Net that tells the noise in images, and the average of its weights.

    Args:
        settings: Besides those of all generators, "iterations", those of `UNet`,
            "diffusion_steps", "sampler", "sampling_steps" and "ema", the average's decay.
        seed: The run's.
        protocol: "standard".
    """

    def __init__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> None:
        super().__init__(settings, seed, protocol)
        self.batches = len(self.parts["train"][1]) // self.batch_size  # batches are full
        self.steps = settings["iterations"]
        self.chain = Diffusion.cosine(settings["diffusion_steps"])
        self.sampled = self.chain.respaced(settings["sampling_steps"])
        self.sampler = settings["sampler"]
        if self.sampler not in get_args(Sampler):
            raise ValueError(
                f"diffusion: sampler must be 'ancestral' or 'ddim', got {self.sampler!r}."
            )
        self.shape = self.channels, settings["size"], settings["size"]
        wanted = ("size", "width", "multipliers", "blocks", "attention", "heads", "dropout")
        options = {name: settings[name] for name in wanted}
        self.model = seeded(seed, lambda: UNet(self.channels, **options))
        self.networks = {"model": self.model}
        self.average = AveragedModel(
            self.model, multi_avg_fn=get_ema_multi_avg_fn(settings["ema"])
        ).eval()
        self.average.update_parameters(self.model)  # the first time copies

    def batch(self, step: int, variant: int = 0) -> Batch:
        return self._noised(self.real(step), seeded_generator("noise", self.seed, step))

    def updates(self, batch: Batch) -> Iterator[Update]:
        real, t, noise = (part.to(self._device) for part in batch)
        yield Update(self.chain.hybrid(self.model, real, t, noise).mean())
        self.average.update_parameters(self.model)

    def sample(self, count: int, generator: Generator) -> Tensor:
        noise = torch.randn(count, *self.shape, generator=generator).to(self._device)
        return self.sampled.sample(self.average, noise, self.sampler, generator).cpu()

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        pictures, indices = self.parts[split]
        shown = self._noised(pictures(indices[:_SHOWN]), seeded_generator("loss", self.seed))
        real, t, noise = (part.to(self._device) for part in shown)
        loss = self.chain.hybrid(self.average, real, t, noise).mean()
        return {**self.measured(split), "loss": loss.item()}

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.average.load_state_dict(state["average"])

    def _noised(self, real: Tensor, generator: Generator) -> Batch:
        t = torch.randint(len(self.chain), (len(real),), generator=generator)
        return Batch(real, t, torch.randn(real.shape, generator=generator))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device
