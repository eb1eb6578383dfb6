"""A few windows in batches of any size: equal parts of one loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_problems import smoke, train

from hvadam_bench.problems.few_windows import FewWindowsProblem


def problem(**changed: Any) -> FewWindowsProblem:
    built = smoke("shakespeare_windows", **changed)
    assert isinstance(built, FewWindowsProblem)
    return built


def gradients(one: FewWindowsProblem, steps: range) -> torch.Tensor:
    """Return the mean over steps of the gradients at the first weights."""
    one.model.zero_grad()
    for step in steps:
        [update] = one.updates(one.batch(step))
        (update.loss / len(steps)).backward()
    found = [p.grad for p in one.model.parameters() if p.grad is not None]
    return torch.cat([grad.flatten() for grad in found])


def test_everything_is_the_same_batch_at_every_step() -> None:
    one = problem(batch=0)
    assert one.batch_size == len(one.windows) == 32
    assert torch.equal(one.batch(0), one.windows)
    assert torch.equal(one.batch(17), one.windows)
    [update] = one.updates(one.batch(3))
    assert update.loss.item() == pytest.approx(one.evaluate("valid")["loss"])
    assert one.evaluate("valid") == one.evaluate("test")


@pytest.mark.parametrize("batch", [1, 4, 16, 32])
def test_the_batches_of_an_epoch_have_the_gradient_of_everything_between_them(batch: int) -> None:
    one, whole = problem(batch=batch), problem(batch=0)
    epoch = 32 // batch
    rows = torch.cat([one.batch(step) for step in range(epoch)])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, whole.windows.tolist()))
    mean = gradients(one, range(epoch, 2 * epoch))
    torch.testing.assert_close(mean, gradients(whole, range(1)), rtol=1e-3, atol=1e-6)
    assert one.steps == whole.steps  # equal steps at every dose of noise


def test_it_is_single_precision_and_learns() -> None:
    one = problem(batch=0)
    assert {p.dtype for p in one.model.parameters()} == {torch.float32}
    before = one.evaluate("valid")["loss"]
    train(one, one.steps)
    assert one.evaluate("valid")["loss"] < 0.7 * before


def test_batches_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"batch must be from 0, .* to 32, got 33\."):
        problem(batch=33)
    with pytest.raises(ValueError, match=r"batch must be from 0, .* to 32, got -1\."):
        problem(batch=-1)
    with pytest.raises(ValueError, match=r"windows must be at most \d+, all of the text, got"):
        problem(windows=10_000_000)
