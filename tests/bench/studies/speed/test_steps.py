"""The benchmark's arithmetic, pairing and honesty. No test looks at a real time."""

import dataclasses
import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from made_timings import TINY, FakeTime
from torch.optim import SGD, Adam

from hvadam import HVAdam
from hvadam.torch.kernels import native
from hvadam_bench.studies._pairs import MOST_STEPS, WARM_UP
from hvadam_bench.studies.speed import steps
from hvadam_bench.studies.speed.contenders import (
    ADAM,
    CONTENDERS,
    EXACT,
    FEW,
    MANY,
    REFERENCE,
    TRAINED,
    Contender,
)
from hvadam_bench.studies.speed.plan import GROWING, SHAPES, Plan
from hvadam_bench.studies.speed.steps import bandwidth, benchmark, fit

ONCE = Plan("speed", (TINY,), rounds=1, group_seconds=0.0)


@pytest.fixture(autouse=True)
def quick_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"copy": [10.0], "add": [11.0, 12.0]}
    monkeypatch.setattr(steps, "bandwidth", lambda elements: rates)


def timed(contenders: Sequence[Contender], plan: Plan = ONCE, **named: Any) -> dict[str, Any]:
    """Return what is found on the one shape."""
    [shape] = benchmark(plan, contenders=contenders, **named)["shapes"]
    return shape


# Shapes


def test_resnet50_has_its_tensors_and_parameters() -> None:
    shape = SHAPES["resnet50"]
    assert (len(shape.sizes), shape.parameters) == (161, 25_557_032)
    assert shape.sizes[0] == (64, 3, 7, 7)
    assert Counter(map(len, shape.sizes)) == {4: 53, 1: 107, 2: 1}


def test_lstm_is_that_of_torch() -> None:
    network = torch.nn.ModuleList(
        [torch.nn.Embedding(10_000, 200), torch.nn.LSTM(200, 200, 2), torch.nn.Linear(200, 10_000)]
    )
    assert SHAPES["lstm"].sizes == tuple(tuple(p.shape) for p in network.parameters())
    assert SHAPES["lstm"].parameters == 4_653_200


def test_the_other_shapes() -> None:
    assert SHAPES["single"].sizes == ((25_000_000,),)
    assert SHAPES["small"].sizes == ((64,),) * 2000
    assert SHAPES["huge"].parameters == pytest.approx(89.5e6, rel=1e-3)
    assert 12 * SHAPES["huge"].parameters == pytest.approx(2**30, rel=1e-6)
    assert [shape.parameters for shape in GROWING[:5]][::4] == [10**6, 10**8]
    assert {shape.parameters for shape in GROWING[5:]} == {4_000_000}
    assert [len(shape.sizes) for shape in GROWING[5:]] == [1, 10, 100, 1000, 10_000]


# Contenders


def test_names_are_unique_and_fused_adam_is_among_them() -> None:
    assert len({contender.name for contender in CONTENDERS}) == len(CONTENDERS)
    assert REFERENCE in CONTENDERS


def test_streams_give_the_bytes_that_must_move() -> None:
    assert ADAM.bytes(state_bytes=8) == 7 * 4
    assert EXACT.bytes(state_bytes=12) == 12 * 4
    assert EXACT.bytes(state_bytes=6) == 3 * 4 + 9 * 2  # bfloat16


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"  # torch's own, compiling
)
@pytest.mark.parametrize(
    "contender",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] * bool(one.compiled))
        for one in CONTENDERS
    ],
)
def test_every_contender_runs_or_says_why_not(
    contender: Contender, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = timed([contender])
    assert len(measured["results"]) + len(measured["skipped"]) == 1
    assert all(skip["reason"] for skip in measured["skipped"])
    for row in measured["results"]:
        if contender.portable:
            assert "native" not in row["kernels"]
        elif contender.compiled:
            assert row["kernels"] == []
        elif contender.optimizer is HVAdam:
            assert row["kernels"] == [contender.options["kernel"]]
    assert capsys.readouterr() == ("", "")


def test_options_can_be_written_down() -> None:
    for contender in CONTENDERS:
        assert json.loads(json.dumps(contender.options)).keys() == contender.options.keys()


def test_what_would_take_too_long_to_compile_is_skipped() -> None:
    [compiled] = [c for c in CONTENDERS if c.compiled]
    with pytest.raises(ValueError, match="take many minutes to compile"):
        compiled.build([torch.zeros(1)] * 21)


def test_a_missing_package_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adabelief_pytorch", None)
    [contender] = [c for c in CONTENDERS if c.name == "AdaBelief adabelief-pytorch"]
    reason = "adabelief-pytorch is not installed: pip install 'hvadam[peers]'"
    assert timed([contender])["skipped"] == [{"contender": contender.name, "reason": reason}]


@pytest.mark.parametrize("error", [TypeError, ValueError, RuntimeError, ImportError])
@pytest.mark.parametrize("where", ["constructor", "step"])
def test_who_refuses_is_skipped_with_the_reason_and_the_others_run(
    error: type[Exception], where: str
) -> None:
    def refuse() -> None:
        raise error("cannot\n  run here")

    def build(params: object) -> Any:
        return refuse() if where == "constructor" else SimpleNamespace(step=refuse, state={})

    progress: list[float] = []
    measured = timed(
        [Contender("refuser", build, {}, ADAM), REFERENCE],
        on_progress=lambda doing, share: progress.append(share),
    )
    assert measured["skipped"] == [{"contender": "refuser", "reason": "cannot run here"}]
    assert [row["contender"] for row in measured["results"]] == [REFERENCE.name]
    assert sum(progress) == pytest.approx(1.0)


def test_a_kernel_that_was_not_used_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "kernels_of", lambda step: ["loop", "native"])
    contender = Contender("claims", HVAdam, {"kernel": "foreach"}, EXACT)
    [skip] = timed([contender])["skipped"]
    assert skip["reason"] == "its tensors went to another kernel: loop, native."


# Timing


def test_every_group_stands_next_to_one_of_the_reference_and_they_take_turns() -> None:
    time = FakeTime()
    plan = dataclasses.replace(ONCE, rounds=2, group_seconds=2.5)
    rivals = [time.contender("a", 2.0), time.contender("b", 5.0)]
    timed(rivals, plan, reference=time.contender("r", 1.0), clock=time)
    prepared = [*"rrr" + "r", *"aaa" + "a", *"bbb" + "b"]  # warm-up, then one look
    first = ["r"] * 3 + ["a"] * 2 + ["r"] * 3 + ["b"]
    second = ["a"] * 2 + ["r"] * 3 + ["b"] + ["r"] * 3
    assert time.names == prepared + first + second


def test_a_machine_that_slows_down_moves_the_times_and_not_the_ratios() -> None:
    time = FakeTime()

    def slow_down(doing: str, share: float) -> None:
        if "round" in doing:
            time.pace *= 2

    measured = timed(
        [time.contender("a", 3.0)],
        dataclasses.replace(ONCE, rounds=4, group_seconds=10.0),
        reference=time.contender("r", 2.0),
        clock=time,
        on_progress=slow_down,
    )
    [row] = measured["results"]
    assert row["seconds"] == [6.0, 12.0, 24.0, 48.0]
    assert row["reference_seconds"] == [4.0, 8.0, 16.0, 32.0]
    assert row["ratio"] == {"q1": 1.5, "median": 1.5, "q3": 1.5}
    assert row["milliseconds"] == 18e3
    assert (row["steps"], row["reference_steps"]) == (4, 5)


def test_what_happens_between_steps_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime()

    def waste(trial: steps.Trial) -> None:
        time.now += 100.0

    monkeypatch.setattr(steps.Trial, "_change_gradients", waste)
    rival, reference = time.contender("a", 3.0), time.contender("r", 2.0)
    measured = timed([rival], reference=reference, clock=time)
    assert measured["results"][0]["ratio"]["median"] == 1.5


def test_a_step_too_short_to_be_timed_does_not_go_on_forever() -> None:
    time = FakeTime()
    trial = steps.Trial(time.contender("a", 0.0), TINY, plan=Plan("speed"), clock=time)
    assert trial.facts["steps"] == MOST_STEPS


def test_contenders_start_alike_on_tensors_of_their_own_and_gradients_change() -> None:
    seen: dict[str, list[torch.Tensor]] = {"a": [], "b": []}

    def spy(name: str) -> Contender:
        def build(params: list[torch.Tensor]) -> Any:
            seen[name].append(params[0])
            inner = SGD(params, lr=0.1)

            def step() -> None:
                gradient = params[0].grad
                assert gradient is not None
                seen[name].append(gradient)
                inner.step()

            return SimpleNamespace(step=step, state=inner.state)

        return Contender(name, build, {}, ADAM)

    timed([spy("a"), spy("b")])
    for own, other in zip(seen["a"], seen["b"], strict=True):
        assert own.data_ptr() != other.data_ptr()
        assert torch.equal(own, other)
    assert len(seen["a"]) == 1 + WARM_UP + 1 + 1
    assert not torch.equal(seen["a"][1], seen["a"][2])


def test_garbage_is_not_collected_while_the_clock_runs() -> None:
    def build(params: object) -> Any:
        def step() -> None:
            states.append(gc.isenabled())

        return SimpleNamespace(step=step, state={})

    states: list[bool] = []
    contender = Contender("a", build, {}, ADAM)
    trial = steps.Trial(contender, TINY, plan=ONCE, clock=FakeTime())
    states.clear()
    trial.run(2)
    assert states == [False] * 2
    assert gc.isenabled()


def test_gradients_are_clipped_before_the_step() -> None:
    norms: list[float] = []

    def build(params: list[torch.Tensor]) -> Any:
        def step() -> None:
            grads = [p.grad.flatten() for p in params if p.grad is not None]
            norms.append(torch.cat(grads).norm().item())

        return SimpleNamespace(step=step, state={})

    timed([Contender("a", build, {}, ADAM, clip=1e-3)])
    assert norms == pytest.approx([1e-3] * len(norms), rel=1e-2)


def test_as_many_as_fit_the_memory_are_timed_at_once() -> None:
    shape = SHAPES["single"]
    one = steps.TRIAL_BYTES * shape.parameters
    assert [fit(shape, memory) for memory in (3.5 * one, 10 * one, 0)] == [2, 9, 1]


def test_those_that_do_not_fit_together_are_timed_in_turn_and_freed() -> None:
    time = FakeTime()
    rivals = [time.contender("a", 2.0), time.contender("b", 5.0)]
    plan = dataclasses.replace(ONCE, memory=0)
    timed(rivals, plan, reference=time.contender("r", 1.0), clock=time)
    assert time.names == ["r"] * 4 + ["a"] * 4 + ["r", "a"] + ["b"] * 4 + ["r", "b"]


# Several numbers of threads

THREADS = Plan("speed-threads", (TINY,), (1, 2, 4), rounds=3, group_seconds=0.0)


def test_ratios_are_to_the_reference_with_as_many_threads() -> None:
    time = FakeTime()
    rivals = [time.contender("even", 0.0, 8.0), time.contender("uneven", 4.0, 8.0)]
    found = timed(rivals, THREADS, reference=time.contender("Adam", 0.0, 4.0), clock=time)
    rows = {(row["contender"], row["threads"]): row for row in found["results"]}
    assert [rows["even", n]["ratio"]["median"] for n in (1, 2, 4)] == [2.0, 2.0, 2.0]
    assert [rows["uneven", n]["ratio"]["median"] for n in (1, 2, 4)] == [3.0, 4.0, 6.0]
    assert rows["uneven", 2]["milliseconds"] == 8000.0
    assert len(rows["uneven", 2]["seconds"]) == 3


def test_every_group_is_woken_and_takes_turns_in_being_first() -> None:
    time = FakeTime()
    before = torch.get_num_threads()
    plan = dataclasses.replace(THREADS, rounds=2, threads=(1, 2))
    timed([time.contender("ours", 8.0)], plan, reference=time.contender("Adam", 4.0), clock=time)
    assert torch.get_num_threads() == before
    # Two rounds, two numbers, two contenders, one step to wake and one that counts.
    first = [*[("Adam", 1)] * 2, *[("ours", 1)] * 2, *[("Adam", 2)] * 2, *[("ours", 2)] * 2]
    second = [*[("ours", 1)] * 2, *[("Adam", 1)] * 2, *[("ours", 2)] * 2, *[("Adam", 2)] * 2]
    assert time.steps[-16:] == first + second


@pytest.mark.parametrize("plan", [THREADS, dataclasses.replace(ONCE, what="growth")])
def test_who_is_timed_is_the_native_kernel_in_all_its_kinds_and_the_noise(plan: Plan) -> None:
    [*ours, noise] = benchmark(plan)["contenders"].items()
    assert [own["options"]["kernel"] for _, own in ours] == ["native"] * 3
    assert [name for name, _ in ours] == [one.name for one in TRAINED]
    assert noise[0] == REFERENCE.name


@pytest.mark.parametrize("many", [False, True])
def test_so_many_tensors_are_compiled(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def spy(fields: Any, *_: Any) -> list[Any]:
        given.extend(one.args[0].compiled for one in fields[0].makers.values())
        return []

    monkeypatch.setattr(steps, "race_all", spy)
    benchmark(dataclasses.replace(ONCE, compile_many=many))
    assert len(given) == len(CONTENDERS)
    assert set(given) == {0, MANY if many else FEW}


# Memory


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda params: Adam(params, fused=True), 8),
        (lambda params: HVAdam(params, kernel="loop"), 12),
        (lambda params: HVAdam(params, state_dtype="bfloat16"), 6),
        (lambda params: SGD(params, lr=0.1), 0),
    ],
    ids=["Adam", "HVAdam", "HVAdam bfloat16", "SGD"],
)
def test_state_bytes_per_parameter(build: Callable[..., Any], expected: int) -> None:
    parameter = torch.nn.Parameter(torch.ones(10, 50))
    parameter.grad = torch.ones(10, 50)
    optimizer = build([parameter])
    assert steps.state_bytes(optimizer) == 0
    optimizer.step()
    assert steps.state_bytes(optimizer) == expected * 500


def test_temporaries_are_what_is_held_at_once() -> None:
    kept: list[torch.Tensor] = [torch.empty(10_000)]

    def together() -> None:
        kept.clear()  # what was there before is not given back
        first, second = torch.empty(1000), torch.empty(500)
        del first, second

    def in_turn() -> None:
        for count in (1000, 500):
            torch.empty(count)

    assert steps.temporary_bytes(together) == 4 * 1500
    assert steps.temporary_bytes(in_turn) == 4 * 1000
    assert steps.temporary_bytes(lambda: None) == 0


def temporaries_of(kernel: Any) -> float:
    parameter = torch.nn.Parameter(torch.ones(200_000))
    parameter.grad = torch.ones(200_000)
    optimizer = HVAdam([parameter], kernel=kernel)
    optimizer.step()
    return steps.temporary_bytes(optimizer.step) / parameter.numel()


def test_portable_kernels_need_temporaries() -> None:
    assert temporaries_of("loop") > 4
    assert temporaries_of("foreach") > 4


@pytest.mark.skipif(native.available() is not None, reason="no native kernel here")
def test_the_native_kernel_needs_none() -> None:
    assert temporaries_of("native") == pytest.approx(0, abs=0.01)  # a few scalars


def test_bandwidth_counts_what_is_read_and_written() -> None:
    ticks = iter(range(100))
    rates = bandwidth(1000, repeats=2, clock=lambda: float(next(ticks)))
    assert rates == {
        "copy": [8e-6] * 2,
        "scale in place": [8e-6] * 2,
        "add in place": [12e-6] * 2,
    }


# All of it

CHOSEN = (
    Contender("HVAdam loop", HVAdam, {"kernel": "loop", "betas": (0.9, 0.99)}, EXACT),
    REFERENCE,
    Contender("HVAdam odd", HVAdam, {"kernel": "odd"}, EXACT),
)


def test_the_benchmark_holds_every_number_and_what_it_was_made_with() -> None:
    other = dataclasses.replace(TINY, name="other", title="the others")
    plan = Plan("speed", (TINY, other), rounds=2, group_seconds=0.0)
    found = benchmark(plan, contenders=CHOSEN)
    assert found["bandwidth_gb_per_second"] == {"copy": [10.0], "add": [11.0, 12.0]}
    assert list(found["contenders"]) == [contender.name for contender in CHOSEN]
    assert found["contenders"]["HVAdam odd"]["options"] == {"kernel": "odd"}
    assert [one["name"] for one in found["shapes"]] == ["tiny", "other"]
    for one in found["shapes"]:
        assert (one["tensors"], one["parameters"]) == (2, 307)
        assert [row["contender"] for row in one["results"]] == ["HVAdam loop", "Adam fused"]
        [skip] = one["skipped"]
        assert skip["contender"] == "HVAdam odd"
        assert "'odd'" in skip["reason"]
        for row in one["results"]:
            assert len(row["seconds"]) == len(row["reference_seconds"]) == 2
            assert all(a <= b for a, b in pairwise(row["ratio"].values()))
        hvadam, adam = one["results"]
        assert (hvadam["state_bytes"], adam["state_bytes"]) == (12 * 307, 8 * 307)
        assert hvadam["temporary_bytes"] > 4 * 307
        assert (hvadam["limit"], adam["limit"]) == (pytest.approx(12 / 7), 1)
        assert (hvadam["kernels"], adam["kernels"]) == (["loop"], [])


def test_all_the_work_is_reported_even_if_some_are_skipped() -> None:
    told: list[tuple[str, float]] = []
    contenders = [REFERENCE, Contender("odd", HVAdam, {"kernel": "odd"}, EXACT)]
    timed(contenders, on_progress=lambda *what: told.append(what))
    assert sum(share for _, share in told) == pytest.approx(1)
    assert told[0] == ("measuring the memory bandwidth", 0.0)
    assert "tiny: preparing odd" in [doing for doing, _ in told]
