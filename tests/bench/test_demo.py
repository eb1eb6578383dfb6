"""The demo's arithmetic, fairness and outputs."""

import dataclasses
import io
import json
import math

import numpy as np
import pytest
import torch
from rich.console import Console

from hvadam.bench import demo, digits
from hvadam.bench.demo import CONTENDERS, Run


@pytest.fixture(scope="module")
def data() -> digits.Digits:
    return digits.load()


@pytest.fixture(scope="module")
def runs(data: digits.Digits) -> list[Run]:
    return demo.run_all(data, epochs=1, seeds=2, console=Console(file=io.StringIO()))


def rendered(runs: list[Run]) -> str:
    """The table as a terminal of 80 columns shows it."""
    console = Console(file=io.StringIO(), width=80)
    console.print(demo.table(runs))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_split_is_fixed_and_stratified(data: digits.Digits) -> None:
    assert (len(data.train), len(data.test)) == (1347, 450)
    assert torch.equal(data.train.pixels, digits.load().train.pixels)
    assert (data.train.pixels.min(), data.train.pixels.max()) == (0, 1)
    shares = [part.labels.bincount() / len(part) for part in (data.train, data.test)]
    torch.testing.assert_close(*shares, atol=0.002, rtol=0)


def test_batches_hold_each_image_at_most_once(data: digits.Digits) -> None:
    numbered = digits.Images(torch.arange(len(data.train)), data.train.labels)
    shuffle = torch.Generator().manual_seed(0)
    first, second = (
        torch.cat([batch.pixels for batch in digits.batches(numbered, shuffle)]) for _ in range(2)
    )
    assert len(first.unique()) == len(first) == 1344
    assert not torch.equal(first, second)


def test_network_depends_on_the_seed_alone() -> None:
    torch.rand(1)  # away from any state that a seed sets
    before = torch.get_rng_state()
    weights = [
        torch.cat([p.flatten() for p in digits.make_network(seed).parameters()])
        for seed in (0, 0, 1)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_metrics_are_over_all_images_in_eval_mode(data: digits.Digits) -> None:
    class AlwaysThree(torch.nn.Module):
        """Sure of a three in eval mode, undecided in training."""

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(len(pixels), 10)
            logits[:, 3] = 0.0 if self.training else math.log(11)
            return logits

    share = (data.test.labels == 3).double().mean().item()
    expected = share * -math.log(11 / 20) + (1 - share) * math.log(20)
    assert digits.accuracy(AlwaysThree(), data.test) == pytest.approx(share)
    assert digits.mean_loss(AlwaysThree(), data.test) == pytest.approx(expected, rel=1e-5)


def test_every_contender_runs_from_every_seed(runs: list[Run]) -> None:
    expected = {(contender.name, seed) for contender in CONTENDERS for seed in (0, 1)}
    assert {(run.contender, run.seed) for run in runs} == expected
    assert len(runs) == len(expected)
    assert all(run.train_losses[1] < run.train_losses[0] for run in runs)
    assert all(0.1 < run.test_accuracy <= 1 and run.seconds > 0 for run in runs)


def test_losses_are_of_the_training_set_and_accuracy_of_the_test_set(
    data: digits.Digits, runs: list[Run]
) -> None:
    usual = runs[len(CONTENDERS) - 1]
    mislabelled = digits.Images(data.test.pixels, (data.test.labels + 1) % 10)
    run = demo.train(CONTENDERS[-1], 0, 1, digits.Digits(data.train, mislabelled))
    assert (run.contender, run.seed) == (usual.contender, usual.seed)
    assert run.train_losses == usual.train_losses
    assert run.test_accuracy < 0.2 < 0.8 < usual.test_accuracy


def test_contenders_start_from_the_same_loss(runs: list[Run]) -> None:
    initial = {seed: {r.train_losses[0] for r in runs if r.seed == seed} for seed in (0, 1)}
    assert [len(losses) for losses in initial.values()] == [1, 1]
    assert initial[0] != initial[1]
    assert len({run.train_losses[-1] for run in runs}) == len(runs)  # then they part


def test_contenders_see_the_same_batches(
    data: digits.Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[torch.Tensor]] = {}
    loss = digits.batch_loss
    for contender in CONTENDERS:
        labels = seen.setdefault(contender.name, [])

        def spy(network, batch, labels=labels):
            labels.append(batch.labels)
            return loss(network, batch)

        monkeypatch.setattr(digits, "batch_loss", spy)
        demo.train(contender, 0, 1, data)
    first, *others = (torch.stack(labels) for labels in seen.values())
    assert first.shape == (1347 // digits.BATCH_SIZE, digits.BATCH_SIZE)
    assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
def test_a_seed_decides_the_losses(
    contender: demo.Contender, data: digits.Digits, runs: list[Run]
) -> None:
    [before] = [run for run in runs if (run.contender, run.seed) == (contender.name, 1)]
    torch.rand(3)  # whatever else happened to the global random state
    again = demo.train(contender, 1, 1, data)
    assert again.train_losses == before.train_losses
    assert again.test_accuracy == before.test_accuracy


def test_training_restores_the_number_of_threads(data: digits.Digits) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        demo.train(CONTENDERS[0], seed=0, epochs=0, data=data)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_summary_is_mean_and_sample_deviation() -> None:
    summary = demo.summarize([1.0, 2.0, 6.0])
    assert (summary.mean, summary.n) == (3.0, 3)
    assert summary.spread == pytest.approx(math.sqrt(7))
    assert summary.format(".1f", " %") == "3.0 ± 2.6 %"
    assert demo.summarize([4.0]).format(".1f", " %") == "4.0 %"


def test_table_shows_each_contender_with_its_rate_and_n() -> None:
    runs = [
        Run(contender.name, seed, (2.0, 0.01 * (i + 1) + 0.001 * seed), 0.5 + 0.25 * seed, 2.0)
        for i, contender in enumerate(CONTENDERS)
        for seed in (0, 1, 2)
    ]
    text = rendered(runs)
    rows = {line[:16].strip(): " ".join(line[16:].split()) for line in text.splitlines()}
    assert rows["contender"] == "rate training loss test accuracy seconds n"
    assert rows["HVAdam"] == "0.001 1.1e-02 ± 1.0e-03 75.0 ± 25.0 % 2.0 ± 0.0 3"
    assert rows["SGD momentum"] == "0.1 4.1e-02 ± 1.0e-03 75.0 ± 25.0 % 2.0 ± 0.0 3"
    assert {contender.name for contender in CONTENDERS} < rows.keys()
    assert "a demonstration, not a comparison" in " ".join(text.split())


def test_figure_shows_mean_and_range_of_each_contender(runs: list[Run]) -> None:
    [axes] = demo.draw(runs).axes
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == "epoch"
    assert "n = 2" in axes.get_title()
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == [f"{c.name} (lr {c.options['lr']:g})" for c in CONTENDERS]
    for contender, line, band in zip(CONTENDERS, axes.lines, axes.collections, strict=True):
        curves = [run.train_losses for run in runs if run.contender == contender.name]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), np.mean(curves, axis=0))
        corners = np.asarray(band.get_paths()[0].vertices)[:, 1]
        assert (corners.min(), corners.max()) == (np.min(curves), np.max(curves))
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths[0] > max(widths[1:])  # HVAdam stands out
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == len(widths)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_diverged_run_is_reported_not_raised(
    loss: float, data: digits.Digits, runs: list[Run]
) -> None:
    diverged = [dataclasses.replace(runs[0], train_losses=(2.0, loss)), *runs[1:]]
    assert str(loss) in rendered(diverged)
    demo.draw(diverged).savefig(io.BytesIO(), format="png")
    content = json.loads(demo.as_json(diverged, data, epochs=1))
    assert content["runs"][0]["train_losses"] == [2.0, None]
