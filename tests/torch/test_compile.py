"""A compiled step is the step, in one graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from made_parameters import Build, feed, parameter, set_grads
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam_bench.studies.speed.steps import temporary_bytes

compiling = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"  # torch's own use of it
)


def compiled_pair(
    params: list[nn.Parameter], backend: str = "eager", **options: Any
) -> tuple[HVAdam, HVAdam, Callable[[], Any]]:
    """An optimizer, its twin on copies of the parameters, and the twin's compiled step."""
    plain = HVAdam(groups_of(params), **copy.deepcopy(options))
    twin = HVAdam(groups_of(copy.deepcopy(params)), **copy.deepcopy(options))
    return plain, twin, torch.compile(twin.step, fullgraph=True, backend=backend)


def groups_of(params: list[nn.Parameter]) -> list[dict[str, Any]]:
    return [{"params": params[:1]}, {"params": params[1:], "weight_decay": 0.1}]


@contextmanager
def no_recompilation() -> Iterator[None]:
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield


@pytest.fixture
def dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def graphs() -> int:
    """Return how many graphs were compiled since the test began."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def agree(plain: HVAdam, twin: HVAdam, **tolerance: Any) -> None:
    torch.testing.assert_close(
        [p.detach() for group in twin.param_groups for p in group["params"]],
        [p.detach() for group in plain.param_groups for p in group["params"]],
        **tolerance,
    )
    ours, theirs = twin.state_dict(), plain.state_dict()
    torch.testing.assert_close(ours["state"], theirs["state"], **tolerance)
    for mine, other in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        if "scalars" in other:
            torch.testing.assert_close(mine["scalars"], other["scalars"], **tolerance)


def run_compiled(
    plain: HVAdam, twin: HVAdam, step: Callable[[], Any], rates: list[float], **tolerance: Any
) -> None:
    """Step both alike, the first step being the compiled one's own start; compare each time."""
    for i, rate in enumerate(rates):
        for optimizer in (plain, twin):
            for group in optimizer.param_groups:
                group["lr"].fill_(rate)
            set_grads([p for group in optimizer.param_groups for p in group["params"]], i)
        plain.step()
        if i == 0:
            step()
        else:
            with no_recompilation():
                step()
        agree(plain, twin, **tolerance)


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize(
    ("kernel", "betas"), [("foreach", (0.9, 0.999)), ("auto", (0.4, 0.9))], ids=["foreach", "auto"]
)
def test_a_compiled_step_is_the_step(kernel: str, betas: tuple[float, float]) -> None:
    """In one graph, from the first step on, and a new lr needs no new one."""
    params = [parameter(3, 4), parameter(5, seed=1), parameter(seed=2)]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, "aot_eager", lr=lr, kernel=kernel, betas=betas)
    rates = [0.01, 0.01, 0.02, 0.03, 0.0, 0.01, 0.005, 0.005, 0.001, 0.1]
    run_compiled(plain, twin, step, rates, rtol=1e-11, atol=1e-13)
    assert torch._dynamo.utils.counters["graph_break"] == {}


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        pytest.param(torch.float32, {}, id="float32"),
        pytest.param(torch.bfloat16, {}, id="bfloat16"),
        pytest.param(torch.complex64, {}, id="complex64", marks=pytest.mark.slow),
        pytest.param(torch.float64, {"bounds": (-0.5, 0.5), "maximize": True}, id="bounds"),
    ],
)
def test_compiled_variants(dtype: torch.dtype, options: dict[str, Any]) -> None:
    """With a 0-dim parameter, and a step at lr=0 that must not project onto the box."""
    params = [
        parameter(3, 4, dtype=dtype),
        parameter(5, dtype=dtype, seed=1),
        parameter(dtype=dtype),
    ]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, lr=lr, **options)
    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float64).eps)
    run_compiled(plain, twin, step, [0.0, 0.01, 0.02, 0.02], rtol=1e3 * eps, atol=1e3 * eps)


@compiling
@pytest.mark.usefixtures("dynamo")
def test_diagnostics_after_a_compiled_step_are_those_of_that_step() -> None:
    plain, twin, step = compiled_pair([parameter(3), parameter(2)], lr=torch.tensor(0.1))
    for optimizer in (plain, twin):
        feed(optimizer, [0])
        for group in optimizer.param_groups:
            group["lr"].fill_(0.001)
        set_grads([p for group in optimizer.param_groups for p in group["params"]], 1)
    plain.step()
    step()
    plain.zero_grad()  # what its gradients tell, a compiled step does not keep
    expected = plain.diagnostics()["global"]
    assert twin.diagnostics()["global"] == pytest.approx(expected, rel=1e-9)


# What changes from step to step, as schedules and users write it into the groups.
CHANGES: dict[str, list[dict[str, Any]]] = {
    "lr": [{"lr": x} for x in (0.1, 0.05, 0.0, 0.001, 0.02)],
    "tensor lr": [{"lr": torch.tensor(x)} for x in (0.1, 0.05, 0.0, 0.001, 0.02)],
    "betas[0]": [{"betas": (x, 0.99)} for x in (0.9, 0.8, 0.0, 0.5, 0.7)],
    "betas[1]": [{"betas": (0.9, x)} for x in (0.99, 0.9, 0.0, 0.7, 0.8)],
    "eps": [{"eps": x} for x in (1e-12, 1e-3, 1e-2, 0.1, 1.0)],
    "gamma": [{"gamma": x} for x in (0.5, 0.1, 0.0, 1.0, 2.0)],
    "weight_decay": [{"weight_decay": x} for x in (0.1, 0.2, 0.3, 0.4, 0.5)],
    "coupled decay": [
        {"weight_decay": x, "weight_decay_mode": "coupled"} for x in (0.1, 0.2, 0.3, 0.4, 0.5)
    ],
    "hidden_scale": [{"hidden_scale": x} for x in (1.0, 20.0, 30.0, 0.0, 40.0)],
    "restart_threshold": [{"restart_threshold": x} for x in (0.0, 0.9999, 0.3, 0.1, 0.9)],
    "bounds": [{"bounds": (-x, x)} for x in (1.0, 0.9, 0.8, 0.7, 0.6)],
    "max_grad_norm": [{"max_grad_norm": x} for x in (1.0, 0.5, 0.2, 0.1, 0.3)],
}


def as_tensors(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change with its numbers as new tensors, in pairs too."""
    made: dict[str, Any] = {}
    for name, value in change.items():
        if isinstance(value, tuple):
            made[name] = tuple(torch.tensor(x, dtype=torch.float64) for x in value)
        else:
            is_number = isinstance(value, float)
            made[name] = torch.tensor(value, dtype=torch.float64) if is_number else value
    return made


def all_at_once() -> list[dict[str, Any]]:
    """Return changes of every number at each step."""
    found: list[dict[str, Any]] = []
    for i in range(5):
        change = {
            k: x for name in CHANGES if name != "tensor lr" for k, x in CHANGES[name][i].items()
        }
        change["betas"] = (CHANGES["betas[0]"][i]["betas"][0], change["betas"][1])
        found.append(change)
    return found


def run_changing(
    changes: list[dict[str, Any]], params: list[list[nn.Parameter]], backend: str
) -> None:
    """Step an optimizer and a compiled twin, the groups of both changed before each step."""
    made = [[{"params": copy.deepcopy(own)} for own in params] for _ in range(2)]
    plain, twin = (HVAdam(groups, betas=(0.9, 0.99)) for groups in made)
    step = torch.compile(twin.step, fullgraph=True, backend=backend)
    for i, change in enumerate(changes):
        for optimizer in (plain, twin):
            for group in optimizer.param_groups:
                group.update(copy.deepcopy(change))
            set_grads([p for group in optimizer.param_groups for p in group["params"]], i)
        plain.step()
        step()
        agree(plain, twin, rtol=1e-8, atol=1e-10)


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_number_of_a_group_may_change_in_one_more_graph(count: int) -> None:
    """A number that is written into a graph would need a new one for each of its values."""
    run_changing(all_at_once(), [[parameter(3)], [parameter(seed=1)]][:count], "aot_eager")
    assert graphs() == 2


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["betas[0]", "weight_decay", "coupled decay", "restart_threshold"])
def test_a_tensor_in_a_group_is_traced_in_one_graph(name: str, count: int) -> None:
    """Whether decay is 0, or groups agree, is asked of floats only: a trace sees no tensor."""
    changes = [as_tensors(change) for change in CHANGES[name]]
    run_changing(changes, [[parameter(3)], [parameter(seed=1)]][:count], "eager")
    assert graphs() == 1


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch in such a path")
@pytest.mark.parametrize("kind", ["float", "tensor"])
@pytest.mark.parametrize("name", CHANGES)
def test_inductor_takes_what_changes(name: str, kind: str) -> None:
    changes = CHANGES[name]
    if kind == "tensor":
        changes = [as_tensors(change) for change in changes]
    run_changing(changes, [[parameter(3)]], "inductor")
    assert graphs() <= (2 if kind == "float" else 1)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch in such a path")
@pytest.mark.parametrize("rate", [0.1, torch.tensor(0.1)], ids=["float", "tensor"])
def test_inductor_follows_a_long_schedule(rate: Any) -> None:
    """OneCycleLR changes lr and betas[0]; one group rests, and its numbers change too."""
    used, moved = [], []
    for backend in (None, "inductor"):
        params = [parameter(3), parameter(2, seed=1)]
        optimizer = HVAdam([{"params": [p]} for p in params], lr=copy.deepcopy(rate))
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=60)
        step = torch.compile(optimizer.step, backend=backend) if backend else optimizer.step
        for i in range(50):
            set_grads(params[:1], i)
            step()
            schedule.step()
        group = optimizer.param_groups[0]
        used.append((float(group["lr"]), group["betas"]))
        moved.append(params[0].detach())
    assert used[0] == used[1]
    torch.testing.assert_close(moved[1], moved[0], rtol=1e-7, atol=1e-9)
    assert graphs() <= 3


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize("fullgraph", [True, False], ids=["fullgraph", "with breaks"])
@pytest.mark.parametrize(
    "options",
    [{"state_dtype": "bfloat16"}, {"state_dtype": "int8"}],
    ids=str,
)
def test_what_is_not_traced_is_refused_in_a_few_lines(
    options: dict[str, Any], fullgraph: bool
) -> None:
    p = parameter(300, dtype=torch.float32)
    optimizer = HVAdam([p], **options)
    step = torch.compile(optimizer.step, fullgraph=fullgraph)
    set_grads([p], 0)
    before = p.detach().clone()
    message = r'HVAdam: torch\.compile is for state_dtype="float32"; leave'
    with pytest.raises(RuntimeError, match=message) as refused:
        step()
    assert len(str(refused.value).splitlines()) < 30
    assert torch.equal(p.detach(), before)
    assert not optimizer.state
    optimizer.step()


@compiling
@pytest.mark.usefixtures("dynamo")
def test_a_schedule_needs_no_new_graph() -> None:
    params = [parameter(3, 4), parameter(5, seed=1)]
    optimizer = HVAdam(params, lr=torch.tensor(0.01, dtype=torch.float64))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    step = torch.compile(optimizer.step, backend="eager")  # the schedule wraps it, outside a graph
    set_grads(params, 0)
    step()
    rates = {float(optimizer.param_groups[0]["lr"])}
    with no_recompilation():
        for _ in range(1000):
            schedule.step()
            step()
            rates.add(float(optimizer.param_groups[0]["lr"]))
    assert len(rates) == 1001
    assert optimizer.state[params[0]]["step"] == 1001


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize(
    "backend",
    [
        "aot_eager",
        pytest.param(
            "inductor",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch so"),
            ],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_a_whole_training_step_compiles(backend: str, build: Build) -> None:
    """With the backward pass in it, which torch runs between two graphs."""
    models = build(torch.float64), build(torch.float64)
    optimizers = [HVAdam(model.parameters(), lr=torch.tensor(0.01)) for model in models]

    def training(x: Tensor, y: Tensor, which: int) -> Tensor:
        loss = nn.functional.mse_loss(models[which](x), y)
        loss.backward()
        optimizers[which].step()
        optimizers[which].zero_grad()
        return loss

    compiled = torch.compile(training, backend=backend)
    generator = torch.Generator().manual_seed(0)
    for _ in range(6):
        x = torch.randn(16, 4, generator=generator, dtype=torch.float64)
        y = torch.stack([x.sum(1), (x * x).mean(1)], dim=1)
        torch.testing.assert_close(compiled(x, y, 0), training(x, y, 1), rtol=1e-8, atol=1e-10)
    agree(optimizers[1], optimizers[0], rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch in such a path")
def test_a_compiled_step_has_no_temporaries() -> None:
    params = [parameter(300, 400, dtype=torch.float32), parameter(5000, dtype=torch.float32)]
    optimizer = HVAdam(params, lr=torch.tensor(0.01))
    set_grads(params, 0)
    step = torch.compile(optimizer.step, fullgraph=True)
    step()
    step()
    assert temporary_bytes(step) < 0.1 * sum(p.numel() for p in params)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
def test_every_input_compiles(options: dict[str, Any]) -> None:
    options["lr"] = torch.tensor(0.01, dtype=torch.float64)
    params = [parameter(3, 4), parameter(5, seed=1), parameter(seed=2)]
    plain, twin, step = compiled_pair(params, "aot_eager", **options)
    run_compiled(plain, twin, step, [0.01, 0.02, 0.03, 0.01, 0.01], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch in such a path")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", ["foreach", "auto"])
def test_inductor(kernel: str, dtype: torch.dtype) -> None:
    params = [parameter(30, 40, dtype=dtype), parameter(5, dtype=dtype), parameter(dtype=dtype)]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, "inductor", lr=lr, kernel=kernel)
    eps = torch.finfo(dtype).eps
    run_compiled(plain, twin, step, [0.01] * 5 + [0.02] * 5, rtol=1e4 * eps, atol=1e3 * eps)
