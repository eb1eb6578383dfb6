"""The candidates' optimizer where it must be one that is known, and at its edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hvadam_bench import contenders
from hvadam_bench.contenders._implementations.hvadam_trial import NOISE, TREND, HVAdamTrial, gate
from hvadam_bench.contenders.hvadam_trial import NOISE as ORACLE_NOISE
from hvadam_bench.contenders.hvadam_trial import TREND as ORACLE_TREND

PAPER = {"hidden_path": "direct", "hidden_gain": "exponential", "projection": "line"}
STEPS = 25  # rounding grows from step to step


def trained(name: str, **options: Any) -> torch.Tensor:
    """Return where a contender gets on a crooked valley with a little noise, float64."""
    noise = torch.Generator().manual_seed(1)
    first, second = (
        nn.Parameter(torch.linspace(low, 2.0, 5, dtype=torch.float64)) for low in (-1.0, 0.5)
    )
    optimizer = contenders.create(name, [first, second], lr=0.01, **options)
    scales = torch.logspace(-2, 1, 5, dtype=torch.float64)
    for _ in range(STEPS):
        optimizer.zero_grad()
        shaken = first + 0.1 * torch.randn(5, generator=noise, dtype=torch.float64)
        ((scales * shaken.square()).sum() + (first * second).cos().sum()).backward()
        optimizer.step()
    return torch.cat([first, second]).detach()


def assert_same(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("extra", [{}, {"weight_decay": 0.1}, {"restart_threshold": 0.5}], ids=str)
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.8)])
def test_the_papers_options_are_hvadam(betas: tuple[float, float], extra: dict[str, float]) -> None:
    ours = trained("hvadam_trial", betas=betas, **PAPER, **extra)
    assert_same(ours, trained("hvadam", betas=betas, **extra))


def test_without_the_hidden_vector_it_is_adam_adabelief_or_nadam() -> None:
    plain = {"hidden_scale": 0.0, "preconditioner": "adam", "eps": 1e-8}
    assert_same(trained("hvadam_trial", **plain), trained("adam"))
    belief = {"hidden_scale": 0.0, "preconditioner": "belief", "eps": 1e-8}
    assert_same(trained("hvadam_trial", **belief), trained("adabelief"))


def test_look_ahead_is_nadams_without_its_schedule() -> None:
    grads = [np.random.default_rng(i).normal(size=4) for i in range(20)]
    p = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    take(
        made(
            [p],
            hidden_scale=0.0,
            preconditioner="adam",
            eps=1e-8,
            momentum="nesterov",
        ),
        [p],
        [[g] for g in grads],
    )
    theta, m, s = np.zeros(4), np.zeros(4), np.zeros(4)
    for t, g in enumerate(grads, 1):
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g**2
        ahead = 0.9 * m / (1 - 0.9**t) + 0.1 * g / (1 - 0.9**t)
        theta -= 1e-3 * ahead / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(p.detach().numpy(), theta, atol=1e-14)


def trial(params: list[Any], **options: Any) -> HVAdamTrial:
    return HVAdamTrial(params, **{**contenders.get("hvadam_trial").defaults, **options})


def take(optimizer: HVAdamTrial, params: Sequence[nn.Parameter], steps: Sequence[Any]) -> None:
    for grads in steps:
        for p, g in zip(params, grads, strict=True):
            p.grad = torch.as_tensor(g, dtype=p.dtype)
        optimizer.step()


def made(params: Any, **options: Any) -> Any:
    return contenders.create("hvadam_trial", params, **options)


def hidden_after(grads: Sequence[Sequence[float]], **options: Any) -> tuple[list[float], float]:
    """Return v and the alignment after steps with momentum off, so that m_hat is the gradient."""
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = made([p], betas=(0.0, 0.5), restart_threshold=0.0, **options)
    take(optimizer, [p], [[g] for g in grads])
    return optimizer.state[p]["hidden"].tolist(), optimizer.diagnostics()["global"]["alignment"]


def test_parallel_vectors_keep_the_shorter_one_on_the_segment() -> None:
    assert hidden_after([[3.0, 4.0], [6.0, 8.0]]) == ([3.0, 4.0], pytest.approx(1.0))
    assert hidden_after([[3.0, 4.0], [1.5, 2.0]]) == ([1.5, 2.0], 1.0)
    v, alignment = hidden_after([[3.0, 4.0], [6.0, 8.0]], projection="line")
    assert max(map(abs, v)) < 1e-14
    assert alignment < 1e-14


def test_the_nearest_point_between_two_that_disagree() -> None:
    for projection in ("line", "segment"):
        v, alignment = hidden_after([[1.0, 2.0], [1.0, -2.0]], projection=projection)
        assert v == pytest.approx([1.0, 0.0])
        assert alignment == pytest.approx(1 / math.sqrt(5))


def test_equal_and_zero_gradients_stay_quiet() -> None:
    assert hidden_after([[1.0, 2.0]] * 3) == ([1.0, 2.0], 1.0)
    assert hidden_after([[0.0, 0.0]] * 3) == ([0.0, 0.0], 0.0)
    assert hidden_after([[1.0, 2.0], [0.0, 0.0]])[1] == 0.0


def test_what_is_not_finite_leaves_the_hidden_vector_alone() -> None:
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = trial([p], betas=(0.0, 0.5))
    take(optimizer, [p], [[[1.0, 2.0]], [[math.nan, 1.0]]])
    assert optimizer.state[p]["hidden"].tolist() == [1.0, 2.0]
    assert optimizer.diagnostics()["global"]["hidden_gain"] == 0.0


def test_the_gate_rises_smoothly_from_noise_to_trend() -> None:
    assert (NOISE, TREND) == (ORACLE_NOISE, ORACLE_TREND)
    heights = [gate(x) for x in np.linspace(0, 1, 101)]
    assert heights == sorted(heights)
    assert (gate(NOISE), gate(TREND)) == (0.0, 1.0)
    assert gate(NOISE + 1e-3) < 1e-3 < gate(0.5 * (NOISE + TREND))


def test_groups_share_one_rule() -> None:
    first, second = (nn.Parameter(torch.ones(1)) for _ in range(2))
    groups = [{"params": [first]}, {"params": [second], "gamma": 1.0}]
    with pytest.raises(ValueError, match="HVAdamTrial: gamma must be the same in all groups"):
        trial(groups)
