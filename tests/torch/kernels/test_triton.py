"""The Triton kernel under Triton's interpreter: the contract of all kernels, and its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import (
    DTYPES,
    FORMS,
    OVERFLOWING,
    SPOILT,
    VARIANTS,
    parameters,
    take_overflowing_step,
    take_spoilt_step,
    train,
)
from judge import judged_step
from native_twin import forced_step
from torch import Tensor

from hvadam import HVAdam
from hvadam.torch import kernels, self_check
from hvadam.torch.kernels import Batch, Columns, Options, foreach, loop, native
from hvadam.torch.kernels import triton as kernel

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
PASSES = ("prepare", "squares", "first", "fold", "second")


@pytest.fixture(autouse=True, scope="module")
def _interpreted() -> Iterator[None]:
    """The passes are compiled or interpreted as the environment says when they are loaded."""
    names = [f"hvadam.torch.kernels.{name}" for name in ("triton_memory", "triton_passes")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        interpreter = import_module("triton.runtime.interpreter")
        # At each call of a helper it prepares the language again, which takes most of the time.
        patch.setattr(
            interpreter.InterpretedFunction,
            "__call__",
            lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs),
        )
        for name in names:
            sys.modules.pop(name, None)
        yield
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pass was launched."""
    passes = import_module("hvadam.torch.kernels.triton_passes")
    counts: Counter[str] = Counter()

    class Counted:
        def __init__(self, name: str) -> None:
            self.name, self.function = name, getattr(passes, name)

        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            counts[self.name] += 1
            return self.function[grid]

    for name in PASSES:
        monkeypatch.setattr(passes, name, Counted(name))
    return counts


def gradients(optimizer: HVAdam, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = (0.5 + torch.randn(p.shape, generator=generator)).to(p.dtype)


def contents(optimizer: HVAdam) -> Iterator[tuple[str, Tensor]]:
    for group in optimizer.param_groups:
        for p in group["params"]:
            yield "theta", p.detach()
            yield from optimizer.state[p].items()


# ---- the contract ----


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [
        ("default", torch.float32),
        ("restarts", torch.float64),
        ("tensor scope", torch.float16),
        ("clipped, maximize, coupled", torch.bfloat16),
        ("bounds", torch.float32),
    ],
    ids=str,
)
def test_agrees_with_the_reference(variant: str, dtype: torch.dtype) -> None:
    check_variant(variant, dtype, steps=5)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_agrees_with_the_reference_always(variant: str, dtype: torch.dtype) -> None:
    check_variant(variant, dtype, steps=12)


def check_variant(variant: str, dtype: torch.dtype, steps: int) -> None:
    a, b, c, d, e = parameters(dtype, (4, 3), (5,), (), (0, 2), (1,))
    optimizer = HVAdam(
        [{"params": [a, b]}, {"params": [c, d, e], "lr": 3e-3}],
        kernel="triton",
        **{"lr": 1e-2, **VARIANTS[variant]},
    )
    train(optimizer, steps)


def test_what_is_not_finite_spoils_its_own_elements() -> None:
    optimizer = HVAdam(parameters(torch.float32, (40,)), kernel="triton")
    take_spoilt_step(optimizer, *SPOILT["inf and -inf"])


@pytest.mark.parametrize("form", FORMS[::3], ids=str)
def test_a_square_that_overflows_spoils_nothing(form: dict[str, Any]) -> None:
    optimizer = HVAdam(parameters(torch.float32, (40,)), kernel="triton", **form)
    take_overflowing_step(optimizer, 2.4e25)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("dtype", "size"), OVERFLOWING, ids=str)
def test_a_square_that_overflows_spoils_nothing_ever(
    form: dict[str, Any], dtype: torch.dtype, size: float
) -> None:
    take_overflowing_step(HVAdam(parameters(dtype, (40,)), kernel="triton", **form), size)


def test_groups_of_every_sort_share_the_launches(launches: Counter[str]) -> None:
    """Options, dtypes and hidden vectors differ; each dtype and preconditioner has its launch."""
    a, b, c, d = parameters(torch.float32, (4,), (3, 2), (16,), (2, 2))
    (half,) = parameters(torch.bfloat16, (7,))
    optimizer = HVAdam(
        [
            {"params": [a], "weight_decay": 0.1},
            {"params": [b, half], "maximize": True, "betas": (0.5, 0.999)},
            {"params": [c], "preconditioner": "adam", "lr": 0.0, "bounds": (-0.1, 0.1)},
            {"params": [d], "bounds": (-0.1, 0.1), "gamma": 0.0, "hidden_scale": 0.3},
        ],
        lr=1e-2,
        scope="group",
        hidden_gain="linear",
        kernel="triton",
    )
    train(optimizer, 4)
    kinds = 4 + 4 + 3  # plain, half precision and "adam", which has no gradient at one of the steps
    assert launches == {"prepare": 4, "first": kinds, "fold": 4, "second": kinds}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"prepare": 1, "first": 1, "fold": 1, "second": 1}),
        ({"scope": "tensor"}, {"prepare": 1, "first": 1, "fold": 1, "second": 1}),
        ({"max_grad_norm": 1.0}, {"squares": 1, "prepare": 1, "first": 1, "fold": 1, "second": 1}),
    ],
    ids=["plain", "many scopes", "clipped"],
)
def test_launches_do_not_depend_on_the_number_of_tensors(
    launches: Counter[str], options: dict[str, Any], expected: dict[str, int]
) -> None:
    for count in (1, 12):
        launches.clear()
        optimizer = HVAdam(parameters(torch.float32, *[(3,)] * count), kernel="triton", **options)
        gradients(optimizer, 0)
        judged_step(optimizer)
        assert launches == expected


def test_large_tensors_and_odd_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dense and laid out alike is taken; the rest goes the portable way, at once."""
    check_layouts(monkeypatch, large=5_001, steps=2)


@pytest.mark.slow
def test_larger_tensors_and_odd_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    check_layouts(monkeypatch, large=150_001, steps=3)


def check_layouts(monkeypatch: pytest.MonkeyPatch, large: int, steps: int) -> None:
    big, wide, image, turned, strided, negated, spread, offset = parameters(
        *(torch.float32, (large,), (30, 50), (2, 3, 4, 5), (6, 8), (8, 8), (5,), (4, 2), (9,))
    )
    wide = torch.nn.Parameter(wide.detach().t())
    image = torch.nn.Parameter(image.detach().to(memory_format=torch.channels_last))
    strided = torch.nn.Parameter(strided.detach()[:, ::2])
    offset = torch.nn.Parameter(offset.detach()[1:])  # not at a multiple of 16 bytes
    params = [big, wide, image, turned, strided, negated, spread, offset]
    portable: list[int] = []
    for module in (loop, foreach):
        monkeypatch.setattr(module, "accumulate", watched(module.accumulate, portable))
    optimizer = HVAdam(params, kernel="triton")
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        grads = [torch.randn(p.shape, generator=generator) for p in params]
        grads[1] = grads[1].t().contiguous().t()
        grads[2] = grads[2].to(memory_format=torch.channels_last)
        grads[3] = grads[3].t().contiguous().t()
        grads[5] = torch._neg_view(grads[5])
        grads[6] = torch.randn((4, 1), generator=generator).expand(4, 2)
        for p, grad in zip(params, grads, strict=True):
            p.grad = grad
        portable.clear()
        judged_step(optimizer)
        assert sorted(portable) == sorted(id(p) for p in (turned, strided, negated, spread))


def watched(function: Any, seen: list[int]) -> Any:
    def call(batches: list[Batch[Any]], *args: Any) -> None:
        seen.extend(id(theta) for batch in batches for theta in batch.tensors.theta)
        function(batches, *args)

    return call


def test_empty_tensors_alone(launches: Counter[str]) -> None:
    (p,) = parameters(torch.float32, (0, 3))
    p.grad = torch.zeros_like(p)
    optimizer = HVAdam([p], kernel="triton", max_grad_norm=1.0)
    optimizer.step()
    assert optimizer.state[p]["step"] == 1
    assert launches == {"prepare": 1, "fold": 1}


def test_near_constant_gradients() -> None:
    """The cosine keeps its digits where v and m̂ nearly agree."""
    (p,) = parameters(torch.float32, (40,))
    trend = torch.randn(40, generator=torch.Generator().manual_seed(3))
    optimizer = HVAdam([p], kernel="triton", eps=1e-30)
    generator = torch.Generator().manual_seed(4)
    for _ in range(5):
        p.grad = trend + 1e-4 * torch.randn(40, generator=generator)
        judged_step(optimizer)
    assert optimizer.diagnostics()["global"]["alignment"] > 0.99


@pytest.mark.parametrize("step", [1, 1_000, 123_456, 2**24])
def test_bias_corrections_far_into_a_run(step: int) -> None:
    (p,) = parameters(torch.float64, (5,))
    optimizer = HVAdam([p], kernel="triton", betas=(0.9, 0.99999))
    gradients(optimizer, 0)
    optimizer.step()
    optimizer.state[p]["step"].fill_(step - 1)
    judged_step(optimizer)


def test_scalars_on_the_device() -> None:
    """A rate and a factor in tensors are never read by the host, and do what the numbers do."""
    results: list[list[Tensor]] = []
    for wrap in (float, lambda x: torch.tensor(x, dtype=torch.float64)):
        theta, g, m, v, s = parameters(torch.float32, *[(20,)] * 5)
        columns = Columns([theta], [g], [m], [v], [s.square()], [torch.tensor(3.0)])
        options = Options.of(HVAdam([theta], weight_decay=0.1).param_groups[0])
        options = options._replace(lr=wrap(0.02), factor=wrap(0.25), bounds=(-1.0, 1.0))
        (_, batch), *others = kernels.assign("triton", options, columns, [0])
        assert not others
        with torch.no_grad():
            dots = torch.zeros(1, 4, dtype=torch.float64)
            total = dots.new_zeros(())
            kernel.norm([batch], total)
            kernel.accumulate([batch], dots)
            mix, gain = (torch.tensor([x], dtype=torch.float64) for x in (0.7, 3.0))
            kernel.apply([batch], mix, gain)
        torch.testing.assert_close(total, g.double().square().sum())
        results.append([theta, *(column[0] for column in columns[2:6]), dots])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_autograd_hears_of_the_writes() -> None:
    optimizer = HVAdam(parameters(torch.float32, (3,)), kernel="triton")
    gradients(optimizer, 0)
    optimizer.step()
    before = [(name, x, x._version) for name, x in contents(optimizer)]
    optimizer.step()
    assert all(x._version > version for _, x, version in before)


# ---- low-bit state ----


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_low_bit_state_is_rounded_to_the_same_bits(state_dtype: Any) -> None:
    """Without averaging m is g and s is g²: equal inputs, so equal bits, whatever the values."""
    generator = torch.Generator().manual_seed(0)
    odd = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, 1e-45, -1e-38, 3e38, 1e-20])
    values = [torch.randn(1500, generator=generator), odd, 1e-40 * torch.ones(3), torch.zeros(300)]
    optimizers = [
        HVAdam(
            parameters(torch.float32, *(x.shape for x in values)),
            betas=(0.0, 0.0),
            preconditioner="adam",
            scope="tensor",
            state_dtype=state_dtype,
            rounding_seed=2**32 - 1,
            kernel=name,
        )
        for name in ("triton", "loop")
    ]
    for _ in range(2):
        for optimizer in optimizers:
            for p, x in zip(optimizer.param_groups[0]["params"], values, strict=True):
                p.grad = x.clone()
            optimizer.step()
        for (name, a), (_, b) in zip(*map(contents, optimizers), strict=True):
            if name not in ("theta", "scalars"):
                assert torch.equal(bits(a), bits(b)), name


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_low_bit_state_agrees_with_the_loop(state_dtype: Any) -> None:
    """From the same state; a rounding may fall one quantum apart where the input differs."""
    optimizer = HVAdam(
        parameters(torch.float32, (30, 50), (7,), (), (0, 2)),
        lr=1e-2,
        hidden_gain="linear",
        state_dtype=state_dtype,
        kernel="triton",
    )
    for seed in range(4):
        gradients(optimizer, seed)
        forced_step(optimizer)


def bits(x: Tensor) -> Tensor:
    """Numbers as the integers that their bits are; one NaN is as good as another."""
    if not x.is_floating_point():
        return x.int()
    integer = torch.int16 if x.dtype == torch.bfloat16 else torch.int32
    return torch.where(x.isnan(), torch.nan, x).contiguous().view(integer).int()


# ---- where it runs ----


def test_auto_never_takes_it(launches: Counter[str]) -> None:
    assert kernel.available() is None
    optimizer = HVAdam(parameters(torch.float32, (3,), (5_000,)))
    gradients(optimizer, 0)
    optimizer.step()
    assert not launches


def test_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match='kernel="triton" is not available: torch finds no CUDA'):
        HVAdam(parameters(torch.float32, (3,)), kernel="triton")
    monkeypatch.setattr(kernel, "_is_installed", lambda: False)
    assert "hvadam[triton]" in (kernel.available() or "")


def test_tensors_on_the_cpu_go_the_portable_way_beside_a_gpu(
    monkeypatch: pytest.MonkeyPatch, launches: Counter[str]
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    optimizer = HVAdam(parameters(torch.float32, (3,)), kernel="triton")
    gradients(optimizer, 0)
    judged_step(optimizer)
    assert not launches


def test_importing_hvadam_does_not_import_triton() -> None:
    code = "import sys, hvadam.torch; assert 'triton' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_compiles_for_a_gpu(tmp_path: Path) -> None:
    """No GPU is needed for that. Memory is read in 16 bytes, and nothing rounds otherwise."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("triton_compile.py"))],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    for name, counts in json.loads(run.stdout).items():
        assert counts["fused"] == counts["loose"] == 0, name
        assert (counts["wide"] > 0) == name.endswith("aligned=True"), name


# ---- chosen by itself ----


@pytest.mark.slow
def test_auto_takes_it_once_its_own_passes_have_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "available", lambda: "it was not compiled.")
    monkeypatch.setattr(kernel, "may_serve", lambda tensors: True)
    self_check.forget()
    [p] = parameters(torch.float32, (40,))
    p = torch.nn.Parameter(p)
    p.grad = torch.ones_like(p)
    optimizer = HVAdam([p])
    optimizer.step()
    assert self_check.kernels_of(optimizer) == ["triton"]
    self_check.forget()
