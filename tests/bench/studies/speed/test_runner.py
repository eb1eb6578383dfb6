"""The bare loop next to the runner takes the same steps, and the table says so."""

import pytest

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.training import Training
from hvadam_bench.studies.speed import runner
from hvadam_bench.studies.speed.page import table
from hvadam_bench.studies.speed.plan import Plan


def test_the_bare_loop_takes_the_runners_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[Training] = []

    class Kept(Training):
        def __init__(self, config: RunConfig) -> None:
            super().__init__(config)
            trainings.append(self)

    monkeypatch.setattr("hvadam_bench.running.runner.Training", Kept)
    monkeypatch.setattr(runner, "Training", Kept)
    found = runner.benchmark(Plan("runner", smoke=True))
    ours, by_hand = (training.problem.evaluate("valid") for training in trainings)
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
