"""The bare loop beside the runner takes the same steps, and the table says so."""

import pytest

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.training import Training
from hvadam_bench.studies.speed import runner
from hvadam_bench.studies.speed.page import runner_table
from hvadam_bench.studies.speed.results import Overhead, RunnerCost


def test_the_bare_loop_takes_the_runners_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[Training] = []

    class Kept(Training):
        def __init__(self, config: RunConfig) -> None:
            super().__init__(config)
            trainings.append(self)

    monkeypatch.setattr("hvadam_bench.running.runner.Training", Kept)
    monkeypatch.setattr(runner, "Training", Kept)
    found = runner.benchmark(runner.SHORT_RUNS)
    ours, by_hand = (training.problem.evaluate("valid") for training in trainings)
    assert ours == by_hand
    clock, processor = found.tasks
    assert (clock.task, clock.clock, processor.clock) == ("digits_mlp", "clock", "CPU")
    for one in found.tasks:  # 80 steps are four blocks, of which the first warms up
        assert len(one.seconds) == len(one.reference_seconds) == 3
        assert all(x > 0 for x in (*one.seconds, *one.reference_seconds))


def test_overheads_are_quartiles_of_the_blocks_and_the_ratio_of_the_sums() -> None:
    clock = Overhead((0.10, 0.15, 0.20), (0.05, 0.05, 0.05), "toy", "clock")
    processor = Overhead((1.0, 1.0, 7.0), (1.0, 1.0, 1.0), "toy", "CPU")
    assert processor.total == 3.0
    found = RunnerCost("", {}, {}, runner.BLOCK, (clock, processor))
    cells = [[cell.text for cell in row] for row in runner_table(found).cells]
    assert cells == [
        ["toy", "clock", "50.00 ms", "3.000 (2.500 to 3.500)", "3.000", "3"],
        ["toy", "CPU", "1000.00 ms", "1.000 (1.000 to 4.000)", "3.000", "3"],
    ]
