"""A perceptron's derivatives by its inputs (x, t), carried along with its values.

Cheaper than differentiating twice: a pass costs as many plain ones as there are derivatives, and
one more, where automatic differentiation takes about ten.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# "u" and derivatives such as "t" and "xx", each with a value at every point.
Jet = dict[str, Tensor]

INPUTS = ("x", "t")


def jet(network: nn.Sequential, points: Tensor, wanted: Sequence[str]) -> Jet:
    """Return a tanh perceptron's output and its derivatives at points (x, t).

    Args:
        network: Linear layers, tanh between them, one output.
        points: One a row.
        wanted: Of "x", "t", "xx" and "tt"; the first derivatives of second ones come with them.
    """
    first = [name for name in INPUTS if any(name in one for one in wanted)]
    second = [2 * name for name in first if 2 * name in wanted]
    names = ["u", *first, *second]
    parts = {"u": points} | {name: torch.zeros_like(points) for name in names[1:]}
    for name in first:
        parts[name][:, INPUTS.index(name)] = 1
    for layer in network:
        if isinstance(layer, nn.Linear):
            stacked = torch.cat([parts[name] for name in names]) @ layer.weight.T
            parts = dict(zip(names, stacked.chunk(len(names)), strict=True))
            parts["u"] = parts["u"] + layer.bias
        else:
            parts = _through_tanh(parts, first, second)
    return {name: part.squeeze(1) for name, part in parts.items()}


def _through_tanh(parts: Jet, first: Sequence[str], second: Sequence[str]) -> Jet:
    h = torch.tanh(parts["u"])
    slope = 1 - h * h
    after = {"u": h} | {name: slope * parts[name] for name in first}
    for name in second:
        inner = parts[name[0]]
        after[name] = slope * (parts[name] - 2 * h * inner * inner)
    return after
