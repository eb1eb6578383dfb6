"""Whole training steps with HVAdam versus fused AdamW's.

A training step is zeroing the gradients, the forward and the backward pass and the optimizer. Every
contender trains a network of its own, in turns with fused AdamW on another copy; the optimizer's
own time inside of each step is taken too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.studies._pairs import Clock, Timed, race_all
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import ADAMW, TRAINED, Contender
from hvadam_bench.studies.speed.memory import release, state_bytes, temporary_bytes
from hvadam_bench.studies.speed.results import Trained, TrainingSpeed, TrainingTime, made
from hvadam_bench.studies.speed.steps import torch_threads

Made = tuple[nn.Module, Callable[[Any], Tensor]]  # a network, and what gives its loss


@dataclass(frozen=True)
class Workload:
    """A network to train on one synthetic batch."""

    title: str
    make: Callable[[], Made]


def resnet18() -> Made:
    """Make a ResNet-18 with a batch of 32 images of 64×64."""
    from hvadam_bench.tasks.vision.networks import Basic, ResNet

    images, labels = torch.randn(32, 3, 64, 64), torch.randint(0, 1000, (32,))
    network = ResNet(Basic, (2, 2, 2, 2), 1000, stem="imagenet")
    return network, lambda own: cross_entropy(own(images), labels)


def gpt2_small() -> Made:
    """Make a transformer of GPT-2 small's size with 2 × 128 tokens."""
    from hvadam_bench.tasks.language.transformer import TransformerLM

    words = 50_257
    tokens = torch.randint(0, words, (2, 129))
    network = TransformerLM(words, 768, 4 * 768, 12, 12, 0.0)
    following = tokens[:, 1:].flatten()
    return network, lambda own: cross_entropy(own(tokens[:, :-1]).flatten(0, 1), following)


def lstm() -> Made:
    """Make the one-layer language model of the Penn Treebank's size with 20 × 35 words."""
    from hvadam_bench.tasks.language.recurrent import AWDLSTM

    words = torch.randint(0, 10_000, (36, 20))
    return AWDLSTM(10_000), lambda own: own.loss(own(words[:-1]).dropped, words[1:])


def pinn() -> Made:
    """Make a physics-informed network of 3 × 50 with 2,500 points inside."""
    from hvadam_bench.tasks._perceptron import tanh_mlp
    from hvadam_bench.tasks.physics.jets import jet

    points = torch.rand(2500, 2)

    def loss(own: Any) -> Tensor:
        at = jet(own, points, ("t", "xx"))
        return (at["t"] - 0.1 * at["xx"]).square().mean()

    return tanh_mlp([2, 50, 50, 50, 1]), loss


WORKLOADS = {
    "resnet18": Workload("ResNet-18, 32 images of 64×64", resnet18),
    "gpt2": Workload("GPT-2 small, 2 × 128 tokens", gpt2_small),
    "lstm": Workload("LSTM of 400 units, 10,000 words, 20 × 35 of them", lstm),
    "pinn": Workload("physics-informed network of 3 × 50, 2,500 points", pinn),
}


def benchmark(
    rounds: int,
    steps: int,
    *,
    workloads: Mapping[str, Workload] = WORKLOADS,
    contenders: Sequence[Contender] = TRAINED,
    reference: Contender = ADAMW,
    threads: int = 1,
    clock: Clock = perf_counter,
    on_progress: OnProgress = ignore_progress,
) -> TrainingSpeed:
    """Time groups of so many training steps of every contender versus the reference's."""
    found: list[Trained] = []
    with torch_threads(threads):
        for name, workload in workloads.items():
            make = partial(_Training, workload, steps=steps, clock=clock)
            beside = make(reference)
            skipped, timed = race_all(
                {one.name: partial(make, one) for one in contenders},
                beside,
                rounds,
                at_once=1,  # networks are large
                doing=name,
                on_progress=on_progress,
                share=1 / len(workloads),
            )
            results = [_time(one, beside) for one in timed]
            about = (name, workload.title, beside.parameters, skipped)
            found.append(Trained(*about, tuple(results)))
        made_with = made()
    return TrainingSpeed(**made_with, threads=threads, rounds=rounds, workloads=tuple(found))


def _time(one: Timed, beside: _Training) -> TrainingTime:
    (seconds, inside), (other, inside_other) = (zip(*own, strict=True) for own in one.times)
    return TrainingTime(
        seconds=seconds,
        reference_seconds=other,
        contender=one.contender,
        optimizer_seconds=inside,
        reference_optimizer_seconds=inside_other,
        peak_bytes=one.trial.peak_bytes,
        reference_peak_bytes=beside.peak_bytes,
    )


class _Training:
    """A contender that trains a network of its own.

    Attributes:
        peak_bytes: Parameters, state, and the most that a step holds besides.
    """

    def __init__(
        self, workload: Workload, contender: Contender, *, steps: int, clock: Clock
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._network, self._loss = workload.make()
        self._optimizer = contender.build(list(self._network.parameters()))
        self._steps, self._clock = steps, clock
        self._in_optimizer = 0.0
        self.step()  # makes the state
        self.step()
        self._optimizer.zero_grad()
        kept = sum(p.nbytes for p in self._network.parameters()) + state_bytes(self._optimizer)
        self.peak_bytes = kept + temporary_bytes(self.step)
        self.parameters = sum(p.numel() for p in self._network.parameters())

    def group(self, threads: int | None) -> tuple[float, float]:
        """Return seconds per step, and those of the optimizer in it."""
        gc.collect()
        self._in_optimizer = 0.0
        before = self._clock()
        for _ in range(self._steps):
            self.step()
        return (self._clock() - before) / self._steps, self._in_optimizer / self._steps

    def step(self) -> None:
        """Take one training step."""
        self._optimizer.zero_grad()
        self._loss(self._network).backward()
        before = self._clock()
        self._optimizer.step()
        self._in_optimizer += self._clock() - before

    def close(self) -> None:
        """Free the network; what was found stays."""
        del self._network, self._loss, self._optimizer
        release()
