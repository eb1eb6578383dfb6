"""Whole training steps with HVAdam versus fused AdamW's.

A training step is zeroing the gradients, the forward and the backward pass and the optimizer. Every
contender trains a network of its own, in turns with fused AdamW on another copy; the optimizer's
own time inside of each step is taken too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.studies._pairs import Clock, Field, race_all
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import ADAMW, TRAINED, Contender
from hvadam_bench.studies.speed.memory import release, state_bytes, temporary_bytes
from hvadam_bench.studies.speed.plan import Plan

# Makes a network, and what gives its loss on one synthetic batch.
Workload = Callable[[], tuple[nn.Module, Callable[[Any], Tensor]]]


def resnet18() -> tuple[nn.Module, Callable[[Any], Tensor]]:
    """Make a ResNet-18 with a batch of 32 images of 64×64."""
    from hvadam_bench.tasks.vision.networks import Basic, ResNet

    images, labels = torch.randn(32, 3, 64, 64), torch.randint(0, 1000, (32,))
    network = ResNet(Basic, (2, 2, 2, 2), 1000, stem="imagenet")
    return network, lambda own: cross_entropy(own(images), labels)


def gpt2_small() -> tuple[nn.Module, Callable[[Any], Tensor]]:
    """Make a transformer of GPT-2 small's size with 2 × 128 tokens."""
    from hvadam_bench.tasks.language.transformer import TransformerLM

    words = 50_257
    tokens = torch.randint(0, words, (2, 129))
    network = TransformerLM(words, 768, 4 * 768, 12, 12, 0.0)
    following = tokens[:, 1:].flatten()
    return network, lambda own: cross_entropy(own(tokens[:, :-1]).flatten(0, 1), following)


def lstm() -> tuple[nn.Module, Callable[[Any], Tensor]]:
    """Make the one-layer language model of the Penn Treebank's size with 20 × 35 words."""
    from hvadam_bench.tasks.language.recurrent import AWDLSTM

    words = torch.randint(0, 10_000, (36, 20))
    return AWDLSTM(10_000), lambda own: own.loss(own(words[:-1]).dropped, words[1:])


def pinn() -> tuple[nn.Module, Callable[[Any], Tensor]]:
    """Make a physics-informed network of 3 × 50 with 2,500 points inside."""
    from hvadam_bench.tasks._perceptron import tanh_mlp
    from hvadam_bench.tasks.physics.jets import jet

    points = torch.rand(2500, 2)

    def loss(own: Any) -> Tensor:
        at = jet(own, points, ("t", "xx"))
        return (at["t"] - 0.1 * at["xx"]).square().mean()

    return tanh_mlp([2, 50, 50, 50, 1]), loss


WORKLOADS: Mapping[str, tuple[str, Workload]] = {
    "resnet18": ("ResNet-18, 32 images of 64×64", resnet18),
    "gpt2": ("GPT-2 small, 2 × 128 tokens", gpt2_small),
    "lstm": ("LSTM of 400 units, 10,000 words, 20 × 35 of them", lstm),
    "pinn": ("physics-informed network of 3 × 50, 2,500 points", pinn),
}


def benchmark(
    plan: Plan,
    on_progress: OnProgress = ignore_progress,
    *,
    workloads: Mapping[str, tuple[str, Workload]] = WORKLOADS,
    contenders: Sequence[Contender] = TRAINED,
    reference: Contender = ADAMW,
    clock: Clock = perf_counter,
) -> dict[str, Any]:
    """Time groups of training steps of every contender versus the reference's."""
    new = partial(Trial, steps=1 if plan.smoke else 3, clock=clock)
    fields = [
        Field(
            {"name": name, "title": title},
            1.0,
            partial(new, make, reference),
            {
                one.name: partial(new, make, one) for one in contenders
            },  # one at a time: they are large
        )
        for name, (title, make) in workloads.items()
    ]
    return {
        "reference": reference.name,
        "workloads": race_all(fields, plan.rounds, on_progress),
    }


class Trial:
    """A contender that trains a network of its own.

    Attributes:
        facts: The bytes of parameters, state and the most that a step holds besides.
    """

    def __init__(
        self,
        make: Workload,
        contender: Contender,
        reference: Trial | None = None,
        *,
        steps: int,
        clock: Clock,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._network, self._loss = make()
        params = list(self._network.parameters())
        self._optimizer = contender.build(params)
        self._steps, self._clock = steps, clock
        self._in_optimizer = 0.0
        self.step()  # makes the state
        self.step()
        self._optimizer.zero_grad()
        kept = sum(p.nbytes for p in params) + state_bytes(self._optimizer)
        peak = kept + temporary_bytes(self.step)
        self.facts: dict[str, Any] = {"peak_bytes": peak}
        self.facts["reference_peak_bytes"] = reference.facts["peak_bytes"] if reference else peak

    def group(self, threads: int | None) -> dict[str, float]:
        """Return seconds per step, and those of the optimizer in it."""
        gc.collect()
        self._in_optimizer = 0.0
        before = self._clock()
        for _ in range(self._steps):
            self.step()
        seconds = (self._clock() - before) / self._steps
        return {"seconds": seconds, "optimizer_seconds": self._in_optimizer / self._steps}

    def step(self) -> None:
        """Take one training step."""
        self._optimizer.zero_grad()
        self._loss(self._network).backward()
        before = self._clock()
        self._optimizer.step()
        self._in_optimizer += self._clock() - before

    def close(self) -> None:
        """Free the network; the facts stay."""
        del self._network, self._loss, self._optimizer
        release()
