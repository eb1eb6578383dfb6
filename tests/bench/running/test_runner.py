"""The one loop: what it computes, and how runs end."""

import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import essence
from rich.console import Console
from torch import nn
from toys import Builder, Toy, config

from hvadam_bench.registry import RefusedError
from hvadam_bench.running import machine, training
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.running.runner import PrunedError, Watcher, run
from hvadam_bench.tasks import Split


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread, which is what a run has: more add sums up in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_runs_as_a_loop_written_by_hand(toys: Builder, store: Store) -> None:
    record = run(config(options={"lr": 0.01}), store)

    torch.manual_seed(0)
    toy = Toy({"steps": 24}, 0, "standard")
    nets = toy.networks
    adams = {k: torch.optim.Adam(n.parameters(), 0.01, weight_decay=0.01) for k, n in nets.items()}
    losses = []
    for step in range(24):
        for adam in adams.values():
            adam.param_groups[0]["lr"] = 0.01 * (1.0 if step < 12 else 0.1)
        for loss, name in toy.updates(toy.batch(step)):
            losses.append(loss.item())
            adams[name].zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(nets[name].parameters(), 0.5)
            adams[name].step()
    assert [point.step for point in record.curve] == [0, 6, 12, 18, 24]
    assert [point.examples for point in record.curve] == [0, 96, 192, 288, 384]
    means = [sum(losses[i : i + 12]) / 12 for i in range(0, 48, 12)]
    assert record.curve[0].train_loss is None
    assert [point.train_loss for point in record.curve[1:]] == pytest.approx(means, rel=1e-12)
    for name, network in nets.items():
        for key, value in toys.last.networks[name].state_dict().items():
            assert torch.equal(value, network.state_dict()[key]), key
    assert (record.status, record.metric, record.goal) == ("done", "loss", "min")
    assert record.artifacts == tuple(f"picture-{s:07d}.png" for s in (0, 6, 12, 18, 24))
    folder = store.artifacts_path(record.config)
    assert sorted(p.name for p in folder.iterdir()) == list(record.artifacts)


def test_published_numbers_come_with_the_published_protocol_alone(
    toys: Builder, store: Store
) -> None:
    assert run(config(), store).published is None
    same = run(config(scale="paper"), store)
    assert (same.published, same.published_from) == (0.5, "They are made.")
    assert run(config(scale="paper", settings={"steps": 4}), store).published is None


def test_same_seed_same_bits_and_another_seed_others(tmp_path: Path) -> None:
    asked = RunConfig("digits_cnn", "hvadam", scale="smoke")
    one, two = (run(asked, Store(tmp_path / name)) for name in ("one", "two"))
    assert essence(one) == essence(two)
    other = run(RunConfig("digits_cnn", "hvadam", scale="smoke", seed=1), Store(tmp_path))
    assert essence(other) != essence(one)
    assert one.curve[-1].valid["accuracy"] > 70
    watched = one.curve[-1].diagnostics["model"]
    assert set(watched) == {"hidden_gain", "hidden_share", "alignment", "restarts"}
    assert 0 < watched["hidden_share"] < 1


def test_a_collapse_is_a_status_with_the_step_it_began_at(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread = iter([9.0, 0.1, 9.0, 0.1, 0.2, 0.1])  # at steps 0, 6, 12, 18 and 24, and in the test
    monkeypatch.setattr(Toy, "evaluate", lambda self, split: {"loss": next(spread)})
    monkeypatch.setattr(Toy, "collapsed", lambda self, measures: measures["loss"] < 1)
    record = run(config(), store)
    assert record.status == "collapsed"
    assert record.reason == "the samples are all alike, from step 18 to the end."
    assert record.test  # it is measured all the same
    toys.before_step = lambda step: pytest.fail("trained")
    assert run(config(), store).status == "collapsed"


def test_leaves_the_process_as_it_was(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [5]
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    drawn: list[tuple[object, ...]] = []
    for runs in (False, True):
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002
        random.seed(3)
        if runs:
            run(config(), store, threads=3)
        assert not torch.are_deterministic_algorithms_enabled()
        drawn.append((torch.rand(1).item(), np.random.rand(), random.random()))  # noqa: NPY002
    assert drawn[0] == drawn[1]
    assert threads == [5, 3, 5]


def test_the_runs_word_goes_before_the_tasks(toys: Builder, store: Store) -> None:
    def built(contender: str, **options: Any) -> dict[str, Any]:
        one = training.Training(config(contender, options=options))
        return one.optimizers["head"].param_groups[0]

    assert built("sgd")["weight_decay"] == 0.01
    assert built("sgd", weight_decay=0.2)["weight_decay"] == 0.2
    assert "weight_decay" not in built("fromage")
    assert built("adam", betas=[0.5, 0.9])["betas"] == (0.5, 0.9)
    assert built("swa")["horizon"] == built("ademamix")["horizon"] == 24
    assert built("swa", horizon=8)["horizon"] == 8


def test_averaged_weights_are_shown_with_their_own_statistics(toys: Builder, store: Store) -> None:
    sgd = run(config("sgd", options={"lr": 0.05}), store)
    swa = run(config("swa", options={"lr": 0.05}), store)
    assert swa.curve[-1].valid["gap"] < 1e-6 < 1e-3 < sgd.curve[-1].valid["gap"]
    assert swa.curve[-1].valid["loss"] != sgd.curve[-1].valid["loss"]
    # Evaluations leave no trace: training is that of the inner SGD, to the last bit.
    assert [p.train_loss for p in swa.curve] == [p.train_loss for p in sgd.curve]


def test_heads_get_their_own_variants(toys: Builder, store: Store) -> None:
    seen: list[int] = []

    class Listener(Watcher):
        def stepped(self, step: int, loss: float) -> None:
            seen.append(toys.last.variants[-1])

    run(config("lookaround", options={"lr": 0.01}), store, watcher=Listener())
    assert seen == [0, 1, 2] * 8


def test_a_curve_takes_a_glance_but_for_its_last_point(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, asked = Toy.evaluate, config("sgd")
    monkeypatch.setattr(Toy, "glance", lambda self: {**whole(self, "valid"), "loss": 7.0})
    *before, last = run(asked, store).curve
    assert {point.valid["loss"] for point in before} == {7.0}
    assert 0 < last.valid["loss"] < 7.0


@pytest.mark.parametrize("how", ["bound", "nan", "measure"])
def test_divergence_is_a_result(
    how: str, toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = config("sgd", options={"lr": 1e-3 if how != "bound" else 1e20})
    if how == "nan":

        def spoil(step: int) -> None:
            if step == 10:
                toys.last.hidden = torch.tensor(float("nan"))

        toys.before_step = spoil
    if how == "measure":
        good = Toy.evaluate

        def evaluate(self: Toy, split: Split) -> dict[str, float]:
            return {**good(self, split), "bad": float("inf") if split == "test" else 0.0}

        monkeypatch.setattr(Toy, "evaluate", evaluate)
    record = run(asked, store)
    assert record.status == "diverged"
    expected = {"bound": "at step 1,", "nan": "nan at step 10,", "measure": "inf at step 24."}
    assert expected[how] in record.reason
    assert len(record.curve) == {"bound": 1, "nan": 2, "measure": 5}[how]
    assert record.test == {}
    text = store.path(asked).read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert not store.checkpoint_path(asked).exists()


def test_what_cannot_start_is_not_recorded(toys: Builder, store: Store) -> None:
    for bad, match in (
        (config(options={"nonsense": 1}), "no option 'nonsense'"),
        (config("sgd", options={"lr": -1.0}), "Invalid learning rate"),
        (config(settings={"stpes": 1}), "no setting 'stpes'; did you mean 'steps'"),
        (config(scale="huge"), "toy has no scale 'huge'; there are smoke, paper"),
        (config(protocol="inherited"), "toy has no protocol 'inherited'"),
        (config(settings={"steps": 0}), "toy: steps must be a whole number of at least 1, got 0"),
        (config(settings={"steps": -3}), "toy: steps must be .* got -3"),
        (config(settings={"steps": True}), "toy: steps must be .* got True"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            run(bad, store)
    assert not store.folder.exists()


def test_a_task_without_a_step_is_refused(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Toy.__init__

    def no_steps(self: Toy, *args: Any) -> None:
        build(self, *args)
        self.steps = 0

    monkeypatch.setattr(Toy, "__init__", no_steps)
    with pytest.raises(ValueError, match="toy must train for at least 1 step, got 0 of these"):
        run(config(), store)
    assert not store.folder.exists()


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (
            {"gap": 1.0},
            r"toy: evaluate\('valid'\) must return the task's metric, 'loss', got gap\.",
        ),
        (None, "must return the task's metric, 'loss', got None"),
        ({"loss": "low"}, r"must return numbers, got {'loss': 'low'}"),
    ],
)
def test_a_task_without_its_metric_is_refused_before_the_first_step(
    measures: Any, said: str, toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.before_step = lambda step: pytest.fail("trained")
    monkeypatch.setattr(Toy, "evaluate", lambda self, split: measures)
    with pytest.raises(RefusedError, match=said):
        run(config(), store)
    assert not [path for path in store.folder.rglob("*") if path.is_file()]


def test_a_task_that_exits_is_named(toys: Builder, store: Store) -> None:
    def leave(step: int) -> None:
        sys.exit(7)

    toys.before_step = leave
    record = run(config(), store)
    assert (record.status, record.reason) == ("failed", "toy or adam called sys.exit(7)")


def test_a_task_that_exits_as_it_is_built_is_refused(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "__init__", lambda self, *args: sys.exit(7))
    with pytest.raises(RefusedError, match=r"toy or adam called sys\.exit\(7\)\."):
        run(config(), store)
    assert not store.folder.exists()


def test_a_watcher_can_prune(toys: Builder, store: Store) -> None:
    class Judge(Watcher):
        def evaluated(self, point: Point) -> None:
            if point.step == 12:
                raise PrunedError("worse than the median.")

    record = run(config(), store, watcher=Judge())
    assert (record.status, record.reason) == ("pruned", "worse than the median.")
    assert [point.step for point in record.curve] == [0, 6, 12]
    assert run(config(), store) == Record.from_json(record.to_json())


def test_bars_show_rate_loss_metric_and_gain(store: Store) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    asked = RunConfig("digits_mlp", "hvadam", scale="smoke")
    with Bars(console) as bars:
        watcher = bars.watch()
        watcher.started(asked, 100, 0, ())
        diagnostics = {"model": {"hidden_gain": 1.5, "alignment": 0.3, "restarts": 2.0}}
        watcher.evaluated(Point(20, 640, 1.0, 0.5, {"accuracy": 0.75, "loss": 1.0}, diagnostics))
        watcher.stepped(50, 0.25)
        bars.progress.refresh()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for words in ("digits_mlp hvadam seed 0", " 50%", "steps/s", "loss 0.25"):
        assert words in shown
    assert "accuracy 0.75, gain 1.5, restarts 2" in shown


def test_environment_names_the_commit() -> None:
    about = machine.describe()
    assert about["versions"]["torch"] == torch.__version__
    assert "loop" in about["hvadam_kernels"]
    json.dumps(about, allow_nan=False)
    if about["commit"] is not None:
        assert len(about["commit"]) == 40
        assert isinstance(about["dirty"], bool)
