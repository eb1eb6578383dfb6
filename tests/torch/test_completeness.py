"""Steps that cannot see all parameters are refused, with the way out."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import nn

from hvadam import HVAdam
from hvadam.torch import completeness


def parameter() -> nn.Parameter:
    return nn.Parameter(torch.ones(3))


@pytest.mark.parametrize("scope", ["global", "group", "tensor"])
def test_a_step_inside_backward(scope: Any) -> None:
    w, other = parameter(), parameter()
    optimizer = HVAdam([w, other], scope=scope)
    w.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    loss = (w * other).sum()
    if scope == "tensor":
        loss.backward()
        assert not torch.equal(w, torch.ones(3))
    else:
        with pytest.raises(RuntimeError, match=r'inside backward.* or use scope="tensor"'):
            loss.backward()


def test_torchs_optimizers_in_backward() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading it warns of torch.jit
        from torch.distributed.optim import _apply_optimizer_in_backward

    model = nn.Linear(3, 2)
    _apply_optimizer_in_backward(HVAdam, model.parameters(), {"lr": 0.1})
    with pytest.raises(RuntimeError, match="inside backward"):
        model(torch.ones(3)).sum().backward()


@pytest.mark.parametrize("scope", ["global", "group", "tensor"])
def test_one_optimizer_per_parameter(scope: Any) -> None:
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(completeness.SINGLES)))
    optimizers = [HVAdam([p], scope=scope) for p in model.parameters()]

    def step_all() -> None:
        model(torch.ones(3)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    if scope == "tensor":
        step_all()
    else:
        with pytest.raises(
            RuntimeError, match=r'9 optimizers of one parameter each step in.*scope="tensor"'
        ):
            step_all()
    del optimizers[completeness.SINGLES :]
    step_all()  # what is no more does not count


def test_optimizers_that_nobody_holds_do_not_count() -> None:
    """A reference cycle keeps each of them until Python collects garbage, which may take long."""
    gc.disable()
    try:
        for _ in range(3 * completeness.SINGLES):
            p = parameter()
            p.grad = torch.ones(3)  # by hand: no forward pass tells these trainings apart
            optimizer = HVAdam([p])
            optimizer.itself = optimizer  # pyright: ignore[reportAttributeAccessIssue]
            optimizer.step()
    finally:
        gc.enable()


def agents(*shape: int) -> list[tuple[nn.Parameter, HVAdam]]:
    """More parameters than may be a coincidence, each with an optimizer of its own."""
    params = [nn.Parameter(torch.ones(shape)) for _ in range(2 * completeness.SINGLES)]
    return [(p, HVAdam([p])) for p in params]


@pytest.mark.parametrize("shape", [(), (1,), (4,)])
def test_many_agents_train_their_own_parameter(shape: tuple[int, ...]) -> None:
    every = agents(*shape)
    for _ in range(3):
        for p, optimizer in every:
            optimizer.zero_grad()
            p.square().sum().backward()
            optimizer.step()
    for p, optimizer in every:
        optimizer.step(lambda p=p: p.square().sum().backward())
    assert all(bool((p < 1).all()) for p, _ in every)


def test_many_agents_train_their_own_scalar_from_one_loss() -> None:
    """Accept one temperature for each agent of soft actor-critic, the losses added up."""
    every = agents(1)
    sum(p.exp().sum() for p, _ in every).backward()  # pyright: ignore[reportAttributeAccessIssue]
    for _, optimizer in every:
        optimizer.step()
    assert all(bool((p < 1).all()) for p, _ in every)


def test_many_agents_train_in_threads_of_their_own() -> None:
    """Each thread numbers its forward passes from the same number on."""
    every = agents(4)
    together = Barrier(len(every))

    def learn(p: nn.Parameter, optimizer: HVAdam) -> None:
        p.square().sum().backward()
        together.wait()
        optimizer.step()

    with ThreadPoolExecutor(len(every)) as pool:
        for done in [pool.submit(learn, *agent) for agent in every]:
            done.result()
    assert all(bool((p < 1).all()) for p, _ in every)


def test_parameters_swapped_in_and_out() -> None:
    """ZeRO-3 engines step one sub-group at a time through one optimizer."""
    parts = [parameter(), parameter()]
    for scope in ("global", "tensor"):
        optimizer = HVAdam([parts[0]], scope=scope)
        parts[0].grad, parts[1].grad = torch.ones(3), torch.ones(3)
        optimizer.step()
        optimizer.param_groups[0]["params"] = [parts[1]]
        if scope == "tensor":
            optimizer.step()
            continue
        before = parts[1].detach().clone()
        with pytest.raises(RuntimeError, match="ZeRO-3 sub-groups"):
            optimizer.step()
        assert torch.equal(parts[1], before)
        del optimizer.state[parts[0]]  # removed for good
        optimizer.step()


def test_an_empty_first_step_changes_nothing() -> None:
    """torch.distributed.checkpoint takes one, at lr 0 with zeros, to have the state made."""
    every: list[dict[str, Any]] = [
        {},
        {"scope": "tensor"},
        {"state_dtype": "int8"},
    ]
    for options in every:
        finals: list[torch.Tensor] = []
        for prepared in (False, True):
            w, u = parameter(), parameter()
            optimizer = HVAdam([w, u], lr=0.1, weight_decay=0.1, **options)
            if prepared:
                optimizer.param_groups[0]["lr"] = 0.0
                w.grad, u.grad = torch.zeros(3), torch.zeros(3)
                optimizer.step()
                optimizer.param_groups[0]["lr"] = 0.1
                assert optimizer.state[w]["step"] == 0
                assert torch.equal(w, torch.ones(3))
            for k in range(3):
                w.grad, u.grad = torch.full((3,), 1.0 + k), torch.full((3,), -1.0)
                optimizer.step()
            finals.append(torch.stack([w.detach(), u.detach()]))
        assert torch.equal(*finals)


def test_a_first_step_at_lr_0_with_a_gradient_counts() -> None:
    """A warm-up may start from 0."""
    w = parameter()
    optimizer = HVAdam([w], lr=0.0)
    w.grad = torch.ones(3)
    optimizer.step()
    assert optimizer.state[w]["step"] == 1
    assert optimizer.state[w]["exp_avg"].any()
