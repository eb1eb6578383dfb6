"""Networks that whole training steps are timed on, each with one made-up batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.studies.speed.training import Workload

Made = tuple[nn.Module, Callable[[Any], Tensor]]


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
    one.name: one
    for one in (
        Workload("resnet18", "ResNet-18, 32 images of 64×64", resnet18),
        Workload("gpt2", "GPT-2 small, 2 × 128 tokens", gpt2_small),
        Workload("lstm", "LSTM of 400 units, 10,000 words, 20 × 35 of them", lstm),
        Workload("pinn", "physics-informed network of 3 × 50, 2,500 points", pinn),
    )
}
