"""The scalar policy in each array namespace: the same decisions, whatever the numbers lie in."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from hvadam.core.scalars import FIELDS
from hvadam.torch.groups import initial_scalars
from hvadam.torch.policy import HiddenVectors, advance

DOTS = torch.tensor(
    [
        [[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 3.0, 0.0]],  # holds, starts
        [[1.0, 0.0, 1.0, 0.0], [4.0, 2.0, 1.0, 1.0]],  # starts, restarts
        [[0.3, 0.1, 1.0, 1.1], [0.5, 0.2, 2.0, 2.1]],  # moves, starts
        [[float("nan"), 0.1, 1.0, 1.1], [0.5, 0.4, 2.0, 2.1]],  # holds, moves
    ],
    dtype=torch.float64,
)


def group(**options: Any) -> dict[str, Any]:
    given = {"scope": "group", "betas": (0.9, 0.99), "restart_threshold": 0.2}
    return {**given, "hidden_gain": "exponential", "restart_rule": "paper", **options}


def vectors(*groups: dict[str, Any]) -> HiddenVectors:
    made = HiddenVectors()
    for own in groups:
        made.add(own, [initial_scalars()])
    made.rounding = [2.0**-23] * len(groups)
    return made


def decisions(made: HiddenVectors, dots: Tensor) -> list[Tensor]:
    """Return mix, gain and the next scalars after each of the steps."""
    found: list[Tensor] = []
    for row in dots:
        mix, gain = advance(made, row)
        found += [mix.clone(), gain.clone(), torch.stack(made.scalars)]
    return found


@pytest.mark.parametrize("hidden_gain", ["exponential", "linear"])
@pytest.mark.parametrize("restart_rule", ["paper", "authors"])
def test_one_two_or_compiled_it_is_the_same(
    hidden_gain: str, restart_rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's floats take one hidden vector, NumPy takes two, torch takes what is compiled."""
    own = group(hidden_gain=hidden_gain, restart_rule=restart_rule)
    pair = decisions(vectors(own, own), DOTS)
    for i in range(2):
        alone = decisions(vectors(own), DOTS[:, i : i + 1])
        for one, both in zip(alone, pair, strict=True):
            torch.testing.assert_close(one[0], both[i], rtol=1e-12, atol=1e-12)
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        traced = decisions(vectors(own, own), DOTS)
    torch.testing.assert_close(traced, pair, rtol=1e-12, atol=1e-12)
    assert pair[-1][:, FIELDS.index("holds")].tolist() == [2.0, 0.0]
    assert pair[-1][1, FIELDS.index("restarts")] == 1.0


def test_groups_differ_in_what_moves_their_vectors() -> None:
    own = group(), group(betas=(0.9, 0.9), restart_threshold=0.0, hidden_gain="linear")
    pair = decisions(vectors(*own), DOTS)
    for i in range(2):
        for one, both in zip(decisions(vectors(own[i]), DOTS[:, i : i + 1]), pair, strict=True):
            torch.testing.assert_close(one[0], both[i], rtol=1e-12, atol=1e-12)


def test_inactive_vectors_stay_as_they_are() -> None:
    made = vectors(group(), group())
    advance(made, DOTS[1])
    before = [scalars.clone() for scalars in made.scalars]
    advance(made, DOTS[2], torch.tensor([False, True]))
    step = FIELDS.index("step")
    assert made.scalars[0][step] == before[0][step]
    assert made.scalars[1][step] == before[1][step] + 1


def test_groups_join_one_global_vector() -> None:
    made = HiddenVectors()
    first, second = (group(scope="global") for _ in range(2))
    assert made.add(first, [initial_scalars()]) == 0
    assert made.add(second, [initial_scalars()]) == 0
    assert len(made.scalars) == 1
    assert made.owners == [(first, 1)]
