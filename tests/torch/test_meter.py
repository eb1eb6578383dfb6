"""The gradient meter: what it reads, that it changes nothing, and what it says of bad input."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from hvadam import GradientMeter, HVAdam

OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.05, momentum=0.9),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01),
    "hvadam": lambda params: HVAdam(params, lr=0.01),
}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(32, 8, generator=generator), torch.randn(32, 1, generator=generator))
        for _ in range(count)
    ]


def valley(meter: GradientMeter, w: Tensor, across: float, noise: float, steps: int) -> None:
    """Feed a slope, a zigzag of a known share, and noise of a known one."""
    generator = torch.Generator().manual_seed(2)
    slope, wall = torch.randn(2, w.numel(), generator=generator)
    for i in range(steps):
        blur = noise * torch.randn(w.numel(), generator=generator)
        w.grad = slope + across * (-1) ** i * wall + blur
        meter.update()


@pytest.mark.parametrize("across", [0.1, 0.5, 1.0, 2.0])
def test_a_known_zigzag_has_the_share_that_algebra_gives_it(across: float) -> None:
    w = nn.Parameter(torch.zeros(4000))
    meter = GradientMeter([w])
    valley(meter, w, across, 0.0, 200)
    read = meter.read()
    assert read["zigzag_average"] == pytest.approx(across**2 / (1 + across**2), abs=0.03)
    assert read["trend_average"] == pytest.approx(1 / (1 + across**2), abs=0.03)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_noise_is_in_the_rest(noise: float) -> None:
    """The momentum keeps (1-β)/(1+β) of the noise's square, and as much of the zigzag's root."""
    w, across = nn.Parameter(torch.zeros(20_000)), 1.0
    meter = GradientMeter([w])
    valley(meter, w, across, noise, 300)
    kept = (1 - 0.9) / (1 + 0.9)
    wall, blur = (kept * across) ** 2, kept * noise**2  # of z's square
    share = across**2 / (1 + across**2 + noise**2) * wall / (wall + blur)
    assert meter.read()["zigzag_average"] == pytest.approx(share, rel=0.3, abs=0.003)
    assert meter.read()["rest_average"] > noise**2 / (1 + across**2 + noise**2) - 0.02


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_bit_for_bit(name: str, every: int) -> None:
    plain, watched = network(), network()
    optimizers = [OPTIMIZERS[name](model.parameters()) for model in (plain, watched)]
    meter = GradientMeter(watched.parameters(), every=every)
    handle = meter.attach(optimizers[1])
    for x, y in batches(30):
        for model, optimizer in zip((plain, watched), optimizers, strict=True):
            optimizer.zero_grad()
            mse_loss(model(x), y).backward()
            optimizer.step()
    for p, q in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(p, q)
        assert p.grad is not None
        assert q.grad is not None
        assert torch.equal(p.grad, q.grad)
    assert meter.read()["readings"] == math.ceil(30 / every) - 1
    handle.remove()


def test_its_vector_is_the_hidden_vector_of_hvadam() -> None:
    """An update moves v as the step before it did; then the gradient enters m."""
    model = network().double()
    optimizer = HVAdam(model.parameters(), lr=0.01)
    meter = GradientMeter(model.parameters(), state_dtype=torch.float64)
    for i, (x, y) in enumerate(batches(20)):
        optimizer.zero_grad()
        mse_loss(model(x.double()), y.double()).backward()
        meter.update()
        theirs = optimizer.diagnostics()["global"] if i else {}
        hidden = [optimizer.state[p]["hidden"].clone() for p in model.parameters() if i]
        optimizer.step()
        for name in ("alignment", "alignment_ema", "restarts") if i else ():
            assert meter.read()[name] == pytest.approx(theirs[name], abs=1e-9), name
        kept = meter.state_dict()["tensors"]
        for j, v in enumerate(hidden):
            m, z, steps = kept[j]
            torch.testing.assert_close((m / (1 - 0.9**steps) - z).view_as(v), v)


@pytest.mark.parametrize("kernel", ["auto", "loop", "foreach"])
@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.01, "maximize": True}], ids=str)
def test_diagnostics_have_the_same_shares(kernel: Any, options: dict[str, Any]) -> None:
    """Without a state of their own: what the step sums tells <g,v> and <g,m>."""
    model = network().double()
    groups = [{"params": [p]} for p in model.parameters()]
    optimizer = HVAdam(groups, lr=0.01, kernel=kernel, **options)
    meter = GradientMeter(model.parameters(), state_dtype=torch.float64)
    for i, (x, y) in enumerate(batches(20)):
        optimizer.zero_grad()
        mse_loss(model(x.double()), y.double()).backward()
        grads = {p: p.grad for p in model.parameters() if p.grad is not None}
        if options:  # what the optimizer sees
            norm = float(torch.nn.utils.get_total_norm(list(grads.values())))
            for p, grad in grads.items():
                p.grad = -min(1.0, 0.01 / (norm + 1e-6)) * grad
        meter.update()
        for p, grad in grads.items():
            p.grad = grad
        optimizer.step()
        ours, theirs = optimizer.diagnostics()["global"], meter.read()
        for name in ("trend", "zigzag", "rest") if i else ():
            assert ours[name] == pytest.approx(theirs[name], abs=1e-7), (i, name)
    assert theirs["zigzag_average"] > 1e-3


def test_diagnostics_know_no_shares_without_the_gradients_of_the_step() -> None:
    model = network()
    optimizer = HVAdam(model.parameters(), lr=0.01)

    def backward() -> None:
        mse_loss(model(torch.ones(4, 8)), torch.zeros(4, 1)).backward()

    def known() -> bool:
        return "trend" in optimizer.diagnostics()["global"]

    for _ in range(3):
        optimizer.zero_grad()
        backward()
        optimizer.step()
    assert known()
    backward()  # accumulates: these are not the gradients of the step any more
    assert not known()
    optimizer.zero_grad()
    assert not known()
    backward()
    assert not known()
    optimizer.step()
    assert known()
    next(model.parameters()).grad = None  # one misses a gradient
    optimizer.step()
    assert not known()


def test_it_sees_what_accumulated() -> None:
    """Two backward passes before one update are one gradient."""
    whole, parts = network(), network()
    meters = [GradientMeter(model.parameters()) for model in (whole, parts)]
    for x, y in batches(10):
        for model in (whole, parts):
            model.zero_grad()
        mse_loss(whole(x), y).backward()
        for half in (slice(0, 16), slice(16, 32)):
            (mse_loss(parts(x[half]), y[half]) / 2).backward()
        for meter in meters:
            meter.update()
    for name, value in meters[0].read().items():
        assert meters[1].read()[name] == pytest.approx(value, abs=1e-4), name


def test_a_constant_scale_changes_no_share() -> None:
    w, scaled = (nn.Parameter(torch.zeros(500)) for _ in range(2))
    meters = GradientMeter([w]), GradientMeter([scaled])
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        w.grad = torch.randn(500, generator=generator) + 0.2
        scaled.grad = 1024 * w.grad
        for meter in meters:
            meter.update()
    for name in ("trend", "zigzag", "rest", "trend_average", "zigzag_average"):
        assert meters[1].read()[name] == pytest.approx(meters[0].read()[name], abs=1e-6)


def test_bfloat16_state_reads_nearly_the_same() -> None:
    """Where there is noise as in training; rounding is noise too, of about 2% of the gradient."""
    read: list[dict[str, float]] = []
    for dtype in (torch.float32, torch.bfloat16):
        w = nn.Parameter(torch.zeros(4000))
        meter = GradientMeter([w], state_dtype=dtype)
        valley(meter, w, 1.0, 0.3, 100)
        assert all(m.dtype == z.dtype == dtype for m, z in meter._state.values())
        read.append(meter.read())
    for name in ("trend_average", "zigzag_average", "rest_average", "alignment"):
        assert read[1][name] == pytest.approx(read[0][name], abs=0.02), name


def test_large_odd_and_complex_parameters_are_read() -> None:
    """Pieces, layouts other than rows, numbers of two parts, and a scalar."""
    generator = torch.Generator().manual_seed(0)
    shapes: list[Any] = [(300_001,), (3, 4, 5, 6), (), (7,)]
    params = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    params[1].data = params[1].data.to(memory_format=torch.channels_last)
    params[3].data = params[3].data.to(torch.complex64)
    meter = GradientMeter(params)
    flat = nn.Parameter(torch.zeros(300_001 + 360 + 1 + 14))
    single = GradientMeter([flat])
    for _ in range(5):
        grads = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in params]
        for p, g in zip(params, grads, strict=True):
            p.grad = g
        grads = [torch.view_as_real(g) if g.is_complex() else g for g in grads]
        flat.grad = torch.cat([g.reshape(-1) for g in grads])
        meter.update()
        single.update()
    for name, value in single.read().items():
        assert meter.read()[name] == pytest.approx(value, abs=1e-5), name


def test_a_resumed_meter_goes_on_as_it_was() -> None:
    model, other = network(), network()
    meter = GradientMeter(model.parameters(), every=2)
    for x, y in batches(7):
        model.zero_grad()
        mse_loss(model(x), y).backward()
        meter.update()
    again = GradientMeter(other.parameters(), every=2)
    again.load_state_dict(copy.deepcopy(meter.state_dict()))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        q.grad = p.grad
    for one in (meter, again, meter, again):
        one.update()
    assert meter.read() == again.read()


def test_what_cannot_be_read_is_nan_and_has_a_reason() -> None:
    model = network()
    first, *others = model.parameters()
    meter, strict = (GradientMeter(model.parameters(), strict=x) for x in (False, True))
    meter.update()
    assert "no parameter has a gradient" in str(meter.problem)
    with pytest.raises(RuntimeError, match="GradientMeter: no parameter has a gradient"):
        strict.update()
    for x, y in batches(5):
        model.zero_grad()
        mse_loss(model(x), y).backward()
        meter.update()
    known = meter.read()
    assert meter.problem is None
    assert first.grad is not None
    first.grad[0] = math.nan
    meter.update()
    assert "not finite" in str(meter.problem)
    assert math.isnan(meter.read()["zigzag"])
    assert meter.read()["zigzag_average"] == known["zigzag_average"]
    first.grad = None  # as of a layer that is frozen now: the others are read
    meter.update()
    assert meter.problem is None
    assert math.isfinite(meter.read()["rest"])
    others[0].data = torch.zeros(3)
    others[0].grad = torch.zeros(3)
    meter.update()
    assert "changed its shape" in str(meter.problem)


@pytest.mark.parametrize(
    ("params", "options", "message"),
    [
        ([], {}, "at least one tensor"),
        (["weight"], {}, "must be tensors, got str"),
        ([torch.ones(2)] * 2, {}, "each tensor once"),
        ([torch.ones(2)], {"beta1": 1.0}, r"beta1 must be in \[0, 1\), got 1.0"),
        ([torch.ones(2)], {"every": 0}, "every must be a whole number from 1 on, got 0"),
        ([torch.ones(2)], {"state_dtype": torch.int8}, "state_dtype must be torch.float32"),
    ],
)
def test_bad_arguments_are_refused(params: Any, options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        GradientMeter(params, **options)


def test_it_is_attached_only_to_an_optimizer_of_its_parameters() -> None:
    meter = GradientMeter(network().parameters())
    with pytest.raises(ValueError, match="4 of its 4 parameters are not among"):
        meter.attach(torch.optim.SGD(network().parameters()))


def test_a_state_of_another_model_is_refused() -> None:
    w, u = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(5))
    w.grad = torch.ones(3)
    meter = GradientMeter([w])
    meter.update()
    with pytest.raises(ValueError, match="number 0 has 3 elements"):
        GradientMeter([u]).load_state_dict(meter.state_dict())
