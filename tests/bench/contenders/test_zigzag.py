"""What the zigzag contender is made of, and that it measures what the library's meter does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import GradientMeter
from hvadam_bench import contenders

FLAT = {"hidden_scale": 0.0}  # no step along v


def noise(seed: int = 0) -> Callable[[int, tuple[int, ...]], Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda step, shape: torch.randn(shape, generator=generator, dtype=torch.float64)


def valley(step: int, shape: tuple[int, ...]) -> Tensor:
    """Return gradients across a valley: from one wall to the other, and a little ahead."""
    generator = torch.Generator().manual_seed(1)
    slope, across = torch.randn((2, *shape), generator=generator, dtype=torch.float64)
    return slope + 2 * across * (-1) ** step


def trained(
    name: str,
    gradient: Callable[[int, tuple[int, ...]], Tensor],
    steps: int = 60,
    shapes: Iterable[tuple[int, ...]] = ((20, 30), (40,), ()),
    watch: Callable[[list[nn.Parameter]], Any] = lambda _: None,
    **options: Any,
) -> tuple[list[Tensor], Any]:
    """Take steps on gradients that are given; return the parameters and the optimizer."""
    params = [nn.Parameter(torch.ones(shape, dtype=torch.float64)) for shape in shapes]
    optimizer = contenders.create(name, params, lr=0.01, **options)
    for step in range(steps):
        for p in params:
            p.grad = gradient(step, tuple(p.shape))
        watch(params)
        optimizer.step()
    return [p.detach() for p in params], optimizer


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("scope", ["all", "tensor"])
def test_momentum_that_may_not_move_is_adams_or_qhadams(scope: str) -> None:
    still = {**FLAT, "scope": scope}
    ours, _ = trained("zigzag", noise(), span=(1.0, 1.0), **still)
    assert_same(ours, trained("adam", noise())[0])
    ours, _ = trained("zigzag", noise(), span=(0.7, 0.7), **still)
    assert_same(ours, trained("qhadam", noise(), betas=(0.9, 0.999))[0])
    ours, _ = trained("zigzag", noise(), moves="beta1", span=(0.8, 0.8), **still)
    assert_same(ours, trained("adam", noise(), betas=(0.8, 0.999))[0])


def test_it_reads_what_the_meter_reads() -> None:
    meters: list[GradientMeter] = []

    def watch(params: list[nn.Parameter]) -> None:
        meters[:] = meters or [GradientMeter(params, state_dtype=torch.float64)]
        meters[0].update()

    gradient = noise()
    _, optimizer = trained(
        "zigzag",
        lambda step, shape: valley(step, shape) + gradient(step, shape),
        scope="all",
        hold=0.0,
        watch=watch,
    )
    [own] = optimizer.diagnostics().values()
    floor = 1 / (20 * 30 + 40 + 1)
    expected = meters[0].read()["zigzag_average"]
    assert expected > 0.1
    assert own["held"] == pytest.approx(expected - floor, rel=1e-6)


def test_noise_moves_no_momentum_and_a_valley_all_of_it() -> None:
    _, still = trained("zigzag", noise(), steps=300)
    shares = [own["share"] for own in still.diagnostics().values()]
    assert max(shares) < 0.25, "the floor of a small tensor is left out"
    _, moved = trained("zigzag", valley)
    matrix, vector, number = moved.diagnostics().values()
    assert matrix["share"] == vector["share"] == 1
    assert matrix["hidden_share"] == 1
    assert number["share"] == 0, "one number has no right angle"


def test_what_is_held_falls_slowly() -> None:
    def calm(step: int, shape: tuple[int, ...]) -> Tensor:
        return valley(step, shape) if step < 60 else torch.ones(shape, dtype=torch.float64)

    held = [
        next(iter(trained("zigzag", calm, 160, hold=hold)[1].diagnostics().values()))["held"]
        for hold in (0.995, 0.0)
    ]
    assert 0.3 < held[0] < 0.5
    assert held[1] < 0.01


def test_a_gradient_that_is_not_finite_is_not_read() -> None:
    def broken(step: int, shape: tuple[int, ...]) -> Tensor:
        return valley(step, shape) * (torch.nan if step == 59 else 1)

    _, optimizer = trained("zigzag", broken)
    assert all(0 <= own["held"] <= 1 for own in optimizer.diagnostics().values())


def test_groups_share_their_momentum() -> None:
    params = [nn.Parameter(torch.ones(2)) for _ in range(2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "average": 5.0}]
    with pytest.raises(ValueError, match="average must be the same in all groups"):
        contenders.create("zigzag", groups)
