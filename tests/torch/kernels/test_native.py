"""The native kernel: safe in memory, and the same bits on every core.

That it agrees with the reference is the contract suite's to show; here is what only a kernel that
works on bare pointers can get wrong.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import instructions
import pytest
import torch
from judge import judged_step
from native_twin import (
    assert_same,
    forced_step,
    memory_of,
    parameter,
    set_grads,
)
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch import storage
from hvadam.torch.kernels import native

pytestmark = pytest.mark.skipif(
    native.available() is not None, reason=f"no native kernel: {native.available()}"
)

SOURCES = Path(native.__file__).parent
DRIVER = Path(__file__).parent / "native_driver" / "driver.c"
# As in setup.py, but for -O: warnings and sanitizers are asked for case by case.
FLAGS = ["-std=c11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
FLAGS += ["-Wno-psabi"]


# The C code by itself


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Runs ``native_driver/driver.c``, which says what it looks at."""
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
def test_an_element_takes_few_instructions() -> None:
    """Unlike a time they are the same on a busy machine; other compilers may need some more."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("needs gcc and Linux on x86-64")
    try:
        found = instructions.count()
    except subprocess.CalledProcessError as error:
        if error.returncode != instructions.NOT_TRACED:
            raise
        pytest.skip("needs the right to trace a process")
    most = {("float32", "avx2"): 7, ("bfloat16", "avx2"): 12.5, ("int8", "avx2"): 20}
    most |= {("float32", "avx512"): 7, ("bfloat16", "avx512"): 5.6, ("int8", "avx512"): 10.6}
    assert found
    for case, passes in found.items():
        assert sum(passes) < most[case], case


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


@pytest.mark.parametrize("best", range(len(native.INSTRUCTION_SETS)), ids=native.INSTRUCTION_SETS)
def test_what_the_cpu_lacks_is_refused_not_pretended(
    best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wanted, name in enumerate(native.INSTRUCTION_SETS):
        monkeypatch.setenv(native.ISA, name)
        asked: list[int] = []

        def select(most: int, asked: list[int] = asked) -> int:
            asked.append(min(most, best))
            return asked[-1]

        if wanted > best:
            with pytest.raises(ValueError, match=f"the best are .*, got '{name}'"):
                native._select(select)
        else:
            assert native._select(select) == name
            assert asked[-1] == wanted  # the last word that the library heard
    monkeypatch.setenv(native.ISA, "")
    assert native._select(lambda most: min(most, best)) == native.INSTRUCTION_SETS[best]


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


@pytest.mark.parametrize(("dtype", "state_dtype"), KEPT, ids=str)
def test_the_same_bits_for_any_number_of_threads(
    dtype: torch.dtype, state_dtype: Any, set_threads: Callable[[int], None]
) -> None:
    found: list[list[Tensor]] = []
    for threads in (1, 2, 4):
        set_threads(threads)
        found.append(after_training(dtype, max_grad_norm=100.0, state_dtype=state_dtype))
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


@pytest.mark.parametrize(("dtype", "state_dtype"), KEPT, ids=str)
@pytest.mark.parametrize("wanted", range(len(native.INSTRUCTION_SETS)), ids=native.INSTRUCTION_SETS)
def test_every_instruction_set_is_held_to_the_reference(
    wanted: int,
    dtype: torch.dtype,
    state_dtype: Any,
    select: Callable[[int], int],
) -> None:
    """They need not give the same bits: only some fuse a product and a sum into one rounding."""
    if select(wanted) != wanted:
        pytest.skip("this machine has no such instructions")
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate([(5003,), (3, 7)])]
    options: Any = {"hidden_gain": "linear", "max_grad_norm": 100.0, "state_dtype": state_dtype}
    optimizer = HVAdam(params, kernel="native", **options)
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
def test_dots_of_large_tensors_keep_their_range(scale: float) -> None:
    """Squares below and above what a float can hold."""
    p = parameter(5003)
    optimizer = HVAdam([p], kernel="native", betas=(0.7, 0.9))
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


# Company


def test_optimizers_may_step_at_the_same_time() -> None:
    """The interpreter's lock is let go of while the kernel works, and nothing is shared."""
    from concurrent.futures import ThreadPoolExecutor

    def train(seed: int) -> list[Tensor]:
        params = [parameter(30_001, seed=seed), parameter(257, seed=seed)]
        optimizer = HVAdam(params, kernel="native", state_dtype="int8")
        for step in range(10):
            set_grads(params, 100 * seed + step)
            optimizer.step()
        return [x.detach() for x in memory_of(optimizer)]

    alone = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train, range(4)))
    for left, right in zip(alone, together, strict=True):
        assert_same(left, right)


# The native kernel's low-bit state, held to the readable kernel.


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "coupled": {"weight_decay": 0.1, "weight_decay_mode": "coupled", "maximize": True},
    "adam": {"preconditioner": "adam", "bounds": (-1.0, 1.0), "max_grad_norm": 3.0},
}
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def low_bit_cases() -> Iterator[Any]:
    """Every dtype with every state, each in two variants; and slowly, in all of them."""
    for case in itertools.product(FLOATS, ["bfloat16", "int8"], VARIANTS):
        dtype, state_dtype, variant = case
        place = FLOATS.index(dtype) + 2 * (state_dtype == "int8")
        fast = (list(VARIANTS).index(variant) - place) % len(VARIANTS) < 2
        yield pytest.param(*case, marks=[] if fast else pytest.mark.slow)


@pytest.mark.parametrize(("dtype", "state_dtype", "variant"), list(low_bit_cases()), ids=str)
def test_low_bit_state_is_that_of_the_readable_kernel(
    dtype: torch.dtype, state_dtype: Any, variant: str
) -> None:
    shapes = [(5000,), (257,), (3, 341), (255,), (1,), (), (0,)]
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    params[2].data = params[2].data.t().contiguous().t()
    image = parameter(2, 3, 20, 9, dtype=dtype, seed=9).detach()
    params.append(nn.Parameter(image.to(memory_format=torch.channels_last)))
    optimizer = HVAdam(
        [{"params": params[:3]}, {"params": params[3:], "lr": 3e-3, "betas": (0.8, 0.99)}],
        **{"lr": 1e-2, "betas": (0.9, 0.99), "hidden_gain": "linear", **VARIANTS[variant]},
        state_dtype=state_dtype,
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


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_gradients_that_stop_leave_the_parameters_at_rest(state_dtype: Any) -> None:
    """Their average passes through the smallest numbers there are on its way to zero."""
    p = parameter(2**18)
    optimizer = HVAdam([p], kernel="native", state_dtype=state_dtype, betas=(0.5, 0.999))
    p.grad = 1e-31 * parameter(2**18, seed=1).detach()
    before = p.detach().clone()
    for _ in range(60):
        optimizer.step()
        p.grad = torch.zeros_like(p)
    assert (p - before).abs().max() < 1e-9
    state = optimizer.state[p]
    m = storage.decode(state["exp_avg"], state.get("exp_avg_scales"))
    assert m.abs().max() < 1e-36
