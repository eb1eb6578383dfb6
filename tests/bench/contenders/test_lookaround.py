"""Lookaround with more than one head, and with a model's batch-norm statistics."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hvadam_bench import contenders
from hvadam_bench.contenders import lookaround
from hvadam_bench.contenders._implementations.lookaround import Lookaround

HEADS, K = 3, 2
OPTIONS = {**lookaround.SPEC.defaults, "k": K}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    first = nn.Linear(3, 4, bias=False)  # a norm hides biases
    return nn.Sequential(first, nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).double()


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(8, 3, generator=generator, dtype=torch.float64),
            torch.randint(2, (8,), generator=generator),
        )
        for _ in range(count)
    ]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, data: list[Any]) -> None:
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("options", [{}, {"inner": "adam", "lr": 0.01, "weight_decay": 0.1}])
def test_heads_match_the_oracle(options: dict[str, Any]) -> None:
    everything = {**OPTIONS, **options}
    generator = np.random.default_rng(0)
    start = [generator.standard_normal(shape) for shape in ((2, 3), (4,))]
    grads = [[generator.standard_normal(p.shape) for p in start] for _ in range(2 * HEADS * K + 1)]
    params = [nn.Parameter(torch.tensor(p)) for p in start]
    optimizer = Lookaround(params, **{**everything, "heads": HEADS})
    training = lookaround.oracle(start, grads, everything, HEADS)
    evaluated = lookaround.evaluated(start, grads, everything, HEADS)
    for t, step in enumerate(grads):
        assert optimizer.head == t % HEADS
        for p, g in zip(params, step, strict=True):
            p.grad = torch.tensor(g)
        optimizer.step()
        for p, expected in zip(params, training[t], strict=True):
            np.testing.assert_allclose(p.detach().numpy(), expected, rtol=0, atol=1e-13)
        with optimizer.evaluation():
            for p, expected in zip(params, evaluated[t], strict=True):
                np.testing.assert_allclose(p.detach().numpy(), expected, rtol=0, atol=1e-13)


def test_is_training_of_separate_models_that_are_averaged() -> None:
    """Weights, momenta and batch-norm statistics of the heads do not touch."""
    data = batches(1 + 2 * HEADS * K)
    model = network()
    model(data[0][0])  # statistics of a first pass: all heads share them
    heads = [copy.deepcopy(model) for _ in range(HEADS)]
    apart = [torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9) for head in heads]
    together = contenders.create("lookaround", model, lr=0.1, heads=HEADS, k=K)
    for cycle in range(2):
        for turn in range(HEADS * K):
            i, batch = turn % HEADS, data[1 + cycle * HEADS * K + turn]
            train(model, together, [batch])
            train(heads[i], apart[i], [batch])
            if cycle == turn == 0:  # the documented start of the other heads' statistics
                for other in heads[1:]:
                    other[1].load_state_dict(
                        {**other[1].state_dict(), **dict(heads[0][1].named_buffers())}
                    )
        states = [tensors(head) for head in heads]
        for name, value in states[0].items():
            if value.is_floating_point():
                mean = torch.stack([state[name] for state in states]).mean(0)
                for state in states:
                    state[name] = mean
        for head, state in zip(heads, states, strict=True):
            head.load_state_dict(state)
        for name, value in tensors(model).items():
            torch.testing.assert_close(value, states[0][name], rtol=0, atol=1e-14)


@pytest.mark.parametrize("stop", [1, HEADS + 1, HEADS * K])
def test_resumes_in_mid_cycle_with_its_statistics(stop: int) -> None:
    data = batches(3 * HEADS * K)
    model = network()
    optimizer = contenders.create("lookaround", model, heads=HEADS, k=K)
    train(model, optimizer, data[:stop])
    file = io.BytesIO()
    torch.save((model.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    resumed = network()
    resumed.load_state_dict(weights)
    second = contenders.create("lookaround", resumed, heads=HEADS, k=K)
    second.load_state_dict(state)
    twin, third = copy.deepcopy((model, optimizer))
    for network_, optimizer_ in ((resumed, second), (twin, third), (model, optimizer)):
        train(network_, optimizer_, data[stop:])
    for name, value in model.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name])
        assert torch.equal(value, twin.state_dict()[name])


def test_loading_shares_nothing() -> None:
    model, other = network(), network()
    optimizer = contenders.create("lookaround", model, heads=2)
    train(model, optimizer, batches(1))
    second = contenders.create("lookaround", other, heads=2)
    second.load_state_dict(optimizer.state_dict())
    before = copy.deepcopy(optimizer.state_dict()["state"]["shared"])
    train(other, second, batches(3))
    after = optimizer.state_dict()["state"]["shared"]
    assert after["calls"] == before["calls"] == 1
    for name, values in before["norms"].items():
        assert all(map(torch.equal, values, after["norms"][name]))


def test_evaluation_shows_averages_and_restores() -> None:
    model = network()
    optimizer = contenders.create("lookaround", model, heads=HEADS)
    train(model, optimizer, batches(2))
    before = tensors(model)
    with lookaround.SPEC.evaluation(optimizer):
        model(batches(1)[0][0])  # in training mode: it moves the statistics
        shown = tensors(model)
    after = tensors(model)
    for name, value in before.items():
        assert torch.equal(value, after[name])
        assert not torch.equal(value, shown[name])


def test_one_head_without_a_model() -> None:
    optimizer = contenders.create("lookaround", [nn.Parameter(torch.ones(2))], heads=4)
    assert optimizer.defaults["heads"] == 1


def test_refuses_heads_that_differ() -> None:
    model = network()
    optimizer = contenders.create("lookaround", model, heads=2)
    other = contenders.create("lookaround", model, heads=3)
    with pytest.raises(ValueError, match="heads must be those of the checkpoint, 3, got 2"):
        optimizer.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match="heads must be the same for all parameters, got 2 and 3"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))], "heads": 3})
