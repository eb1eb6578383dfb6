"""Batch-norm statistics for weights that no training pass has seen, such as averaged ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.modules.batchnorm import _NormBase

from hvadam_bench.tasks import Problem

BATCHES = 64  # of training data; a thousand examples and more, while an epoch may be 400 batches


@contextmanager
def reestimated(problem: Problem) -> Iterator[None]:
    """Enter a context whose running statistics are those of the weights as they are now.

    They are plain means over the first `BATCHES` batches of training. On leaving, all buffers are
    what they were. Without such layers nothing happens.
    """
    norms = [
        module
        for network in problem.networks.values()
        for module in network.modules()
        if isinstance(module, _NormBase) and module.running_mean is not None
    ]
    if not norms:
        yield
        return
    buffers = [b for network in problem.networks.values() for b in network.buffers()]
    kept = [buffer.clone() for buffer in buffers]
    try:
        _estimate(problem, norms)
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, kept, strict=True):
                buffer.copy_(value)


def _estimate(problem: Problem, norms: list[_NormBase]) -> None:
    state = copy.deepcopy(problem.state_dict())
    momenta = [norm.momentum for norm in norms]
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # all batches weigh the same
        for network in problem.networks.values():
            network.train()
        for step in range(min(BATCHES, problem.steps)):
            for _ in problem.updates(problem.batch(step)):
                pass  # the forward pass is all that is wanted; nothing steps
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        problem.load_state_dict(state)
