"""What whole training steps cost: the arithmetic and the pairing. No test looks at a real time."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import torch
from made_timings import TINY
from torch import nn

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.training import Training
from hvadam_bench.studies.speed import jax_steps, training
from hvadam_bench.studies.speed.contenders import ADAM, ADAMW, TRAINED, Contender
from hvadam_bench.studies.speed.page import table
from hvadam_bench.studies.speed.plan import Plan
from hvadam_bench.studies.speed.training import WORKLOADS, Workload, benchmark, benchmark_runner

PLAN = Plan("training", rounds=3)


class FakeTime:
    """A clock that losses and steps move: a loss takes 8, a step as long as its optimizer says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def workload(self) -> Workload:
        def make() -> Any:
            def loss(network: nn.Module) -> torch.Tensor:
                self.now += 8.0
                return network(torch.ones(4, 3)).sum()

            return nn.Linear(3, 1), loss

        return make

    def contender(self, name: str, seconds: float, **options: Any) -> Contender:
        time = self

        class Slow(torch.optim.Adam):
            def step(self, closure: Any = None) -> None:
                time.now += seconds
                super().step()

        return Contender(name, Slow, options, ADAM)


def test_what_is_added_is_beside_the_reference() -> None:
    time = FakeTime()

    def refuse(params: Any) -> Any:
        raise RuntimeError("not\n here")

    contenders = [
        time.contender("ours", 4.0, amsgrad=True),  # three states for two
        Contender("missing", refuse, {}, ADAM),
    ]
    told: list[float] = []
    found = benchmark(
        PLAN,
        lambda doing, share: told.append(share),
        workloads={"fake": ("a fake", time.workload())},
        contenders=contenders,
        reference=time.contender("AdamW fused", 2.0),
        clock=time,
    )
    assert sum(told) == pytest.approx(1.0)
    [trained] = found["workloads"]
    [one] = trained["results"]
    assert one["seconds"] == pytest.approx([12.0] * 3)
    assert one["optimizer_seconds"] == pytest.approx([4.0] * 3)
    # Parameters, two or three states, and in the step at least the gradients: 16 bytes each.
    assert one["reference_peak_bytes"] >= 4 * 16
    assert one["peak_bytes"] - one["reference_peak_bytes"] >= 16

    memory = one["peak_bytes"] / one["reference_peak_bytes"] - 1
    row = ["ours", "+20.0% (+20.0% to +20.0%)", "2.00 (2.00 to 2.00)", "33.3%", f"{memory:+.1%}"]
    assert table("training", found, trained).rows == [row]
    assert trained["skipped"] == [{"contender": "missing", "reason": "not here"}]


def test_contenders_are_there_and_the_reference_is_fused_adamw() -> None:
    assert ADAMW.options == {"fused": True}
    assert ADAMW.optimizer is torch.optim.AdamW
    assert {one.options.get("state_dtype") for one in TRAINED} == {*(None, "bfloat16", "int8")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "lstm", "pinn"])
def test_every_workload_trains(name: str) -> None:
    plan = Plan("training", rounds=1, smoke=True)
    [trained] = benchmark(plan, workloads={name: WORKLOADS[name]})["workloads"]
    assert not trained["skipped"]
    assert all(one["peak_bytes"] > 0 for one in trained["results"])


def test_the_transformer_has_the_size_of_gpt_2_small() -> None:
    with torch.device("meta"):
        network, _ = WORKLOADS["gpt2"][1]()
    assert sum(p.numel() for p in network.parameters()) == pytest.approx(124e6, rel=0.01)


# The runner


def test_the_bare_loop_takes_the_runners_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[Training] = []

    class Kept(Training):
        def __init__(self, config: RunConfig) -> None:
            super().__init__(config)
            trainings.append(self)

    monkeypatch.setattr("hvadam_bench.running.runner.Training", Kept)
    monkeypatch.setattr(training, "Training", Kept)
    found = benchmark_runner(Plan("runner", smoke=True))
    ours, by_hand = (one.problem.evaluate("valid") for one in trainings)
    assert ours == by_hand
    [shape] = found["shapes"]
    assert shape["name"] == "digits_mlp"
    assert [one["contender"] for one in shape["results"]] == ["clock", "CPU"]
    for one in shape["results"]:  # 80 steps are four blocks, of which the first warms up
        assert len(one["seconds"]) == len(one["reference_seconds"]) == 3
        assert all(x > 0 for x in (*one["seconds"], *one["reference_seconds"]))


def test_overheads_are_quartiles_of_the_blocks_and_the_ratio_of_the_sums() -> None:
    rows = [
        {"contender": "clock", "seconds": [0.1, 0.15, 0.2], "reference_seconds": [0.05] * 3},
        {"contender": "CPU", "seconds": [1.0, 1.0, 7.0], "reference_seconds": [1.0] * 3},
    ]
    assert table("runner", {}, {"title": "toy", "results": rows}).rows == [
        ["clock", "50.00 ms", "3.000 (2.500 to 3.500)", "3.000", "3"],
        ["CPU", "1000.00 ms", "1.000 (1.000 to 4.000)", "3.000", "3"],
    ]


# Step times in JAX: what is timed versus what. No test looks at a real time.
@pytest.mark.slow
def test_everyone_steps_as_often_and_is_timed_versus_adam() -> None:
    ticks = count()
    told: list[float] = []
    found = jax_steps.benchmark(
        Plan("speed-jax", (TINY,), rounds=2, group_seconds=0.0),
        lambda doing, share: told.append(share),
        clock=lambda: float(next(ticks)),
    )
    assert found["versions"].keys() == {"jax", "optax"}
    [measured] = found["shapes"]
    assert [row["contender"] for row in measured["results"]] == ["HVAdam", "Adam", "AdaBelief"]
    for row in measured["results"]:
        assert row["seconds"] == row["reference_seconds"] == [1.0, 1.0]
        assert row["compile_seconds"] > 0
        assert row["temporary_bytes"] >= 0
    assert sum(told) == pytest.approx(1.0)
