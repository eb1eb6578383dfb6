"""Options that change between steps, by a scheduler of torch or by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from made_parameters import KERNELS, Build, Same, Train
from torch import Tensor, nn
from torch.optim import lr_scheduler

from hvadam import HVAdam

SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.95),
    "StepLR": lambda o: lr_scheduler.StepLR(o, step_size=10, gamma=0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, milestones=[5, 20]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=5),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=10),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, gamma=0.95),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [
            lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=5),
            lr_scheduler.CosineAnnealingLR(o, T_max=30),
        ],
        milestones=[5],
    ),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=30),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, factor=0.5), lr_scheduler.ExponentialLR(o, gamma=0.95)]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=0.5),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.01, step_size_up=5),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=7),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.02, total_steps=40),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, total_iters=40),
}


def run_scheduled(
    model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, train: Train
) -> tuple[list[tuple[float, float]], list[float]]:
    """The (lr, betas[0]) of each step, and the losses."""
    used: list[tuple[float, float]] = []
    losses: list[float] = []
    for step in range(20):
        group = optimizer.param_groups[0]
        used.append((float(group["lr"]), group["betas"][0]))
        losses += train(model, optimizer, [step])
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            scheduler.step(losses[-1])
        else:
            scheduler.step()
    return used, losses


def test_every_scheduler_of_torch_is_tried() -> None:
    assert set(SCHEDULERS) == set(lr_scheduler.__all__) - {"LRScheduler"}


@pytest.mark.parametrize("tensor_lr", [False, True], ids=["float", "tensor"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_set_what_the_step_uses(
    name: str, tensor_lr: bool, build: Build, train: Train, assert_same: Same
) -> None:
    def lr() -> float | Tensor:
        return torch.tensor(0.01, dtype=torch.float64) if tensor_lr else 0.01

    model = build()
    optimizer = HVAdam(model.parameters(), lr=lr())
    used, losses = run_scheduled(model, optimizer, SCHEDULERS[name](optimizer), train)
    assert sum(losses[-5:]) < sum(losses[:5])
    assert len(set(used)) > 1
    assert isinstance(optimizer.param_groups[0]["lr"], Tensor) == tensor_lr

    # The same values written by hand take the same steps.
    twin = build()
    by_hand = HVAdam(twin.parameters(), lr=1.0)
    for step, (value, beta1) in enumerate(used):
        by_hand.param_groups[0].update(lr=value, betas=(beta1, 0.999))
        train(twin, by_hand, [step])
    assert_same(model.state_dict(), twin.state_dict())

    if name != "ReduceLROnPlateau":  # which reads the loss
        other = build()
        adam = torch.optim.Adam(other.parameters(), lr=lr())
        assert run_scheduled(other, adam, SCHEDULERS[name](adam), train)[0] == used


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_is_cycled_as_the_first_beta(name: str, build: Build, train: Train) -> None:
    model = build()
    optimizer = HVAdam(model.parameters())
    used, _ = run_scheduled(model, optimizer, SCHEDULERS[name](optimizer), train)
    assert len({beta1 for _, beta1 in used}) > 5
    assert optimizer.param_groups[0]["betas"][1] == 0.999


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0.02),
        ("lr", torch.tensor(0.02)),
        ("betas", (0.5, 0.999)),
        ("betas", (0.9, 0.5)),
        ("eps", 1e-3),
        ("gamma", 0.0),
        ("weight_decay", 0.5),
        ("weight_decay_mode", "coupled"),
        ("hidden_scale", 0.0),
        ("hidden_gain", "linear"),
        ("restart_threshold", 0.999),
        ("preconditioner", "adam"),
        ("bounds", (-0.1, 0.1)),
        ("maximize", True),
    ],
    ids=str,
)
def test_an_option_changed_between_steps_takes_effect(
    name: str, value: Any, kernel: Any, build: Build, train: Train
) -> None:
    """Schedulers and users write to ``param_groups``; the next step reads it, not the defaults."""

    def run(change: dict[str, Any]) -> Tensor:
        model = build(torch.float64)
        optimizer = HVAdam(model.parameters(), lr=0.01, weight_decay=0.1, kernel=kernel)
        train(model, optimizer, range(3))
        optimizer.param_groups[0].update(change)
        train(model, optimizer, range(3, 6))
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    assert not torch.allclose(run({name: value}), run({}), rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,)], ids=["0-dim", "one-element"])
def test_a_tensor_lr_is_its_number(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    kernel: Any,
    build: Build,
    train: Train,
    assert_same: Same,
) -> None:
    lr = torch.full(shape, 0.01, dtype=dtype)
    options: dict[str, Any] = {"weight_decay": 0.1, "bounds": (-0.5, 0.5), "kernel": kernel}
    model, twin = build(), build()
    optimizer = HVAdam(model.parameters(), lr=lr, **options)
    train(model, optimizer, range(5))
    train(twin, HVAdam(twin.parameters(), lr=lr.item(), **options), range(5))
    assert_same(model.state_dict(), twin.state_dict())
    assert optimizer.param_groups[0]["lr"] is lr
    assert torch.equal(lr, torch.full(shape, 0.01, dtype=dtype))
