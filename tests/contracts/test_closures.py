"""Promises of the contenders whose steps evaluate the loss themselves, as line searches do."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hvadam_bench import contenders
from hvadam_bench.contenders import OptimizerSpec

SEARCHING = [spec for name in contenders.names() if (spec := contenders.get(name)).closure]
everyone = pytest.mark.parametrize("spec", SEARCHING, ids=lambda spec: spec.name)
FIRST = 12  # evaluations before the switch
# What strong Wolfe steps of torch guarantee.
ARMIJO, CURVATURE = 1e-4, 0.9


def parameters(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    rng = np.random.default_rng(0)
    return [nn.Parameter(torch.tensor(rng.normal(size=s), dtype=dtype)) for s in ((3, 2), (4,))]


def objective(params: list[nn.Parameter]) -> Tensor:
    """Return a smooth function of all parameters, curved and ill-conditioned, at least 0."""
    x = torch.cat([p.flatten() for p in params])
    steep = torch.logspace(-1, 1, len(x), dtype=x.dtype)
    return (steep * (x - 0.3).square()).sum() + 0.5 * (x[1:] - x[:-1].square()).square().sum()


class Run:
    """A contender on the objective, and all that it evaluated.

    Attributes:
        evaluated: Place, loss and gradient of each evaluation, places and gradients as vectors.
    """

    def __init__(self, spec: OptimizerSpec, dtype: torch.dtype = torch.float64, **options: Any):
        self.params = parameters(dtype)
        switch = {"horizon": 2 * FIRST} if "switch" in spec.defaults else {}
        self.optimizer = contenders.create(spec.name, self.params, **{**switch, **options})
        self.evaluated: list[tuple[np.ndarray, float, np.ndarray]] = []

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        loss = objective(self.params)
        loss.backward()
        slopes = torch.cat([p.grad.flatten() for p in self.params if p.grad is not None])
        self.evaluated.append((self.place(), loss.item(), slopes.double().numpy()))
        return loss

    def place(self) -> np.ndarray:
        return torch.cat([p.detach().flatten() for p in self.params]).double().numpy()

    def step(self, limit: int = 25) -> int:
        """Take a step within so many evaluations; returns how many it took."""
        before = len(self.evaluated)
        self.optimizer.param_groups[0]["max_eval"] = limit
        self.optimizer.step(self.closure)
        return len(self.evaluated) - before

    def one_iteration_at_a_time(self) -> None:
        second = getattr(self.optimizer, "second", self.optimizer)
        second.param_groups[0]["max_iter"] = 1


def started(spec: OptimizerSpec, **options: Any) -> Run:
    """Return a run that is about to take its first iteration of L-BFGS."""
    found = Run(spec, **options)
    found.one_iteration_at_a_time()
    if "switch" in spec.defaults:
        assert [found.step() for _ in range(FIRST)] == [1] * FIRST
    return found


@everyone
@pytest.mark.parametrize("history", [3, 100])
def test_iterations_go_where_the_oracle_points_as_far_as_wolfe_allows(
    spec: OptimizerSpec, history: int
) -> None:
    assert spec.direction is not None
    found = started(spec, history_size=history)
    options = {**spec.defaults, "history_size": history}
    places, losses, gradients = [], [], []
    for _ in range(12):
        first = len(found.evaluated)
        found.step()
        place, loss, gradient = found.evaluated[first]
        places.append(place)
        losses.append(loss)
        gradients.append(gradient)
    for k in range(len(places) - 1):
        moved = places[k + 1] - places[k]
        towards = spec.direction(places[: k + 1], gradients[: k + 1], options)
        length = float(np.linalg.norm(moved) / np.linalg.norm(towards))
        np.testing.assert_allclose(moved, length * towards, rtol=1e-6, atol=1e-9 * length)
        slope = gradients[k] @ moved
        assert slope < 0
        assert losses[k + 1] <= losses[k] + ARMIJO * slope + 1e-15
        assert abs(gradients[k + 1] @ moved) <= CURVATURE * abs(slope) + 1e-15


@everyone
def test_the_history_matters(spec: OptimizerSpec) -> None:
    ends = []
    for history in (3, 100):
        found = started(spec, history_size=history)
        for _ in range(8):
            found.step()
        ends.append(found.place())
    assert not np.allclose(*ends)


@everyone
def test_the_first_optimizer_follows_its_oracle_up_to_the_switch(spec: OptimizerSpec) -> None:
    if "switch" not in spec.defaults:
        assert spec.oracle is None
        return
    found = started(spec, lr=0.05)
    assert spec.oracle is not None
    gradients = [as_arrays(gradient) for _, _, gradient in found.evaluated]
    begun = as_arrays(found.evaluated[0][0])
    trace = spec.oracle(begun, gradients, {**spec.defaults, "lr": 0.05, "horizon": 2 * FIRST})
    visited = [place for place, _, _ in found.evaluated[1:]] + [found.place()]
    for ours, theirs in zip(visited, trace, strict=True):
        flat = np.concatenate([np.ravel(part) for part in theirs])
        np.testing.assert_allclose(ours, flat, rtol=1e-12, atol=1e-12)
    assert found.step() > 1, "a line search comes next"


def as_arrays(flat: np.ndarray) -> list[np.ndarray]:
    """Return a vector of all parameters as the arrays that they are."""
    return [flat[:6].reshape(3, 2), flat[6:]]


@everyone
@pytest.mark.parametrize("limit", range(1, 9))
def test_no_step_exceeds_its_evaluations(spec: OptimizerSpec, limit: int) -> None:
    found = started(spec)
    if isinstance(found.optimizer, torch.optim.LBFGS):
        found.optimizer.param_groups[0]["max_iter"] = 100
    losses = []
    for _ in range(6):
        before = found.place()
        assert 1 <= found.step(limit) <= limit
        losses.append(objective(found.params).item())
        arrived = np.linalg.norm(found.evaluated[-1][2]) < 1e-7  # and rounding stops it
        assert arrived or (found.place() == before).all() == (limit == 1)
    assert losses == sorted(losses, reverse=True), "a search that is cut short never climbs"


@everyone
def test_the_minimum_of_a_quadratic_is_found(spec: OptimizerSpec) -> None:
    params = parameters()
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(10, 10))
    matrix = torch.tensor(basis @ basis.T + 0.1 * np.eye(10))
    wanted = torch.tensor(rng.normal(size=10))
    switch: dict[str, Any] = {"horizon": 2 * FIRST} if "switch" in spec.defaults else {}
    optimizer = contenders.create(spec.name, params, max_eval=200, **switch)

    def closure() -> Any:
        optimizer.zero_grad()
        away = torch.cat([p.flatten() for p in params]) - wanted
        loss = away @ matrix @ away / 2
        loss.backward()
        return loss

    for _ in range(FIRST + 3):
        optimizer.step(closure)
    found = torch.cat([p.detach().flatten() for p in params])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@everyone
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("before", [3, FIRST, FIRST + 2])
def test_resumes_exactly(spec: OptimizerSpec, dtype: torch.dtype, before: int) -> None:
    whole = Run(spec, dtype)
    for _ in range(before):
        whole.step(7)
    file = io.BytesIO()
    torch.save((whole.params, whole.optimizer.state_dict()), file)
    file.seek(0)
    saved, state = torch.load(file, weights_only=False)
    resumed = Run(spec, dtype)
    with torch.no_grad():
        for p, value in zip(resumed.params, saved, strict=True):
            p.copy_(value)
    resumed.optimizer.load_state_dict(state)
    left = range(FIRST + 6 - before)
    counts = [[one.step(7) for _ in left] for one in (resumed, whole)]
    assert counts[0] == counts[1]
    assert (resumed.place() == whole.place()).all()
    assert all(p.dtype == dtype for p in resumed.params)


@everyone
def test_all_or_nothing_switches_are_one_optimizer_alone(spec: OptimizerSpec) -> None:
    if "switch" not in spec.defaults:
        return
    alone = contenders.get(spec.name.removesuffix("_lbfgs"))
    pairs = [
        (Run(spec, lr=0.02, switch=1.0), Run(alone, lr=0.02)),
        (Run(spec, lr=0.02, switch=0.0), Run(contenders.get("lbfgs"))),
    ]
    for combined, single in pairs:
        for _ in range(5):
            combined.step()
            single.step()
        assert (combined.place() == single.place()).all()
    assert not np.allclose(pairs[0][0].place(), pairs[1][0].place())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("exponent", [-100, -60, -20, 30, 90])
def test_the_size_of_the_loss_does_not_matter(dtype: torch.dtype, exponent: int) -> None:
    def end(factor: float) -> Tensor:
        x = nn.Parameter(torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=dtype))
        optimizer = contenders.create("lbfgs", [x], max_eval=60)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = factor * objective([x])
            loss.backward()
            return loss

        optimizer.step(closure)
        return x.detach()

    assert objective([nn.Parameter(end(1.0))]) < 0.3  # it gets somewhere, from 98
    assert torch.equal(end(2.0**exponent), end(1.0))


@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 40), (torch.float64, 300)], ids=str)
def test_a_search_comes_back_from_a_trial_that_is_far_off(dtype: torch.dtype, power: int) -> None:
    """The first trial is at -24: its loss is finite, squares of the line search overflow."""
    x = nn.Parameter(torch.ones(1, dtype=dtype))
    optimizer = contenders.create("lbfgs", [x], lr=25.0, max_eval=60)
    losses: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x**2 / 2 + (x / 10) ** power).sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    assert 1e10 < max(losses) < math.inf
    assert losses[-1] < 1e-6


@everyone
def test_several_groups_are_refused(spec: OptimizerSpec) -> None:
    first, second = parameters()
    groups = [{"params": [first]}, {"params": [second]}]
    with pytest.raises(ValueError, match=r"one group|per-parameter options"):
        contenders.create(spec.name, groups)
