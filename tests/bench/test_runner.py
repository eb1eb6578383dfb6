"""The one loop: what it computes, that it resumes to the same bits, and how runs end."""

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import KilledError, Killer, essence
from rich.console import Console
from torch import nn

from hvadam import optimizers
from hvadam.bench import checkpoints, environment, records, tasks, training
from hvadam.bench.cli import main
from hvadam.bench.config import RunConfig
from hvadam.bench.progress import Bars
from hvadam.bench.records import Point, Record, Store, write_atomically
from hvadam.bench.runner import PrunedError, Watcher, run
from hvadam.bench.tasks import Problem, Split, Task, Update


class Toy(Problem):
    """All that makes resuming hard: two networks, batch norm, dropout, a state, a schedule."""

    max_grad_norm = 0.5
    weight_decay = 0.01

    def __init__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> None:
        torch.manual_seed(seed)
        self.seed, self.steps, self.batch_size = seed, settings["steps"], 16
        self.norm = nn.BatchNorm1d(8)
        body = nn.Sequential(nn.Linear(4, 8), self.norm, nn.Dropout(0.2), nn.Linear(8, 2))
        self.networks = {"body": body, "head": nn.Linear(2, 1)}
        self.hidden = torch.zeros(())
        self.variants: list[int] = []
        self.before_step: Callable[[int], None] = lambda step: None

    def batch(self, step: int, variant: int = 0) -> torch.Tensor:
        self.variants.append(variant)
        self.before_step(step)
        return self.draw(step) + 0.1 * variant

    def draw(self, step: int) -> torch.Tensor:
        drawn = np.random.default_rng((self.seed, step)).normal(size=(16, 4))
        return torch.as_tensor(drawn, dtype=torch.float32)

    def updates(self, batch: torch.Tensor) -> Iterator[Update]:
        for name in ("body", "head"):
            out = self.networks["head"](self.networks["body"](batch)).squeeze(1)
            loss = (out - batch.sum(1) - self.hidden).square().mean()
            yield Update(loss, name)
            self.hidden = 0.9 * self.hidden + 0.1 * out.detach().mean() + torch.rand(()) / 10

    def lr_factor(self, step: int) -> float:
        return 1.0 if step < self.steps // 2 else 0.1

    def evaluate(self, split: Split) -> dict[str, float]:
        for network in self.networks.values():
            network.eval()
        x = torch.linspace(-1, 1, 40).reshape(10, 4) + (split == "test")
        with torch.no_grad():
            loss = (self.networks["head"](self.networks["body"](x)).squeeze(1) - x.sum(1)).square()
        return {"loss": (loss.mean() + 0.01 * torch.rand(())).item(), "gap": self.gap()}

    def gap(self) -> float:
        """How far the running means are from those of the weights as they are now."""
        with torch.no_grad():
            first = self.networks["body"][0]  # type: ignore[index]
            means = [first(self.draw(step)).mean(0) for step in range(min(64, self.steps))]
        assert self.norm.running_mean is not None
        return (torch.stack(means).mean(0) - self.norm.running_mean).abs().max().item()

    def artifacts(self) -> dict[str, bytes]:
        return {"picture.png": b"\x89PNG"}

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self.hidden}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.hidden = state["hidden"]


class Builder:
    """Builds toys and keeps the last one."""

    last: Toy
    before_step: Callable[[int], None] = staticmethod(lambda step: None)

    def __call__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> Toy:
        self.last = Toy(settings, seed, protocol)
        self.last.before_step = self.before_step
        return self.last


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Builder:
    builder = Builder()
    task = Task(
        *("toy", "A toy", "extra", "loss", "min"),
        build=builder,
        scales={"smoke": {"steps": 24}, "paper": {"steps": 24}},
        published={"adam": 0.5},
        evaluations=4,
    )
    monkeypatch.setattr(tasks, "get", lambda name: task)
    return builder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def config(contender: str = "adam", **changes: Any) -> RunConfig:
    return RunConfig("toy", contender, **{"scale": "smoke", **changes})


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many as a run has: sums are added up in another order with more."""
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
    assert run(config(scale="paper"), store).published == 0.5
    assert run(config(scale="paper", settings={"steps": 4}), store).published is None


@pytest.mark.parametrize("contender", optimizers.names())
def test_killed_and_resumed_is_never_killed(contender: str, toys: Builder, tmp_path: Path) -> None:
    asked = config(contender)
    whole = run(asked, Store(tmp_path / "whole"))
    assert whole.status == "done"

    store = Store(tmp_path / "killed")
    killer = Killer(1, 8, 24)  # before there is a checkpoint, after an evaluation, at the end
    for _ in range(3):
        with pytest.raises(KilledError):
            run(asked, store, watcher=killer, checkpoint_seconds=0)
        assert store.get(asked) is None
    assert essence(run(asked, store, watcher=killer, checkpoint_seconds=0)) == essence(whole)
    assert [path.name for path in store.path(asked).parent.iterdir() if path.is_file()] == [
        store.path(asked).name
    ]


def test_same_seed_same_bits_and_another_seed_others(tmp_path: Path) -> None:
    asked = RunConfig("digits_cnn", "hvadam", scale="smoke")
    one, two = (run(asked, Store(tmp_path / name)) for name in ("one", "two"))
    assert essence(one) == essence(two)
    other = run(RunConfig("digits_cnn", "hvadam", scale="smoke", seed=1), Store(tmp_path))
    assert essence(other) != essence(one)
    assert one.curve[-1].valid["accuracy"] > 70
    assert set(one.curve[-1].diagnostics["model"]) == {"hidden_gain", "alignment", "restarts"}


def test_a_recorded_run_is_not_run_again(toys: Builder, store: Store) -> None:
    first = run(config(), store)
    toys.before_step = lambda step: pytest.fail("trained")
    assert run(config(), store) == Record.from_json(first.to_json())


def test_a_record_of_other_settings_or_defaults_is_not_taken_for_this_run(
    toys: Builder, store: Store
) -> None:
    first = run(config(), store)
    for part, changed in (("settings", {"steps": 12}), ("options", {"lr": 0.5})):
        old = {**first.basis, part: {**first.basis[part], **changed}}
        store.put(replace(first, basis=old, train_seconds=-1.0))
        again = run(config(), store)
        assert essence(again) == essence(first)
        assert again.basis == first.basis
        assert again.train_seconds > 0


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
    assert built("swa")["start"] == 18
    assert built("swa", start=3)["start"] == 3


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


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_a_damaged_checkpoint_is_ignored_with_a_warning(
    damage: str, toys: Builder, tmp_path: Path
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "damaged")
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(10))
    path = store.checkpoint_path(config())
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"cut": content[:-100], "flipped": content, "foreign": b"hello"}[damage])
    with pytest.warns(UserWarning, match="checksum is wrong: the run starts over"):
        record = run(config(), store)
    assert essence(record) == essence(whole)


def test_a_checkpoint_of_other_versions_is_not_gone_on_with(toys: Builder, tmp_path: Path) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "other")
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(10))
    path = store.checkpoint_path(config())
    content = checkpoints.load(path)
    assert content is not None
    checkpoints.save(path, {**content, "made_with": {"torch": "0.4"}})
    with pytest.warns(UserWarning, match="0.4.*starts over"):
        assert essence(run(config(), store)) == essence(whole)


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


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError(), "out_of_memory", "MemoryError"),
        (torch.OutOfMemoryError("CUDA"), "out_of_memory", "OutOfMemoryError: CUDA"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), "out_of_memory", "9"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", "No space left"),
        (KeyError("two\nlines"), "failed", "KeyError: 'two"),
    ],
)
def test_a_run_that_cannot_go_on_says_why_and_resumes(
    error: Exception, status: str, reason: str, toys: Builder, tmp_path: Path
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "failed")

    def fail(step: int) -> None:
        if step == 15:
            raise error

    toys.before_step = fail
    record = run(config(), store)
    assert (record.status, record.test, len(record.curve)) == (status, {}, 3)
    assert reason in record.reason
    assert "\n" not in record.reason
    assert store.get(config()) == Record.from_json(record.to_json())

    steps: list[int] = []
    toys.before_step = steps.append
    assert essence(run(config(), store)) == essence(whole)
    assert steps == list(range(12, 24))  # from the last evaluation on


def test_what_cannot_start_is_not_recorded(toys: Builder, store: Store) -> None:
    for bad, match in (
        (config(options={"nonsense": 1}), "no option 'nonsense'"),
        (config("sgd", options={"lr": -1.0}), "Invalid learning rate"),
        (config(settings={"stpes": 1}), "no setting 'stpes'; did you mean 'steps'"),
        (config(scale="huge"), "toy has no scale 'huge'; there are smoke, paper"),
        (config(protocol="inherited"), "toy has no protocol 'inherited'"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            run(bad, store)
    assert not store.folder.exists()


def test_a_full_disk_keeps_the_last_checkpoint(
    toys: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "full")
    real, calls = os.fsync, []

    def fsync(file: int) -> None:
        calls.append(file)
        if 3 <= len(calls) <= last:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(records.os, "fsync", fsync)
    last = 3  # the checkpoint does not fit, the record does
    record = run(config(), store, checkpoint_seconds=0)
    assert (record.status, len(calls) > 3) == ("disk_full", True)
    calls.clear()
    last = 1000  # nothing fits
    with pytest.raises(OSError, match=r"cannot write .*No space left.*Make room") as caught:
        run(config(), store, checkpoint_seconds=0)
    assert caught.value.errno == errno.ENOSPC
    last = 0  # there is room again
    assert essence(run(config(), store)) == essence(whole)


def test_an_interrupt_saves_and_passes_through(toys: Builder, tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    whole = run(config(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "interrupted")

    class Hand(Watcher):
        def stepped(self, step: int, loss: float) -> None:
            if step == 9:
                signal.raise_signal(signal.SIGINT)
            assert step <= 9

    with pytest.raises(KeyboardInterrupt):
        run(config(), store, watcher=Hand())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    begun: list[tuple[int, int]] = []

    class Eye(Watcher):
        def started(self, config: RunConfig, steps: int, step: int, curve: Any) -> None:
            begun.append((step, len(curve)))

    assert essence(run(config(), store, watcher=Eye())) == essence(whole)
    assert begun == [(9, 2)]


def test_a_watcher_can_prune(toys: Builder, store: Store) -> None:
    class Judge(Watcher):
        def evaluated(self, point: Point) -> None:
            if point.step == 12:
                raise PrunedError("worse than the median.")

    record = run(config(), store, watcher=Judge())
    assert (record.status, record.reason) == ("pruned", "worse than the median.")
    assert [point.step for point in record.curve] == [0, 6, 12]
    assert run(config(), store) == Record.from_json(record.to_json())


def test_seconds_go_on_after_a_kill(
    toys: Builder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr(training, "perf_counter", lambda: float(next(ticks)))
    with pytest.raises(KilledError):
        run(config(), store, watcher=Killer(18))
    record = run(config(), store)
    assert [point.seconds for point in record.curve] == [0.0, 6.0, 12.0, 18.0, 24.0]
    assert (record.train_seconds, record.evaluation_seconds) == (24.0, 6.0)


DRIVER = """
import os, random, signal, sys, tempfile, time
from pathlib import Path
from hvadam.bench.config import RunConfig
from hvadam.bench.records import Store
from hvadam.bench.runner import Watcher, run

class Starts(Watcher):
    def started(self, config, steps, step, curve):
        print(step, flush=True)

config = RunConfig("digits_cnn", "hvadam", scale="smoke", settings={"epochs": 4})
with tempfile.TemporaryDirectory() as folder:  # what a first run loads, children need not
    run(config, Store(Path(folder)))
random.seed(0)
kills = 0
while True:
    child = os.fork()
    if child == 0:
        run(config, Store(Path(sys.argv[1])), watcher=Starts(), checkpoint_seconds=0)
        os._exit(0)
    if kills < 8:
        time.sleep(random.uniform(0.1, 0.5))
        os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] == 0:
        break
    kills += 1
"""


def test_kill_9_at_any_moment(tmp_path: Path) -> None:
    asked = RunConfig("digits_cnn", "hvadam", scale="smoke", settings={"epochs": 4})
    whole = run(asked, Store(tmp_path / "whole"))
    store = Store(tmp_path / "killed")
    driver = [sys.executable, "-c", DRIVER, str(store.folder)]
    done = subprocess.run(driver, capture_output=True, text=True, check=True, timeout=300)
    starts = [int(step) for step in done.stdout.split()]
    assert starts == sorted(starts)
    assert starts[-1] > 0
    assert done.stderr == ""  # no checkpoint was ever refused
    record = store.get(asked)
    assert record is not None
    assert essence(record) == essence(Record.from_json(whole.to_json()))
    assert [path.name for path in store.path(asked).parent.iterdir()] == [store.path(asked).name]


@pytest.mark.slow
def test_the_same_command_after_kill_9_resumes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hvadam.bench.cli", "run", "digits_cnn", "hvadam"]
    command += ["--lr", "0.001", "--set", "task.epochs=30", "--store", str(tmp_path / "killed")]
    options, settings = {"lr": 0.001}, {"epochs": 30}
    asked = RunConfig("digits_cnn", "hvadam", options=options, settings=settings)
    store = Store(tmp_path / "killed")
    path = store.checkpoint_path(asked)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before = path.stat().st_mtime_ns if path.exists() else 0
        while not (path.exists() and path.stat().st_mtime_ns > before):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert store.get(asked) is None
    last = subprocess.run(command, check=True, capture_output=True, text=True)
    assert last.stderr == ""  # no checkpoint was refused
    record = store.get(asked)
    assert record is not None
    whole = run(asked, Store(tmp_path / "whole"))
    assert essence(record) == essence(Record.from_json(whole.to_json()))


def test_bars_show_rate_loss_metric_and_gain(store: Store) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    asked = RunConfig("digits_mlp", "hvadam", scale="smoke")
    with Bars(console) as bars:
        watcher = bars.watch()
        watcher.started(asked, 100, 0, ())
        diagnostics = {"model": {"hidden_gain": 1.5, "alignment": 0.3, "restarts": 2.0}}
        watcher.evaluated(Point(20, 640, 1.0, 0.5, {"accuracy": 0.75, "loss": 1.0}, diagnostics))
        watcher.stepped(50, 0.25)
        bars._progress.refresh()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for words in ("digits_mlp hvadam seed 0", " 50%", "steps/s", "loss 0.25"):
        assert words in shown
    assert "accuracy 0.75, gain 1.5, restarts 2" in shown


def test_environment_names_the_commit() -> None:
    about = environment.describe()
    assert about["versions"]["torch"] == torch.__version__
    assert "loop" in about["hvadam_kernels"]
    json.dumps(about, allow_nan=False)
    if about["commit"] is not None:
        assert len(about["commit"]) == 40
        assert isinstance(about["dirty"], bool)


def test_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "runs"
    command = ["run", "digits_mlp", "hvadam", "--scale", "smoke", "--store", str(store)]
    command += ["--lr", "0.01", "--set", "betas=0.8,0.99", "--set", "task.epochs=1", "--seed", "3"]
    assert main(command) == 0
    [said, where] = capsys.readouterr().out.splitlines()
    [record] = Store(store)
    assert record.config == RunConfig(
        *("digits_mlp", "hvadam", "smoke", 3),
        options={"lr": 0.01, "betas": [0.8, 0.99]},
        settings={"epochs": 1},
    )
    assert ": done; accuracy " in said
    assert where == f"recorded: {Store(store).path(record.config)}"
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("already recorded: ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["digits", "adam"], ["'digits'", "did you mean 'digits_"]),
        (["digits_mlp", "adm"], ["'adm'", "did you mean 'adam'?"]),
        (["digits_mlp", "adam", "--lr", "fast"], ["--lr", "fast"]),
        (["digits_mlp", "hvadam", "--lr", "-1"], ["lr must be >= 0", "-1"]),
        (["digits_mlp", "adam", "--lr", "1", "--set", "lr=2"], ["either --lr or --set"]),
        (["digits_mlp", "adam", "--set", "betas"], ["--set", "NAME=VALUE", "betas"]),
        (["digits_mlp", "adam", "--set", "betas=1"], ["betas", "(0.9, 0.999)", "got 1"]),
        (["digits_mlp", "adam", "--set", "gamma=1"], ["no option 'gamma'"]),
        (["digits_mlp", "adam", "--set", "task.epochs=x"], ["epochs", "'x'"]),
        (["digits_mlp", "adam", "--scale", "large"], ["no scale 'large'", "smoke, laptop, paper"]),
        (["digits_mlp", "adam", "--protocol", "inherited"], ["no protocol 'inherited'"]),
        (["digits_mlp", "adam", "--seed", "-1"], ["--seed", "-1"]),
        (["digits_mlp"], ["contender"]),
    ],
    ids=" ".join,
)
def test_bad_arguments_of_run_give_one_line_and_write_nothing(
    arguments: list[str],
    named: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    [line] = errors.splitlines()
    assert line.startswith("hvadam: ")
    assert all(word.lower() in line.lower() for word in named)
    assert list(tmp_path.iterdir()) == []


def test_tasks_are_listed_with_their_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["tasks"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in tasks.names())
    assert "accuracy, more is better; smoke, laptop, paper; needs no data" in printed


def test_drafts_of_the_killed_are_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others = tmp_path / "a.json", tmp_path / ".b.json.7"
    for left in (tmp_path / ".a.json.12345", others):
        left.write_bytes(b"half")
    write_atomically(path, b"whole")
    assert sorted(tmp_path.iterdir()) == [others, path]

    def clear_away(draft: Path, target: Path) -> None:
        draft.unlink()
        raise FileNotFoundError

    monkeypatch.setattr(Path, "replace", clear_away)
    write_atomically(path, b"the same")  # somebody else was quicker
    assert path.read_bytes() == b"whole"
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "c.json", b"nobody was")
