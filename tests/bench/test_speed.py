"""The benchmark's arithmetic, pairing, honesty and outputs. No test looks at a real time."""

import dataclasses
import gc
import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from matplotlib.lines import Line2D
from rich.console import Console
from torch.optim import SGD, Adam

from hvadam import HVAdam
from hvadam.bench import speed
from hvadam.bench.speed import charts, memory, report, timing
from hvadam.bench.speed.contenders import ADAM, CONTENDERS, EXACT, LATE, REFERENCE, Contender
from hvadam.bench.speed.shapes import BY_PARAMETERS, BY_TENSORS, SHAPES, Shape, equal_parts
from hvadam.bench.speed.timing import Growth, Measurement, Plan, Quartiles, Result, Skip
from hvadam.torch.kernels import native

TINY = Shape("tiny", "two tensors", ((30, 10), (7,)))
ONCE = Plan(rounds=1, group_seconds=0.0, temporaries=False)


class FakeTime:
    """A clock that only steps of its own optimizers move, and a list of who stepped."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = 1.0
        self.steps: list[str] = []

    def __call__(self) -> float:
        return self.now

    def contender(self, name: str, seconds: float) -> Contender:
        """One whose steps take so long."""

        def step() -> None:
            self.now += seconds * self.pace
            self.steps.append(name)

        def build(params: object) -> Any:
            return SimpleNamespace(step=step, state={})

        return Contender(name, build, {}, ADAM)


def result(contender: str, seconds: float, shape: Shape, beside: float = 1.0) -> Result:
    return Result(
        contender=contender,
        parameters=shape.parameters,
        steps=1,
        seconds=(seconds, seconds, seconds),
        reference_steps=1,
        reference_seconds=(beside, beside / 2, beside * 2),
        state_bytes=12 * shape.parameters,
        temporary_bytes=36 * shape.parameters,
        moved_bytes=48.0,
        limit=12 / 7,
        kernels=("loop",),
    )


def context(cache_bytes: int = 0) -> report.Context:
    return report.Context(Plan(), 1, {"copy": [9.0, 10.0], "scale in place": [20.0]}, cache_bytes)


def printed(what: object) -> str:
    """As a terminal of 80 columns shows it."""
    console = Console(file=io.StringIO(), width=80)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


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
    assert [shape.parameters for shape in BY_PARAMETERS][::4] == [10**6, 10**8]
    assert {shape.parameters for shape in BY_TENSORS} == {4_000_000}
    assert [len(shape.sizes) for shape in BY_TENSORS] == [1, 10, 100, 1000, 10_000]
    assert equal_parts(10, 3) == [(3,), (3,), (4,)]


# Contenders


def test_names_are_unique_and_fused_adam_is_among_them() -> None:
    assert len({contender.name for contender in CONTENDERS}) == len(CONTENDERS)
    assert REFERENCE in CONTENDERS


def test_streams_give_the_bytes_that_must_move() -> None:
    assert ADAM.bytes(state_bytes=8) == 7 * 4
    assert EXACT.bytes(state_bytes=12) == 12 * 4
    assert LATE.bytes(state_bytes=12) == 9 * 4
    assert EXACT.bytes(state_bytes=6) == 3 * 4 + 9 * 2  # bfloat16


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
def test_every_contender_runs_or_says_why_not(
    contender: Contender, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = timing.measure(TINY, [contender], ONCE)
    assert len(measured.results) + len(measured.skipped) == 1
    assert all(reason for _, reason in measured.skipped)
    for row in measured.results:
        if contender.portable:
            assert "native" not in row.kernels
        elif contender.optimizer is HVAdam:
            assert row.kernels == (contender.options["kernel"],)
    assert capsys.readouterr() == ("", "")


def test_a_missing_package_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adabelief_pytorch", None)
    [contender] = [c for c in CONTENDERS if c.name == "AdaBelief adabelief-pytorch"]
    measured = timing.measure(TINY, [contender], ONCE)
    reason = "adabelief-pytorch is not installed: pip install 'hvadam[peers]'"
    assert measured.skipped == [Skip(contender.name, reason)]


@pytest.mark.parametrize("error", [TypeError, ValueError, RuntimeError, ImportError])
@pytest.mark.parametrize("where", ["constructor", "step"])
def test_who_refuses_is_skipped_with_the_reason_and_the_others_run(
    error: type[Exception], where: str
) -> None:
    def refuse() -> None:
        raise error("cannot\n  run here")

    def build(params: object) -> Any:
        return refuse() if where == "constructor" else SimpleNamespace(step=refuse, state={})

    progress: list[int] = []
    measured = timing.measure(
        TINY,
        [Contender("refuser", build, {}, ADAM), REFERENCE],
        ONCE,
        on_progress=lambda doing, parts: progress.append(parts),
    )
    assert measured.skipped == [Skip("refuser", "cannot run here")]
    assert [row.contender for row in measured.results] == [REFERENCE.name]
    assert sum(progress) == 2 * (1 + ONCE.rounds)
    assert "skipped refuser: cannot run here" in report.notes([measured], None, context())


def test_a_kernel_that_was_not_used_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "kernels_of", lambda step: ["loop", "native"])
    contender = Contender("claims", HVAdam, {"kernel": "foreach"}, EXACT)
    [skip] = timing.measure(TINY, [contender], ONCE).skipped
    assert skip.reason == "its tensors went to another kernel: loop, native."


# Timing


def test_quartiles() -> None:
    assert Quartiles.of([5.0, 1.0, 2.0, 4.0, 3.0]) == (2.0, 3.0, 4.0)
    assert Quartiles.of([1.0, 2.0]) == (1.25, 1.5, 1.75)
    assert Quartiles.of([7.0]) == (7.0, 7.0, 7.0)


def test_every_group_stands_beside_one_of_the_reference_and_they_take_turns() -> None:
    time = FakeTime()
    plan = Plan(rounds=2, group_seconds=2.5, warm_up=3, temporaries=False)
    rivals = [time.contender("a", 2.0), time.contender("b", 5.0)]
    timing.measure(TINY, rivals, plan, reference=time.contender("r", 1.0), clock=time)
    prepared = ["r"] * 3 + (["a"] * 3 + ["a"]) + (["b"] * 3 + ["b"])  # warm-up, then one look
    first = ["r"] * 3 + ["a"] * 2 + ["r"] * 3 + ["b"]
    second = ["a"] * 2 + ["r"] * 3 + ["b"] + ["r"] * 3
    assert time.steps == prepared + first + second


def test_a_machine_that_slows_down_moves_the_times_and_not_the_ratios() -> None:
    time = FakeTime()

    def slow_down(doing: str, parts: int) -> None:
        if doing.startswith("round"):
            time.pace *= 2

    measured = timing.measure(
        TINY,
        [time.contender("a", 3.0)],
        Plan(rounds=4, group_seconds=10.0, temporaries=False),
        reference=time.contender("r", 2.0),
        clock=time,
        on_progress=slow_down,
    )
    [row] = measured.results
    assert row.seconds == (6.0, 12.0, 24.0, 48.0)
    assert row.reference_seconds == (4.0, 8.0, 16.0, 32.0)
    assert row.ratios == [1.5] * 4
    assert row.ratio == (1.5, 1.5, 1.5)
    assert row.typical_seconds == 18.0
    assert (row.steps, row.reference_steps) == (4, 5)


def test_what_happens_between_steps_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime()

    def waste(trial: timing.Trial) -> None:
        time.now += 100.0

    monkeypatch.setattr(timing.Trial, "_change_gradients", waste)
    rival, reference = time.contender("a", 3.0), time.contender("r", 2.0)
    measured = timing.measure(TINY, [rival], ONCE, reference=reference, clock=time)
    assert measured.results[0].ratios == [1.5]


def test_a_step_too_short_to_be_timed_does_not_go_on_forever() -> None:
    time = FakeTime()
    start = timing.Start(TINY)
    trial = timing.Trial(time.contender("a", 0.0), start, Plan(), time)
    assert trial.steps == timing.MOST_STEPS


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

    timing.measure(TINY, [spy("a"), spy("b")], ONCE)
    for own, other in zip(seen["a"], seen["b"], strict=True):
        assert own.data_ptr() != other.data_ptr()
        assert torch.equal(own, other)
    assert len(seen["a"]) == 1 + ONCE.warm_up + 1 + 1
    assert not torch.equal(seen["a"][1], seen["a"][2])


def test_garbage_is_not_collected_while_the_clock_runs() -> None:
    def build(params: object) -> Any:
        def step() -> None:
            states.append(gc.isenabled())

        return SimpleNamespace(step=step, state={})

    states: list[bool] = []
    trial = timing.Trial(Contender("a", build, {}, ADAM), timing.Start(TINY), Plan(), FakeTime())
    trial.run(2)
    assert states == [False] * 5
    assert gc.isenabled()


def test_gradients_are_clipped_before_the_step() -> None:
    norms: list[float] = []

    def build(params: list[torch.Tensor]) -> Any:
        def step() -> None:
            grads = [p.grad.flatten() for p in params if p.grad is not None]
            norms.append(torch.cat(grads).norm().item())

        return SimpleNamespace(step=step, state={})

    timing.measure(TINY, [Contender("a", build, {}, ADAM, clip=1e-3)], ONCE)
    assert norms == pytest.approx([1e-3] * len(norms), rel=1e-2)


def test_batches_fit_the_memory() -> None:
    shape = SHAPES["single"]
    contenders = list(CONTENDERS)[:5]

    def sizes(memory: float) -> list[int]:
        return [len(b) for b in timing.batches(contenders, shape, Plan(memory=memory))]

    one = timing.TRIAL_BYTES * shape.parameters
    fixed = one + timing.START_BYTES * shape.parameters  # what they start from, and the reference
    assert sizes(fixed + 2.5 * one) == [2, 2, 1]
    assert sizes(fixed + 9 * one) == [5]
    assert sizes(0) == [1] * 5


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
    assert memory.state_bytes(optimizer) == 0
    optimizer.step()
    assert memory.state_bytes(optimizer) == expected * 500


def test_temporaries_are_what_is_held_at_once() -> None:
    kept: list[torch.Tensor] = [torch.empty(10_000)]

    def together() -> None:
        kept.clear()  # what was there before is not given back
        first, second = torch.empty(1000), torch.empty(500)
        del first, second

    def in_turn() -> None:
        for count in (1000, 500):
            torch.empty(count)

    assert memory.temporary_bytes(together) == 4 * 1500
    assert memory.temporary_bytes(in_turn) == 4 * 1000
    assert memory.temporary_bytes(lambda: None) == 0


def temporaries_of(kernel: str) -> float:
    parameter = torch.nn.Parameter(torch.ones(200_000))
    parameter.grad = torch.ones(200_000)
    optimizer = HVAdam([parameter], kernel=kernel)
    optimizer.step()
    return memory.temporary_bytes(optimizer.step) / parameter.numel()


def test_portable_kernels_need_temporaries() -> None:
    assert temporaries_of("loop") > 4
    assert temporaries_of("foreach") > 4


@pytest.mark.skipif(native.available() is not None, reason="no native kernel here")
def test_the_native_kernel_needs_none() -> None:
    assert temporaries_of("native") == pytest.approx(0, abs=0.01)  # a few scalars


def test_bandwidth_counts_what_is_read_and_written() -> None:
    ticks = iter(range(100))
    rates = memory.bandwidth(1000, repeats=2, clock=lambda: float(next(ticks)))
    assert rates == {
        "copy": [8e-6] * 2,
        "scale in place": [8e-6] * 2,
        "add in place": [12e-6] * 2,
    }


# Reports


def test_results_follow_from_the_raw_numbers() -> None:
    row = result("HVAdam loop", 3.0, TINY)
    assert row.ratios == [3.0, 6.0, 1.5]
    assert row.ratio == (2.25, 3.0, 4.5)
    assert row.gb_per_second == pytest.approx(48 * 307 / 3.0 / 1e9)


def test_table_shows_every_number_within_80_columns() -> None:
    measured = Measurement(TINY, [result("x" * 27, 123.456, TINY)], [])
    text = printed(report.table(measured, context()))
    [row] = [line for line in text.splitlines() if line.startswith(" xxx")]
    assert " ".join(row.split()[1:]) == "123456 123 [92.6, 185] 1.71 0.0 36.0 12.0"
    assert "…" not in text
    headings = next(line for line in text.splitlines() if "contender" in line)
    assert headings.split() == ["contender", "ms", "ratio", "limit", "GB/s", "temp", "state"]


def test_in_the_cache_there_is_no_limit() -> None:
    measured = Measurement(TINY, [result("HVAdam loop", 2.0, TINY)], [])
    assert "1.71" in printed(report.table(measured, context(cache_bytes=16 * 307 - 1)))
    assert "1.71" not in printed(report.table(measured, context(cache_bytes=16 * 307)))


def growth() -> Growth:
    def shape(parameters: int, tensors: int) -> Shape:
        return Shape(f"{parameters}", "", tuple(equal_parts(parameters, tensors)))

    sizes = [shape(n * 1_000_000, 1) for n in (1, 10, 100)]
    parts = [shape(2_000_000, tensors) for tensors in (1, 1000)]
    return Growth(
        [
            Measurement(s, [result("HVAdam native", time * s.parameters, s)], [])
            for s, time in zip(sizes, (1.0, 2.0, 3.0), strict=True)
        ],
        [
            Measurement(s, [result("HVAdam native", time, s)], [])
            for s, time in zip(parts, (1.0, 1.25), strict=True)
        ],
    )


def test_growth_is_stated_per_parameter_from_end_to_end() -> None:
    _, line = report.growth_statements(growth(), context())
    assert line == ("HVAdam native: 100M / 1M parameters: 3.00; 1,000 / 1 tensors: 1.25")
    _, line = report.growth_statements(growth(), context(cache_bytes=32 << 20))
    assert "100M / 10M parameters, beyond the cache: 1.50" in line


def test_growth_is_drawn_per_parameter() -> None:
    left, right = charts.draw_growth(growth(), context()).axes
    np.testing.assert_allclose(points(left.lines[0]), [[1e6, 1e9], [1e7, 2e9], [1e8, 3e9]])
    np.testing.assert_allclose(points(right.lines[0]), [[1, 500], [1000, 625]])


def test_chart_shows_ratio_limit_and_bandwidth() -> None:
    rows = [result("HVAdam loop", 3.0, TINY), result("Adam fused", 0.5, TINY)]
    figure = charts.draw([Measurement(TINY, rows, [])], context())
    above, below = figure.axes
    bars = [bar.get_extents().transformed(above.transData.inverted()) for bar in above.patches]
    np.testing.assert_allclose([bar.intervalx for bar in bars], [[1, 3], [0.5, 1]])
    marks = [points(line)[0] for line in above.lines if line.get_marker() == "|"]
    np.testing.assert_allclose(marks, [[12 / 7, 0], [12 / 7, 1]])
    assert [tick.get_text() for tick in above.get_yticklabels()] == ["HVAdam loop", "Adam fused"]
    bars = [bar.get_extents().transformed(below.transData.inverted()) for bar in below.patches]
    np.testing.assert_allclose([bar.x1 for bar in bars], [row.gb_per_second for row in rows])
    copy, fastest = (points(line)[0, 0] for line in below.lines)
    assert (copy, fastest) == (10, 20)


# All of it


@pytest.fixture
def quick_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "bandwidth", lambda elements: {"copy": [10.0], "add": [11.0, 12.0]})


@pytest.mark.usefixtures("quick_bandwidth")
@pytest.mark.parametrize("grow", [False, True])
def test_run_prints_tables_and_writes_charts_and_numbers(grow: bool, tmp_path: Path) -> None:
    contenders = [
        Contender("HVAdam loop", HVAdam, {"kernel": "loop"}, EXACT, grows=True),
        REFERENCE,
        Contender("HVAdam odd", HVAdam, {"kernel": "odd"}, EXACT),
    ]
    other = dataclasses.replace(TINY, name="other", title="the others")
    larger = Shape("larger", "one tensor", ((10_000,),))
    growing = ([TINY, larger], [TINY, other]) if grow else None
    plan = Plan(rounds=2, group_seconds=0.0)
    threads = torch.get_num_threads()
    console = Console(file=io.StringIO(), width=80)
    speed.run(
        [TINY, other], contenders, plan, tmp_path, console, threads=threads + 1, growing=growing
    )
    assert torch.get_num_threads() == threads

    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    files = ["speed.json", "speed.png", *(["growth.png"] if grow else [])]
    assert [line for line in text.splitlines() if line.startswith("wrote")] == [
        f"wrote {tmp_path / name}" for name in files
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
    assert text.index("two tensors") < text.index("the others") < text.index("skipped HVAdam odd")
    assert ("1 is linear" in text) == grow
    for name in files[1:]:
        pixels = imread(tmp_path / name)
        assert len({tuple(pixel) for row in pixels[::20] for pixel in row[::20]}) > 5  # not blank

    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert content["threads"] == content["machine"]["torch_threads"] == threads + 1
    assert content["plan"]["rounds"] == 2
    assert content["bandwidth_gb_per_second"] == {"copy": [10.0], "add": [11.0, 12.0]}
    assert {"cpu", "cores", "caches", "native_instruction_set"} < content["machine"].keys()
    assert list(content["contenders"]) == [contender.name for contender in contenders]
    assert content["contenders"]["HVAdam odd"]["options"] == {"kernel": "odd"}
    assert [shape["name"] for shape in content["shapes"]] == ["tiny", "other"]
    assert (content["growth"] is not None) == grow
    shapes = content["shapes"]
    if grow:
        assert [len(part) for part in content["growth"].values()] == [2, 2]
        assert not any(shape["skipped"] for part in content["growth"].values() for shape in part)
    for shape in shapes:
        assert (shape["tensors"], shape["parameters"]) == (2, 307)
        assert [row["contender"] for row in shape["results"]] == ["HVAdam loop", "Adam fused"]
        [skip] = shape["skipped"]
        assert skip["contender"] == "HVAdam odd"
        assert "'odd'" in skip["reason"]
        for row in shape["results"]:
            assert len(row["seconds"]) == len(row["reference_seconds"]) == len(row["ratios"]) == 2
            assert row["ratio"]["q1"] <= row["ratio"]["median"] <= row["ratio"]["q3"]
        hvadam, adam = shape["results"]
        assert (hvadam["state_bytes_per_parameter"], adam["state_bytes_per_parameter"]) == (12, 8)
        assert hvadam["temporary_bytes_per_parameter"] > 4
        assert (hvadam["limit"], adam["limit"]) == (pytest.approx(12 / 7), 1)
        assert (hvadam["kernels"], adam["kernels"]) == (["loop"], [])


@pytest.mark.usefixtures("quick_bandwidth")
def test_options_of_the_command_become_shapes_and_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(speed, "run", lambda *args, **options: calls.append((args, options)))
    console = Console(file=io.StringIO())
    speed.benchmark(["lstm", "small"], tmp_path, console, quick=True)
    speed.benchmark([], tmp_path, console, threads=2, growth=True)
    (shapes, contenders, plan, *_), options = calls[0]
    assert shapes == [SHAPES["lstm"], SHAPES["small"]]
    assert contenders is CONTENDERS
    assert plan.rounds == 3
    assert options == {"threads": 1, "growing": None}
    (_, _, plan, *_), options = calls[1]
    assert plan.rounds == 7
    assert options == {"threads": 2, "growing": (BY_PARAMETERS, BY_TENSORS)}


@pytest.mark.usefixtures("quick_bandwidth")
def test_the_bar_reaches_the_end_even_if_some_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[float] = []
    stop = speed.Progress.stop

    def spy(bar: speed.Progress) -> None:
        ends.append(bar.tasks[0].percentage)
        stop(bar)

    monkeypatch.setattr(speed.Progress, "stop", spy)
    contenders = [REFERENCE, Contender("odd", HVAdam, {"kernel": "odd"}, EXACT)]
    plan = Plan(rounds=1, group_seconds=0.0, temporaries=False)
    console = Console(file=io.StringIO(), force_terminal=True)
    speed.run([TINY], contenders, plan, tmp_path, console)
    assert ends == [pytest.approx(100)]
