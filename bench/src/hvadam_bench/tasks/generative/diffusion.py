"""Improved diffusion: a U-Net that takes noise from images, with learnt variances.

Images become noise in T steps, counted from 0, with noise ε of variance 1:

    x_t = √ᾱ_t x_0 + √(1 - ᾱ_t) ε,    β_t = 1 - ᾱ_t / ᾱ_{t-1},    ᾱ_{-1} = 1.

Given x_0, a step back is exactly Gaussian, with mean and variance

    μ̃_t = √ᾱ_{t-1} β_t / (1 - ᾱ_t) x_0 + √(1 - β_t) (1 - ᾱ_{t-1}) / (1 - ᾱ_t) x_t,
    β̃_t = (1 - ᾱ_{t-1}) / (1 - ᾱ_t) β_t.

A network is given x_t and t and tells ε, hence x_0, hence the mean of its own step back, p, and a
number v for every pixel that says where between its bounds p's variance lies:

    log Σ = (v + 1) / 2 · log β_t + (1 - v) / 2 · log β̃_t.

It is trained by L_hybrid = L_simple + 0.001 L_vlb. L_simple is the squared error of ε. L_vlb is the
sum over t of L_t = KL(step back given x_0 ‖ p) in bits per dimension, L_0 = -log p(x_0 | x_1) of
pixels that are bytes; at a random t it is T L_t on average. L_vlb moves v alone.

Samples and measures are of an exponential moving average of the weights over the steps, which
starts from the initial ones. It is the task's own, and the same for every contender: it takes the
place of whatever average a contender would show.

References:
    Nichol and Dhariwal, arXiv:2102.09672, equations 9-17. Song et al., arXiv:2010.02502, 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hvadam_bench.tasks._problem import seeded, seeded_generator
from hvadam_bench.tasks._spec import Settings, Split, Update
from hvadam_bench.tasks.generative.samples import GenerativeProblem
from hvadam_bench.tasks.generative.unet import UNet

# (noisy images, their times on a scale to 1000) -> noise and v, one after the other in channels.
Network = Callable[[Tensor, Tensor], Tensor]
Sampler = Literal["ancestral", "ddim"]

VLB_WEIGHT = 0.001
_OFFSET = 0.008  # keeps the first steps of the cosine schedule from vanishing
_LARGEST_BETA = 0.999  # the last step would be 1, and ᾱ 0
_HALF_BYTE = 1 / 255  # half of what two neighbouring pixel values in [-1, 1] are apart
_LEAST = 1e-12  # of a probability, under a logarithm
_SHOWN = 500  # images that the loss is evaluated on


class DiffusionProblem(GenerativeProblem):
    """A U-Net that tells the noise in images, and the average of its weights.

    Settings are, besides those of all generators, "iterations", those of `UNet`, "diffusion_steps",
    "sampler", "sampling_steps" and "ema", the average's decay. A batch is images, how many steps of
    noise each gets, and the noise.
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
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

    def batch(self, step: int, variant: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        return self._noised(self.real(step), seeded_generator("noise", self.seed, step))

    def updates(self, batch: tuple[Tensor, Tensor, Tensor]) -> Iterator[Update]:
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

    def _noised(self, real: Tensor, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        t = torch.randint(len(self.chain), (len(real),), generator=generator)
        return real, t, torch.randn(real.shape, generator=generator)


def cosine_schedule(steps: int) -> Tensor:
    """Return ᾱ of each step, in float64: cos² of a quarter turn."""
    turned = (torch.arange(steps + 1, dtype=torch.float64) / steps + _OFFSET) / (1 + _OFFSET)
    signal = (turned * math.pi / 2).cos().square()
    beta = (1 - signal[1:] / signal[:-1]).clamp(max=_LARGEST_BETA)
    return (1 - beta).cumprod(0)


class Gaussian(NamedTuple):
    """A distribution of images with independent pixels."""

    mean: Tensor
    log_variance: Tensor


class Diffusion:
    """A chain and its reverse; arguments `t` are vectors, one step for each image.

    Args:
        signal: ᾱ of each step.
        clock: What the network is told of each step, on a scale to 1000.
    """

    def __init__(self, signal: Tensor, clock: Tensor) -> None:
        before = torch.cat([signal.new_ones(1), signal[:-1]])
        beta = 1 - signal / before
        least = beta * (1 - before) / (1 - signal)
        least[0] = least[1]  # it is 0, which has no logarithm
        self.signal = signal
        self.before = before
        self.clock = clock
        self.log_bounds = least.log(), beta.log()
        self.shares = (  # of x_0 and of x_t in the mean of a step back
            before.sqrt() * beta / (1 - signal),
            (1 - beta).sqrt() * (1 - before) / (1 - signal),
        )

    @classmethod
    def cosine(cls, steps: int) -> Diffusion:
        """Return a chain with the cosine schedule."""
        return cls(cosine_schedule(steps), 1000 * torch.arange(steps) / steps)

    def __len__(self) -> int:
        return len(self.signal)

    def respaced(self, steps: int) -> Diffusion:
        """Return a chain of fewer steps, the middle ones of as many equal parts of this.

        Neither end is the better place: the last steps are nearly pure noise, which tells nothing
        of an image, and a part too far from them hides how dark or bright images are as a whole.

        Raises:
            ValueError: there are not as many, or less than two are wanted.
        """
        if not 2 <= steps <= len(self):
            raise ValueError(
                f"diffusion: sampling steps must be from 2 to {len(self)}, "
                f"the steps of the chain; got {steps}."
            )
        chosen = (2 * torch.arange(steps) + 1) * len(self) // (2 * steps)
        return Diffusion(self.signal[chosen], self.clock[chosen])

    def noisy(self, start: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Return x_t: images after t steps of noise."""
        signal = _at(self.signal, t, start)
        return signal.sqrt() * start + (1 - signal).sqrt() * noise

    def told(self, network: Network, noisy: Tensor, t: Tensor) -> Tensor:
        """Return what a network says of x_t."""
        return network(noisy, self.clock.to(t.device)[t])

    def posterior(self, start: Tensor, noisy: Tensor, t: Tensor) -> Gaussian:
        """Return x_{t-1} given x_t and x_0; at t = 0 with the variance of t = 1 in place of 0."""
        of_start, of_noisy = (_at(share, t, noisy) for share in self.shares)
        return Gaussian(of_start * start + of_noisy * noisy, _at(self.log_bounds[0], t, noisy))

    def start(self, output: Tensor, noisy: Tensor, t: Tensor) -> Tensor:
        """Return the x_0 that the noise a network told implies."""
        signal = _at(self.signal, t, noisy)
        return (noisy - (1 - signal).sqrt() * output.chunk(2, 1)[0]) / signal.sqrt()

    def back(self, output: Tensor, start: Tensor, noisy: Tensor, t: Tensor) -> Gaussian:
        """Return p, x_{t-1} given x_t, by a network that told `output` and implied `start`."""
        least, most = (_at(bound, t, noisy) for bound in self.log_bounds)
        place = (output.chunk(2, 1)[1] + 1) / 2
        return Gaussian(self.posterior(start, noisy, t).mean, place * most + (1 - place) * least)

    def bits(self, output: Tensor, start: Tensor, noisy: Tensor, t: Tensor) -> Tensor:
        """Return L_t of each image, in bits per dimension."""
        found = self.back(output, self.start(output, noisy, t), noisy, t)
        nats = torch.where(
            (t == 0).view(-1, 1, 1, 1),
            -log_likelihood(start, found),
            divergence(self.posterior(start, noisy, t), found),
        )
        return nats.mean((1, 2, 3)) / math.log(2)

    def hybrid(self, network: Network, start: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Return L_hybrid of each image, the loss to train on."""
        noisy = self.noisy(start, t, noise)
        output = self.told(network, noisy, t)
        guess, place = output.chunk(2, 1)
        simple = (guess - noise).square().mean((1, 2, 3))
        # At large t the bound is a far noisier guide to the mean than the squared error.
        frozen = torch.cat([guess.detach(), place], 1)
        return simple + VLB_WEIGHT * len(self) * self.bits(frozen, start, noisy, t)

    @torch.no_grad()
    def sample(
        self, network: Network, noise: Tensor, sampler: Sampler, generator: Generator
    ) -> Tensor:
        """Make images in [-1, 1] from noise.

        Args:
            network: To ask.
            noise: Of variance 1.
            sampler: "ancestral" draws every step back from p; "ddim" goes back to what the same
                noise would have made of the implied x_0, and draws nothing.
            generator: To draw from, on the CPU.
        """
        x = noise
        for step in reversed(range(len(self))):
            t = torch.full((len(x),), step, device=x.device)
            output = self.told(network, x, t)
            start = self.start(output, x, t).clamp(-1, 1)
            if sampler == "ddim":
                signal, before = (_at(table, t, x) for table in (self.signal, self.before))
                same = (x - signal.sqrt() * start) / (1 - signal).sqrt()
                x = before.sqrt() * start + (1 - before).sqrt() * same
            else:
                found = self.back(output, start, x, t)
                x = found.mean
                if step > 0:
                    fresh = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
                    x = x + (found.log_variance / 2).exp() * fresh
        return x


def divergence(one: Gaussian, other: Gaussian) -> Tensor:
    """Return KL(one ‖ other) of each pixel, in nats."""
    ratio = one.log_variance - other.log_variance
    apart = (one.mean - other.mean).square() * (-other.log_variance).exp()
    return (ratio.exp() + apart - 1 - ratio) / 2


def log_likelihood(pixels: Tensor, found: Gaussian) -> Tensor:
    """Return the log-likelihood of bytes in [-1, 1]: intervals, the outer ones without end."""
    apart, deviation = pixels - found.mean, (found.log_variance / 2).exp()
    below = torch.special.ndtr((apart - _HALF_BYTE) / deviation)
    above = torch.special.ndtr((apart + _HALF_BYTE) / deviation)
    below = torch.where(pixels < _HALF_BYTE - 1, 0.0, below)
    above = torch.where(pixels > 1 - _HALF_BYTE, 1.0, above)
    return (above - below).clamp(min=_LEAST).log()


def _at(table: Tensor, t: Tensor, like: Tensor) -> Tensor:
    """Return the entries at t, shaped to be multiplied with images."""
    return table.to(t.device)[t].to(like.dtype).view(-1, 1, 1, 1)
