"""The native kernel: safe in memory, the same bits on every core, and right where tensors are odd.

That it agrees with the reference is the contract suite's to show; here is what only a kernel that
works on bare pointers can get wrong.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from judge import judged_step
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch.kernels import native, storage

pytestmark = pytest.mark.skipif(
    native.available() is not None, reason=f"no native kernel: {native.available()}"
)

SOURCES = Path(native.__file__).parent
DRIVER = Path(__file__).with_name("native_driver.c")
# As in setup.py, but for -O: warnings and sanitizers are asked for case by case.
FLAGS = ["-std=c11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
FLAGS += ["-Wno-psabi"]
STATES = ["float32", "bfloat16", "int8"]
STEPS = ["exact", "late"]


def parameter(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Parameter:
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype))


def set_grads(params: list[Any], step: int) -> None:
    """A gradient with a trend and some noise, the same for the same shapes and step."""
    generator = torch.Generator().manual_seed(1000 + step)
    for p in params:
        kind = torch.complex128 if p.is_complex() else torch.float64
        p.grad = (1.0 + torch.randn(p.shape, dtype=kind, generator=generator)).to(p.dtype)


def everyone(optimizer: HVAdam) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def memory_of(optimizer: HVAdam) -> list[Tensor]:
    """All that a step may write, by the tensors that hold it."""
    found: list[Tensor] = []
    for p in everyone(optimizer):
        found += [p, *(x for x in optimizer.state[p].values() if isinstance(x, Tensor))]
    return found


def as_bytes(x: Tensor) -> Tensor:
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def assert_same(left: list[Tensor], right: list[Tensor]) -> None:
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        assert torch.equal(as_bytes(x), as_bytes(y)), f"tensor {i} differs"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """Of every description since: which tensors the native kernel takes."""
    seen: list[list[bool]] = []
    describe = native.describe

    def spy(tensors: Any, scopes: Any) -> native.Table:
        table = describe(tensors, scopes)
        seen.append([i in table.taken for i in range(len(scopes))])
        return table

    monkeypatch.setattr(native, "describe", spy)
    return seen


# The C code by itself


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Runs ``native_driver.c``, which says what it looks at."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    sanitizers = "address,undefined,float-cast-overflow"
    command = ["gcc", *FLAGS, "-fopenmp", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    command += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", f"-I{SOURCES}"]
    subprocess.run([*command, str(DRIVER), "-o", "driver", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./driver"], cwd=tmp_path, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all is well\n"


@pytest.mark.slow
@pytest.mark.parametrize("openmp", [True, False], ids=["OpenMP", "one thread"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compiles_without_warnings(compiler: str, openmp: bool, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    threads = ["-fopenmp"] if openmp else ["-Wno-unknown-pragmas", "-Wno-unused-parameter"]
    command = [compiler, *FLAGS, "-O3", "-Wall", "-Wextra", "-Werror", *threads, "-c"]
    done = subprocess.run(
        [*command, str(SOURCES / "native.c"), "-o", "native.o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if "omp.h" in done.stderr:
        pytest.skip(f"{compiler} has no OpenMP here")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


# The same bits on every core


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def select() -> Iterator[Callable[[int], int]]:
    """Asks for an instruction set, and says which one it is to be."""
    library = ctypes.CDLL(str(next(SOURCES.glob("_native.*"))))
    yield library.hvadam_select
    library.hvadam_select(len(native.INSTRUCTION_SETS))


def after_training(dtype: torch.dtype, **options: Any) -> list[Tensor]:
    """Parameters and state after a few steps on some 200 thousand elements."""
    shapes = [(100_003,), (200, 301), (3, 16_384), (5, 7), ()]
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    optimizer = HVAdam(params, kernel="native", weight_decay=0.1, hidden_gain="linear", **options)
    for step in range(3):
        set_grads(params, step)
        if step == 1:
            params[3].grad = None
        optimizer.step()
    return [x.detach() for x in memory_of(optimizer)] + [optimizer.param_groups[0]["scalars"]]


KEPT = [
    (torch.float32, "float32"),
    (torch.float32, "bfloat16"),
    (torch.float16, "int8"),
    pytest.param(torch.float64, "float32", marks=pytest.mark.slow),
    pytest.param(torch.bfloat16, "float32", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize(("dtype", "state_dtype"), KEPT, ids=str)
def test_the_same_bits_for_any_number_of_threads(
    dtype: torch.dtype, state_dtype: Any, hidden_step: Any, set_threads: Callable[[int], None]
) -> None:
    found: list[list[Tensor]] = []
    for threads in (1, 2, 4):
        set_threads(threads)
        options: Any = {"state_dtype": state_dtype, "hidden_step": hidden_step}
        found.append(after_training(dtype, max_grad_norm=100.0, **options))
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize(("dtype", "state_dtype"), KEPT, ids=str)
@pytest.mark.parametrize("wanted", range(len(native.INSTRUCTION_SETS)), ids=native.INSTRUCTION_SETS)
def test_every_instruction_set_is_held_to_the_reference(
    wanted: int,
    dtype: torch.dtype,
    state_dtype: Any,
    hidden_step: Any,
    select: Callable[[int], int],
) -> None:
    """They need not give the same bits: only some fuse a product and a sum into one rounding."""
    if select(wanted) != wanted:
        pytest.skip("this machine has no such instructions")
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate([(5003,), (3, 7)])]
    options: Any = {"state_dtype": state_dtype, "hidden_step": hidden_step}
    optimizer = HVAdam(
        params, kernel="native", hidden_gain="linear", max_grad_norm=100.0, **options
    )
    for step in range(3):
        set_grads(params, step)
        (judged_step if state_dtype == "float32" else forced_step)(optimizer)


@pytest.mark.parametrize(("dtype", "state_dtype"), KEPT, ids=str)
def test_the_same_bits_with_and_without_avx512(
    dtype: torch.dtype, state_dtype: Any, select: Callable[[int], int]
) -> None:
    if select(2) != 2:
        pytest.skip("this machine has no AVX-512")
    wide = after_training(dtype, state_dtype=state_dtype)
    select(1)
    assert_same(wide, after_training(dtype, state_dtype=state_dtype))


# Dots in lanes of float: where they would not do, they are not used


@pytest.mark.parametrize("scale", [1e-22, 1.0, 2.5e18], ids=str)
@pytest.mark.parametrize("hidden_step", STEPS)
def test_dots_of_large_tensors_keep_their_range(hidden_step: Any, scale: float) -> None:
    """Squares below and above what a float can hold."""
    p = parameter(5003)
    optimizer = HVAdam([p], kernel="native", hidden_step=hidden_step, betas=(0.7, 0.9))
    for step in range(4):
        set_grads([p], step)
        assert p.grad is not None
        p.grad *= scale
        judged_step(optimizer)
    assert optimizer.diagnostics()["global"]["alignment"] > 0.1


def test_parallel_vectors_are_seen_as_such() -> None:
    """Gradients that only shrink leave v at 0, and of its square no rounding may remain."""
    p = parameter(4 * 1024)
    optimizer = HVAdam([p], kernel="native", restart_threshold=0.0)
    trend = torch.randn(p.shape, generator=torch.Generator().manual_seed(0))
    for step in range(2):
        p.grad = 0.5**step * trend
        judged_step(optimizer)
    assert optimizer.diagnostics()["global"]["alignment"] < 1e-6


# Low-bit state, held to the readable kernel

MISSES = 0.01  # of all numbers stored
LAST_BIT = 2.0**-22  # of the terms of a sum, whatever is left of it


def forced_step(optimizer: HVAdam) -> None:
    """Step the optimizer and a twin on the readable kernel from the same state; they agree.

    The two add in another order, so a random rounding may now and then fall on the other side: few
    stored numbers may differ, by one quantum, or by the last bit of what they are the sum of. That
    moves the dots, and with the mix all of v a little.
    """
    twin = copy.deepcopy(optimizer)
    for group in twin.param_groups:
        group["kernel"] = "loop"
    before = [(p.detach().clone(), numbers(optimizer.state.get(p))) for p in everyone(optimizer)]
    for p, q in zip(everyone(optimizer), everyone(twin), strict=True):
        q.grad = p.grad
    optimizer.step()
    twin.step()
    stored = missed = 0
    for p, q, (old, terms) in zip(everyone(optimizer), everyone(twin), before, strict=True):
        mine, other = optimizer.state.get(p, {}), twin.state.get(q, {})
        assert list(mine) == list(other)
        if not mine:
            continue
        terms = terms + old.abs() + numbers(mine) + (0 if p.grad is None else p.grad.abs())
        same = torch.ones(p.shape, dtype=torch.bool)
        for name, scales in storage.SCALES.items():
            (a, b), pair = (x[name] for x in (mine, other)), (mine.get(scales), other.get(scales))
            apart = (in_quanta(a) - in_quanta(b)).abs()
            difference = (storage.decode(a, pair[0]) - storage.decode(b, pair[1])).abs()
            assert ((apart <= 1) | (difference <= LAST_BIT * terms)).all(), name
            same &= apart == 0
            stored, missed = stored + apart.numel(), missed + int(apart.count_nonzero())
            if pair[0] is not None:
                torch.testing.assert_close(*pair, rtol=1e-5, atol=0.0)
        assert mine["step"] == other["step"]
        if "pending" in mine:
            torch.testing.assert_close(mine["pending"], other["pending"], rtol=1e-3, atol=1e-6)
        step = (p - old).abs().double()
        slack = 1e-3 * step + 2 * torch.finfo(p.dtype).eps * (p.abs() + step)
        assert ((p.double() - q.double()).abs() <= slack)[same].all(), "theta"
    assert missed <= MISSES * stored + 1
    for group, other in zip(optimizer.param_groups, twin.param_groups, strict=True):
        torch.testing.assert_close(group["scalars"], other["scalars"], rtol=1e-3, atol=1e-6)


def numbers(state: dict[str, Tensor] | None) -> Any:
    """|m_hat| + |v|, or more."""
    if not state:
        return 0.0
    m, v = (storage.decode(state[k], state.get(storage.SCALES[k])) for k in ("exp_avg", "hidden"))
    return 10 * m.abs() + v.abs()


def in_quanta(x: Tensor) -> Tensor:
    """Stored numbers as integers, neighbours one apart."""
    if x.dtype != torch.bfloat16:
        return x.int()
    bits = x.view(torch.int16).int()
    return torch.where(bits < 0, -(bits & 0x7FFF), bits)


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "coupled": {"weight_decay": 0.1, "weight_decay_mode": "coupled", "maximize": True},
    "adam": {"preconditioner": "adam", "bounds": (-1.0, 1.0), "max_grad_norm": 3.0},
}
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def low_bit_cases() -> Iterator[Any]:
    """Every dtype with every state and step, each in one variant; and slowly, in all of them."""
    for case in itertools.product(FLOATS, ["bfloat16", "int8"], STEPS, VARIANTS):
        dtype, state_dtype, hidden_step, variant = case
        place = FLOATS.index(dtype) + STEPS.index(hidden_step) + 2 * (state_dtype == "int8")
        fast = list(VARIANTS)[place % len(VARIANTS)] == variant
        yield pytest.param(*case, marks=[] if fast else pytest.mark.slow)


@pytest.mark.parametrize(
    ("dtype", "state_dtype", "hidden_step", "variant"), list(low_bit_cases()), ids=str
)
def test_low_bit_state_is_that_of_the_readable_kernel(
    dtype: torch.dtype, state_dtype: Any, hidden_step: Any, variant: str
) -> None:
    options = dict(VARIANTS[variant])
    if hidden_step == "late" and dtype != torch.float32:
        # The readable kernel keeps theta in half precision between the two parts of a step.
        options.pop("weight_decay_mode", None)
    shapes = [(5000,), (257,), (3, 341), (255,), (1,), (), (0,)]
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    params[2].data = params[2].data.t().contiguous().t()
    image = parameter(2, 3, 20, 9, dtype=dtype, seed=9).detach()
    params.append(nn.Parameter(image.to(memory_format=torch.channels_last)))
    optimizer = HVAdam(
        [{"params": params[:3]}, {"params": params[3:], "lr": 3e-3, "betas": (0.8, 0.99)}],
        **{"lr": 1e-2, "betas": (0.9, 0.99), "hidden_gain": "linear", **options},
        state_dtype=state_dtype,
        hidden_step=hidden_step,
        rounding_seed=2**32 - 5,
        kernel="native",
    )
    for step in range(4):
        set_grads(params, step)
        for i in {step % 4, step % 3 + 4}:
            params[i].grad = None
        for i in (2, 7):  # laid out like their parameters
            if params[i].grad is not None:
                params[i].grad = torch.empty_like(params[i]).copy_(params[i].grad)  # pyright: ignore[reportArgumentType]
        forced_step(optimizer)


# Pointers: every step looks at the tensors anew


class Model(nn.Module):
    """Parameters of a few shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.image = parameter(8, 3, 5, 5, seed=1)
        self.table = parameter(40, 30, seed=2)
        self.bias = parameter(301, seed=3)


def other_data(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [p.data for p in model.parameters()]
    for p in model.parameters():
        p.data = p.data.clone()
    return left


def view_of_larger_data(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.bias.data]
    around = torch.randn(400)
    around[50:351] = model.bias.data
    model.bias.data = around[50:351]
    return [*left, around[:50], around[351:]]


def other_layout(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.table.data, model.image.data]
    model.table.data = model.table.data.t().contiguous().t()
    model.image.data = model.image.data.to(memory_format=torch.channels_last)
    return left


def there_and_back(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [p.data for p in model.parameters()]
    model.to(torch.float64)
    left += [p.data for p in model.parameters()]
    model.to(torch.float32)
    return left


def channels_last(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.image.data]
    model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return left


def shared_memory(model: Model, optimizer: HVAdam) -> list[Tensor]:
    model.share_memory()  # the same tensors, their memory elsewhere
    return []


def resized(model: Model, optimizer: HVAdam) -> list[Tensor]:
    for p in (model.bias, model.table):
        del optimizer.state[p]
        p.grad = None
        p.requires_grad_(False).resize_(3 * p.shape[0] + 1, *p.shape[1:]).normal_()
        p.requires_grad_(True)
    return []


def other_state(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left: list[Tensor] = []
    for p in model.parameters():
        for key, tensor in optimizer.state[p].items():
            left.append(tensor)
            optimizer.state[p][key] = tensor.clone()
    return left


def state_of_another_layout(model: Model, optimizer: HVAdam) -> list[Tensor]:
    state, left = optimizer.state[model.table], []
    for key in ("exp_avg", "hidden", "exp_avg_var"):
        left.append(state[key])
        state[key] = state[key].t().contiguous().t()
    return left


def loaded_state(model: Model, optimizer: HVAdam) -> list[Tensor]:
    saved = copy.deepcopy(optimizer.state_dict())
    left = [x for p in model.parameters() for x in optimizer.state[p].values()]
    optimizer.load_state_dict(saved)
    return left


def copied(model: Model, optimizer: HVAdam) -> list[Tensor]:
    _, twin = copy.deepcopy((model, optimizer))
    return memory_of(twin)


def step_a_copy(model: Model, optimizer: HVAdam) -> list[Tensor]:
    twin_model, twin = copy.deepcopy((model, optimizer))
    before = [x.detach().clone() for x in memory_of(optimizer)]
    set_grads(list(twin_model.parameters()), 77)
    twin.step()
    assert_same(memory_of(optimizer), before)
    return memory_of(twin)


# What changes, and how many of the three tensors the native kernel takes afterwards. Where a
# parameter and its state are laid out in two ways, the portable kernels serve.
CHANGES: dict[Callable[[Model, HVAdam], list[Tensor]], int] = {
    other_data: 3,
    view_of_larger_data: 3,
    other_layout: 1,
    there_and_back: 3,
    channels_last: 2,
    shared_memory: 3,
    resized: 3,
    other_state: 3,
    state_of_another_layout: 2,
    loaded_state: 3,
    copied: 3,
    step_a_copy: 3,
}


@pytest.mark.parametrize(
    ("state_dtype", "hidden_step"),
    [
        ("float32", "exact"),
        ("int8", "late"),
        pytest.param("float32", "late", marks=pytest.mark.slow),
        pytest.param("bfloat16", "exact", marks=pytest.mark.slow),
        pytest.param("bfloat16", "late", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("change", "by_native"), CHANGES.items(), ids=[x.__name__ for x in CHANGES]
)
def test_a_step_works_on_the_memory_of_now(
    change: Callable[[Model, HVAdam], list[Tensor]],
    by_native: int,
    state_dtype: Any,
    hidden_step: Any,
    taken: list[list[bool]],
) -> None:
    model = Model()
    params = list(model.parameters())
    optimizer = HVAdam(
        params, kernel="native", lr=0.01, state_dtype=state_dtype, hidden_step=hidden_step
    )
    check = judged_step if state_dtype == "float32" else forced_step
    for step in range(2):
        set_grads(params, step)
        check(optimizer)
    left = change(model, optimizer)
    copies = [x.detach().clone() for x in left]
    for step in range(2, 4):
        set_grads(params, step)
        for p in params:  # laid out like its parameter
            p.grad = torch.empty_like(p).copy_(p.grad)  # pyright: ignore[reportArgumentType]
        moved = [p.detach().clone() for p in params]
        check(optimizer)
        assert sum(taken[-1]) == by_native
        assert all(bool((p != old).any()) for p, old in zip(params, moved, strict=True))
    assert_same(left, copies)


def test_gradients_may_come_in_another_layout_at_any_step(taken: list[list[bool]]) -> None:
    model = Model()
    params = [model.image, model.table]
    optimizer = HVAdam(params, kernel="native", lr=0.01)
    for step in range(6):
        set_grads(params, step)
        grads = [p.grad for p in params]
        if step % 2:
            params[0].grad = params[0].grad.to(memory_format=torch.channels_last)  # pyright: ignore[reportOptionalMemberAccess]
            params[1].grad = params[1].grad.t().contiguous().t()  # pyright: ignore[reportOptionalMemberAccess]
        kept = [x.clone() for p in params for x in [p.grad] if x is not None]
        judged_step(optimizer)
        assert taken[-1] == [step % 2 == 0] * 2
        assert_same([x for p in params for x in [p.grad] if x is not None], kept)
        del grads


@pytest.mark.slow
def test_no_step_works_on_freed_memory() -> None:
    """The same under a C library that overwrites what is freed."""
    name = test_a_step_works_on_the_memory_of_now.__name__
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", name]
    done = subprocess.run(
        command,
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# Version counters: autograd sees what was written


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize("state_dtype", STATES)
def test_every_write_to_a_parameter_is_counted(state_dtype: Any, hidden_step: Any) -> None:
    params = [parameter(300), parameter(4, 5), parameter(7)]
    optimizer = HVAdam(params, kernel="native", state_dtype=state_dtype, hidden_step=hidden_step)
    for step in range(4):
        set_grads(params, step)
        params[2].grad = None
        versions = [p._version for p in params]
        grads = [(p.grad, p.grad._version) for p in params if p.grad is not None]
        optimizer.step()
        counted = [p._version - version for p, version in zip(params, versions, strict=True)]
        assert counted == [1, 1, 0]
        assert all(grad._version == version for grad, version in grads)


@pytest.mark.parametrize(
    "build",
    [
        torch.optim.Adam,
        lambda params: HVAdam(params, kernel="native"),
        lambda params: HVAdam(params, kernel="native", hidden_step="late"),
    ],
    ids=["Adam", "exact", "late"],
)
def test_a_backward_through_what_the_step_wrote_is_an_error(build: Any) -> None:
    weights = parameter(5)
    optimizer = build([weights])
    loss = weights.square().sum()
    set_grads([weights], 0)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# Odd tensors


def odd_tensors() -> dict[str, tuple[nn.Parameter, Tensor, bool]]:
    """A parameter, a gradient, and whether the native kernel takes the two."""
    generator = torch.Generator().manual_seed(6)

    def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    any_grad = parameter(6)
    any_grad.grad_dtype = None  # torch then lets a gradient have a dtype of its own
    aligned_to_bytes = torch.frombuffer(bytearray(41), dtype=torch.float32, offset=1)
    aligned_to_bytes.copy_(randn(10))
    deep = (2,) + (1,) * 15 + (3,)
    return {
        "dense": (parameter(700), randn(700), True),
        "0-dim": (parameter(), randn(), True),
        "empty": (parameter(0, 3), randn(0, 3), True),
        "complex": (parameter(9, dtype=torch.complex64), randn(9, dtype=torch.complex64), True),
        "half": (parameter(9, dtype=torch.float16), randn(9).half(), True),
        "double gradient": (any_grad, randn(6, dtype=torch.float64), True),
        "double": (parameter(6, dtype=torch.float64), randn(6, dtype=torch.float64), True),
        "16 dimensions": (parameter(*deep[1:]), randn(*deep[1:]), True),
        "17 dimensions": (parameter(*deep), randn(*deep), False),
        "every other": (nn.Parameter(randn(6, 8)[:, ::2]), randn(6, 4), False),
        "both every other": (nn.Parameter(randn(6, 8)[:, ::2]), randn(6, 8)[:, ::2], False),
        "expanded gradient": (parameter(4, 5), randn(5).expand(4, 5), False),
        "gradient of one number": (parameter(4, 5), randn().expand(4, 5), False),
        "transposed gradient": (parameter(4, 5), randn(5, 4).t(), False),
        "both transposed": (nn.Parameter(randn(5, 4).t()), randn(5, 4).t(), True),
        "negative view": (
            parameter(5),
            torch.imag(randn(5, dtype=torch.complex64).conj()),
            False,
        ),
        "dense negative view": (parameter(5), torch._neg_view(randn(5)), False),
        "aligned to bytes": (nn.Parameter(aligned_to_bytes), randn(10), False),
        "large, transposed gradient": (parameter(70, 80), randn(80, 70).t(), False),
    }


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 1.0}, {"hidden_step": "late"}], ids=str)
def test_odd_tensors_join_the_same_step(options: dict[str, Any], taken: list[list[bool]]) -> None:
    """All share one hidden vector, which the judge follows."""
    odd = odd_tensors()
    assert odd["negative view"][1].is_neg()
    assert odd["aligned to bytes"][0].data_ptr() % 4
    optimizer = HVAdam([p for p, _, _ in odd.values()], kernel="native", lr=0.01, **options)
    for step in range(3):
        for p, g, _ in odd.values():
            p.grad = g if step == 0 else g.mul(1 - 0.1 * step) if g.is_neg() else g
        before = [p.detach().clone() for p, _, _ in odd.values()]
        judged_step(optimizer)
        for (p, _, _), old in zip(odd.values(), before, strict=True):
            assert p.numel() == 0 or bool((p != old).all())
        if step == 0:
            assert dict(zip(odd, taken[-1], strict=True)) == {k: x[2] for k, x in odd.items()}


def lazy_zeros(like: Tensor) -> Tensor:
    return torch._efficientzerotensor(like.shape, dtype=like.dtype)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize(
    ("dtype", "lazy"),
    [
        (torch.complex64, torch.conj),
        (torch.complex64, lambda x: torch._neg_view(x.conj())),
        (torch.float32, torch._neg_view),
        (torch.float32, lazy_zeros),
    ],
    ids=["conjugate", "negative conjugate", "negative", "zeros"],
)
def test_lazy_gradients_are_read_as_what_they_stand_for(
    dtype: torch.dtype, lazy: Callable[[Tensor], Tensor], hidden_step: Any, taken: list[list[bool]]
) -> None:
    """Their memory holds something else: the opposite sign, or nothing at all."""
    found: list[list[Tensor]] = []
    for resolve in (False, True):
        params = [parameter(40, dtype=dtype), parameter(300)]
        optimizer = HVAdam(params, kernel="native", hidden_step=hidden_step)
        for step in range(3):
            set_grads(params, step)
            assert params[0].grad is not None
            grad = lazy(params[0].grad)
            params[0].grad = grad + 0 if resolve else grad
            optimizer.step()
            assert taken[-1] == [resolve, True]
        found.append([x.detach() for x in memory_of(optimizer)])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("hidden_step", STEPS)
def test_tensors_that_wrap_others_are_left_to_torch(
    hidden_step: Any, taken: list[list[bool]]
) -> None:
    """They have no memory of their own; sharded parameters are such tensors."""
    from torch.testing._internal.two_tensor import TwoTensor

    plain = parameter(6)
    wrapped = nn.Parameter(TwoTensor(plain.detach().clone(), plain.detach().clone()))
    for kernel, p in (("loop", plain), ("native", wrapped)):
        optimizer = HVAdam([p], kernel=kernel, hidden_step=hidden_step)
        for factor in (1.0, 2.0, -0.5):
            p.grad = None
            (factor * p.square()).sum().backward()
            optimizer.step()
    assert not any(map(any, taken))
    for part in (wrapped.a, wrapped.b):  # pyright: ignore[reportAttributeAccessIssue]
        torch.testing.assert_close(part, plain.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize("state_dtype", STATES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_rate_no_move_whatever_the_gradient(
    bad: float, state_dtype: Any, hidden_step: Any
) -> None:
    params = [parameter(20), parameter(33, dtype=torch.bfloat16)]
    before = [p.detach().clone() for p in params]
    optimizer = HVAdam(
        params, lr=0.0, kernel="native", state_dtype=state_dtype, hidden_step=hidden_step
    )
    for step in range(3):
        set_grads(params, step)
        for p in params:
            assert p.grad is not None
            p.grad[::5] = bad
        optimizer.step()
    assert_same(list(params), before)


@pytest.mark.parametrize("hidden_step", STEPS)
@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_gradients_that_stop_leave_the_parameters_at_rest(
    state_dtype: Any, hidden_step: Any
) -> None:
    """Their average passes through the smallest numbers there are on its way to zero."""
    p = parameter(2**18)
    optimizer = HVAdam(
        [p], kernel="native", state_dtype=state_dtype, hidden_step=hidden_step, betas=(0.5, 0.999)
    )
    p.grad = 1e-31 * parameter(2**18, seed=1).detach()
    before = p.detach().clone()
    for _ in range(60):
        optimizer.step()
        p.grad = torch.zeros_like(p)
    assert (p - before).abs().max() < 1e-9
    state = optimizer.state[p]
    m = storage.decode(state["exp_avg"], state.get("exp_avg_scales"))
    assert m.abs().max() < 1e-36


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    ndim = draw(st.integers(0, 4))
    return {
        "shape": draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim)),
        "orders": draw(st.tuples(*[st.permutations(range(ndim))] * 2)),
        "gaps": draw(st.tuples(*[st.sampled_from([0] * 6 + [1, 2])] * 2)),
        "offsets": draw(st.tuples(*[st.integers(0, 3)] * 2)),
        "hidden_step": draw(st.sampled_from(STEPS)),
    }


def laid_out(values: Tensor, order: list[int], gap: int, offset: int) -> Tensor:
    """The values with their dimensions in that order in memory, with gaps, from an offset on."""
    sizes = [values.shape[i] for i in order]
    sizes[-1:] = [sizes[-1] + gap] if sizes else []
    count = 1
    for size in sizes:
        count *= size
    memory = torch.full((offset + count,), torch.nan)[offset:].view(sizes)
    view = memory[..., : sizes[-1] - gap] if sizes else memory
    view = view.permute(sorted(range(len(order)), key=order.__getitem__))
    return view.copy_(values)


@given(layout=layouts())
def test_drawn_layouts(layout: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(8)
    values = [torch.randn(layout["shape"], generator=generator) for _ in range(2)]
    theta, g = (
        laid_out(x, list(layout["orders"][i]), layout["gaps"][i], layout["offsets"][i])
        for i, x in enumerate(values)
    )
    p, beside = nn.Parameter(theta), parameter(10)
    p.grad, beside.grad = g, torch.ones(10)
    optimizer = HVAdam([p, beside], kernel="native", hidden_step=layout["hidden_step"])
    for _ in range(2):
        judged_step(optimizer)


# Company


def test_optimizers_may_step_at_the_same_time() -> None:
    """The interpreter's lock is let go of while the kernel works, and nothing is shared."""
    from concurrent.futures import ThreadPoolExecutor

    def train(seed: int) -> list[Tensor]:
        params = [parameter(30_001, seed=seed), parameter(257, seed=seed)]
        optimizer = HVAdam(params, kernel="native", state_dtype="int8", hidden_step="late")
        for step in range(10):
            set_grads(params, 100 * seed + step)
            optimizer.step()
        return [x.detach() for x in memory_of(optimizer)]

    alone = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train, range(4)))
    for left, right in zip(alone, together, strict=True):
        assert_same(left, right)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"state_dtype": "int8", "hidden_step": "late"},
        {"state_dtype": "bfloat16", "max_grad_norm": 1.0},
    ],
    ids=str,
)
def test_a_step_allocates_next_to_nothing(options: dict[str, Any]) -> None:
    params = [parameter(1_000_000), parameter(1000, 30)]
    optimizer = HVAdam(params, kernel="native", **options)
    set_grads(params, 0)
    optimizer.step()
    size = sum(p.numel() * p.element_size() for p in params)
    assert allocated(lambda: params[0].clone()) >= params[0].numel() * 4
    assert allocated(optimizer.step) < 0.01 * size


def allocated(work: Callable[[], Any]) -> int:
    """Bytes of torch memory taken, freed since or not."""
    gc.collect()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        work()
    return sum(max(event.self_cpu_memory_usage, 0) for event in profile.events() or ())
