"""Promises that every contender keeps; what one may do beyond them, its SPEC says."""

from __future__ import annotations

import copy
import functools
import io
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from bad_options import BAD
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from hvadam_bench import contenders
from hvadam_bench.contenders import OptimizerSpec

# A matrix, vectors, a scalar and a kernel: lengths that fill no vector register, too.
SHAPES = ((4, 3), (5,), (1,), (), (3, 2, 2, 2))
STEPS = 12  # twice around every averaging period, and past RAdam's warm-up
Arrays = list[np.ndarray]

SPECS = [contenders.get(name) for name in contenders.names()]
really_everyone = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
# Who steps on a gradient that is given; those who evaluate losses keep test_closures.py.
everyone = pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if not spec.closure], ids=lambda spec: spec.name
)


def arrays(seed: int, shapes: Sequence[tuple[int, ...]] = SHAPES) -> Arrays:
    """Draw arrays of these shapes from a seed."""
    generator = np.random.default_rng(seed)
    return [np.asarray(generator.standard_normal(shape)) for shape in shapes]


@functools.cache
def gradients(steps: int = STEPS, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Arrays]:
    """Return a trend and noise for each step, of sizes that differ from tensor to tensor."""
    trend = arrays(1, shapes)
    return [
        [10.0 ** (i % 3 - 1) * (t + n) for i, (t, n) in enumerate(zip(trend, noise, strict=True))]
        for noise in (arrays(100 + step, shapes) for step in range(steps))
    ]


def parameters(
    values: Arrays | None = None, dtype: torch.dtype = torch.float64
) -> list[nn.Parameter]:
    values = arrays(0) if values is None else values
    return [nn.Parameter(torch.tensor(value, dtype=dtype)) for value in values]


def take(optimizer: Optimizer, params: Sequence[Tensor], grads: Sequence[Arrays]) -> None:
    """Take one step for each list of gradients."""
    for step in grads:
        for p, g in zip(params, step, strict=True):
            p.grad = torch.tensor(g, dtype=p.dtype)
        optimizer.step()


def values(params: Sequence[Tensor]) -> list[Tensor]:
    return [p.detach().clone() for p in params]


def shown(spec: OptimizerSpec, optimizer: Optimizer, params: Sequence[Tensor]) -> list[Tensor]:
    """Return the parameters in training, and those to evaluate."""
    with spec.evaluation(optimizer):
        evaluated = values(params)
    return values(params) + evaluated


def assert_equal(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    """Assert that tensors are equal bit for bit."""
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def assert_near(ours: Sequence[Tensor], theirs: Arrays, tolerance: float) -> None:
    """Assert that tensors lie near the oracle's, relative to the largest parameter."""
    for a, b in zip(ours, theirs, strict=True):
        error = np.abs(a.double().numpy() - b).max()
        assert error <= tolerance * max(1.0, np.abs(b).max()), f"{error:.1e}, shape {b.shape}"


@really_everyone
def test_spec_is_complete(spec: OptimizerSpec) -> None:
    assert contenders.get(spec.name) is spec
    assert spec.paper
    assert spec.source
    assert BAD[spec.name]
    assert not spec.search, "ours are all searched alike, around their defaults"
    assert 0.5 <= (spec.first_rate or spec.defaults["lr"]) / spec.defaults["lr"] <= 2
    assert not spec.averages or spec.evaluated is not None
    optimizer = contenders.create(spec.name, parameters())
    assert isinstance(optimizer, Optimizer)
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(set(held)) == len(held) == len(SHAPES)


@everyone
def test_is_built_with_the_defaults_that_its_spec_states(spec: OptimizerSpec) -> None:
    [group] = contenders.create(spec.name, nn.Conv1d(3, 4, 2, bias=False)).param_groups
    stated = {name: group.get(name, value) for name, value in spec.defaults.items()}
    assert stated == dict(spec.defaults)
    assert "lr" in group


@everyone
def test_matches_its_oracle(spec: OptimizerSpec) -> None:
    for options in ({}, *(case.options for case in spec.cases)):
        match(spec, {**spec.defaults, **options}, options)


def match(spec: OptimizerSpec, everything: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Assert that a contender goes where its oracle goes."""
    start, grads, params = arrays(0), gradients(), parameters()
    optimizer = contenders.create(spec.name, params, **options)
    assert spec.oracle is not None
    training = spec.oracle(arrays(0), grads, everything)
    evaluated = (spec.evaluated or spec.oracle)(arrays(0), grads, everything)
    assert len(training) == len(evaluated) == STEPS
    for step, expected, averaged in zip(grads, training, evaluated, strict=True):
        take(optimizer, params, [step])
        assert_near(values(params), expected, spec.tolerance)
        assert_near(shown(spec, optimizer, params)[len(params) :], averaged, spec.tolerance)
    moved = max(np.abs(b - a).max() for a, b in zip(start, training[-1], strict=True))
    assert moved > 1e3 * spec.tolerance, "the oracle has to move for the match to mean anything"


@everyone
def test_float32_tracks_the_oracle(spec: OptimizerSpec) -> None:
    start, grads = arrays(0), gradients()
    params = parameters(dtype=torch.float32)
    take(contenders.create(spec.name, params), params, grads)
    assert spec.oracle is not None
    end = spec.oracle(start, grads, spec.defaults)[-1]
    for p, first, last in zip(params, arrays(0), end, strict=True):
        moved, size = np.abs(last - first).max(), np.abs(last).max()
        error = np.abs(p.detach().double().numpy() - last).max()
        assert error <= 1e-4 * moved + 8 * np.finfo(np.float32).eps * size


@everyone
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_keeps_dtypes(spec: OptimizerSpec, dtype: torch.dtype) -> None:
    params = parameters(dtype=dtype)
    before = values(params)
    optimizer = contenders.create(spec.name, params, lr=30 * spec.defaults["lr"])
    take(optimizer, params, gradients())
    for p, old in zip(params, before, strict=True):
        assert p.dtype == dtype
        assert p.isfinite().all()
        assert not torch.equal(p, old)
    with spec.evaluation(optimizer):
        assert all(p.dtype == dtype and p.isfinite().all() for p in params)


@everyone
def test_resumes_exactly(spec: OptimizerSpec) -> None:
    for options in ({}, *(case.options for case in spec.cases)):
        params, grads = parameters(dtype=torch.float32), gradients()
        optimizer = contenders.create(spec.name, params, **options)
        take(optimizer, params, grads[:7])
        file = io.BytesIO()
        torch.save((values(params), optimizer.state_dict()), file)
        file.seek(0)
        saved, state = torch.load(file, weights_only=True)
        resumed = [nn.Parameter(p) for p in saved]
        fresh = contenders.create(spec.name, resumed, **options)
        fresh.load_state_dict(state)
        take(fresh, resumed, grads[7:])
        take(optimizer, params, grads[7:])  # afterwards: it must share nothing with the other
        assert_equal(shown(spec, fresh, resumed), shown(spec, optimizer, params))


@everyone
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on_alike(spec: OptimizerSpec, copied: Any) -> None:
    params, grads = parameters(), gradients()
    optimizer = contenders.create(spec.name, params)
    untouched, unstepped = copied((params, optimizer))
    take(optimizer, params, grads[:7])
    twins, twin = copied((params, optimizer))
    take(twin, twins, grads[7:])
    take(optimizer, params, grads[7:])
    assert_equal(shown(spec, twin, twins), shown(spec, optimizer, params))
    take(unstepped, untouched, grads)  # one that was copied before its first step
    assert_equal(shown(spec, unstepped, untouched), shown(spec, optimizer, params))


@everyone
def test_leaves_gradients_alone(spec: OptimizerSpec) -> None:
    for options in ({}, *(case.options for case in spec.cases)):
        params = parameters()
        optimizer = contenders.create(spec.name, params, **options)
        for step in gradients():
            grads = [torch.tensor(g) for g in step]
            for p, g in zip(params, grads, strict=True):
                p.grad = g.clone()
            held = [p.grad for p in params]
            optimizer.step()
            assert all(p.grad is g for p, g in zip(params, held, strict=True))
            assert_equal([p.grad for p in params if p.grad is not None], grads)


@everyone
def test_leaves_parameters_without_gradient_alone(spec: OptimizerSpec) -> None:
    params = parameters()
    idle = parameters(arrays(5), torch.float64)
    before, moving = values(idle), values(params)
    optimizer = contenders.create(spec.name, [*params, *idle])
    optimizer.step()  # nothing has a gradient yet
    assert_equal(values([*params, *idle]), [*moving, *before])
    take(optimizer, params, gradients())
    # The mean of equal heads or snapshots may round.
    tolerance = 1e-15 if spec.averages else 0.0
    with spec.evaluation(optimizer):
        assert_near(values(idle), [p.numpy() for p in before], tolerance)
    assert_near(values(idle), [p.numpy() for p in before], tolerance)
    take(optimizer, [*params, *idle], [g + g for g in gradients(1)])  # and may join later
    assert all(not torch.equal(p, old) for p, old in zip(idle, before, strict=True))


@really_everyone
def test_refuses_bad_options(spec: OptimizerSpec) -> None:
    for case in BAD[spec.name]:
        with pytest.raises((TypeError, ValueError), match=case.match) as caught:
            contenders.create(spec.name, parameters(), **case.options)
        assert "\n" not in str(caught.value)


@everyone
def test_groups_have_their_own_rate(spec: OptimizerSpec) -> None:
    """Given the gradients, a tensor's path depends on its own group's rate alone."""
    rates, runs = (spec.defaults["lr"], 0.3 * spec.defaults["lr"]), []
    for lr in rates:
        params = parameters()
        take(contenders.create(spec.name, params, lr=lr), params, gradients())
        runs.append([p.numpy() for p in values(params)])
    params = parameters()
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": rates[1]}]
    optimizer = contenders.create(spec.name, groups, lr=rates[0])
    take(optimizer, params, gradients())
    assert_near(values(params), runs[0][:2] + runs[1][2:], spec.tolerance)


@everyone
def test_schedules_change_the_rate(spec: OptimizerSpec) -> None:
    params = parameters()
    before = values(params)
    optimizer = contenders.create(spec.name, params)
    scheduler = LambdaLR(optimizer, lambda step: float(step >= 6))
    for i, step in enumerate(gradients()):
        take(optimizer, params, [step])
        scheduler.step()
        if i < 6:  # the mean of equal heads or snapshots may round
            tolerance = 1e-15 if spec.averages else 0.0
            assert_near(values(params), [p.numpy() for p in before], tolerance)
    assert all(not torch.allclose(p, old, 1e-9) for p, old in zip(params, before, strict=True))


@everyone
def test_closures_and_zero_grad(spec: OptimizerSpec) -> None:
    params = parameters()
    optimizer = contenders.create(spec.name, params)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = 0.1 * torch.stack([(p**2).sum() for p in params]).sum()
        loss.backward()
        return loss

    first = closure().item()
    returned = optimizer.step(closure)
    assert isinstance(returned, Tensor)
    assert returned.item() == first
    assert closure().item() < first
    optimizer.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in params)
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


@everyone
def test_decay_joins_the_gradient_if_coupled_and_only_then(spec: OptimizerSpec) -> None:
    if "weight_decay" not in spec.defaults:
        return
    ours, theirs = parameters(), parameters()
    one = contenders.create(spec.name, ours, weight_decay=0.1)
    other = contenders.create(spec.name, theirs, weight_decay=0.0)
    for step in gradients(3):
        take(one, ours, [step])
        joined = [g + 0.1 * p.detach().numpy() for g, p in zip(step, theirs, strict=True)]
        take(other, theirs, [joined])
    alike = all(torch.allclose(p, q, rtol=1e-9) for p, q in zip(ours, theirs, strict=True))
    assert alike == (spec.defaults.get("weight_decay_mode", spec.decay) == "coupled")


@everyone
def test_elementwise_is_true(spec: OptimizerSpec) -> None:
    """Where claimed, problems that share a tensor are apart; else they are seen to touch."""
    shapes = ((2, 7),)
    grads = gradients(shapes=shapes)
    together = parameters(arrays(0, shapes))
    take(contenders.create(spec.name, together), together, grads)
    if spec.elementwise:
        for row in range(2):
            apart = parameters([arrays(0, shapes)[0][row]])
            take(contenders.create(spec.name, apart), apart, [[g[0][row]] for g in grads])
            assert_equal(values(apart), [together[0].detach()[row]])
    else:
        other = parameters(arrays(0, shapes))
        first_row = np.array([[1.5], [1.0]])
        changed = [[first_row * step[0]] for step in grads]
        take(contenders.create(spec.name, other), other, changed)
        assert not torch.equal(other[0][1], together[0][1])


@everyone
def test_evaluation_leaves_no_trace(spec: OptimizerSpec) -> None:
    for options in ({}, *(case.options for case in spec.cases)):
        runs = []
        for watched in (True, False):
            params = parameters(dtype=torch.float32)
            optimizer = contenders.create(spec.name, params, **options)
            for i, step in enumerate(gradients()):
                if watched and i % 3 == 1:
                    before = values(params)
                    with pytest.raises(KeyboardInterrupt), spec.evaluation(optimizer):
                        raise KeyboardInterrupt
                    with spec.evaluation(optimizer):
                        if spec.evaluated is None:
                            assert_equal(values(params), before)
                    assert_equal(values(params), before)
                take(optimizer, params, [step])
            runs.append(shown(spec, optimizer, params))
        assert_equal(*runs)


@everyone
def test_averages_is_true(spec: OptimizerSpec) -> None:
    params = parameters()
    optimizer = contenders.create(spec.name, params)
    differed = False
    for step in gradients():
        take(optimizer, params, [step])
        both = shown(spec, optimizer, params)
        differed |= not all(map(torch.equal, both[: len(params)], both[len(params) :]))
    assert differed == spec.averages


class Tagger(nn.Module):
    """A network with a bit of everything that a model may have."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.convolution = nn.Conv1d(6, 4, 3, padding=1, bias=False)  # a norm hides biases
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.convolution(self.embedding(tokens).mT)
        return self.head(torch.relu(self.norm(x)).mean(-1))


@everyone
def test_trains_a_model_at_once(spec: OptimizerSpec) -> None:
    torch.manual_seed(0)
    model = Tagger()
    model.norm.weight.requires_grad_(False)
    tokens, labels = torch.arange(44).reshape(4, 11) % 11, torch.tensor([0, 1, 2, 0])
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = contenders.create(spec.name, model)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
    assert math.isfinite(loss.item())
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) != p.requires_grad, name
    with spec.evaluation(optimizer):
        assert model(tokens).isfinite().all()
