"""The bare loop beside the runner takes the same steps, and the table says so."""

import numpy as np
import pytest

from hvadam_bench.pages.throughput import throughput_table
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.training import Training
from hvadam_bench.studies.speed import throughput


def test_the_bare_loop_takes_the_runners_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[Training] = []

    class Kept(Training):
        def __init__(self, config: RunConfig) -> None:
            super().__init__(config)
            trainings.append(self)

    monkeypatch.setattr("hvadam_bench.running.runner.Training", Kept)
    monkeypatch.setattr(throughput, "Training", Kept)
    config = RunConfig("digits_mlp", "adam", scale="smoke", settings={"epochs": 5})
    seconds = throughput.measure(config)
    assert seconds.shape == (3, 2, 2)  # 80 steps are four blocks, of which the first warms up
    assert (seconds > 0).all()
    ours, by_hand = (training.problem.evaluate("valid") for training in trainings)
    assert ours == by_hand


def test_overheads_are_quartiles_of_the_blocks_and_the_ratio_of_the_sums() -> None:
    runner = np.array([[2.0, 1.0], [3.0, 1.0], [4.0, 7.0]])
    by_hand = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    clock, processor = throughput.summarize("toy", np.stack([runner, by_hand], axis=1))
    assert clock == ("toy", "clock", 0.05, 3.0, 2.5, 3.5, 3.0, 3)
    assert processor == ("toy", "CPU", 0.05, 1.0, 1.0, 4.0, 3.0, 3)
    table = throughput_table([clock])
    [cells] = table.cells
    said = ["toy", "clock", "50.00 ms", "3.000 (2.500 to 3.500)", "3.000", "3"]
    assert [cell.text for cell in cells] == said
