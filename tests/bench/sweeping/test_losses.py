"""Runs that a sweep loses to the machine: tried again, and never taken for bad results."""

from __future__ import annotations

import errno
import io
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from made_sweeps import Inline, Instant, peak
from rich.console import Console

from hvadam_bench.analysis.grouping import group
from hvadam_bench.cli.showing import sweep_and_show
from hvadam_bench.pages.report.page import render_markdown
from hvadam_bench.running import checkpoints, files
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record, Store
from hvadam_bench.sweeping import sweep as sweeping
from hvadam_bench.sweeping.engines import Engine, LocalEngine, Outcome
from hvadam_bench.sweeping.search import TUNING_SEED, Contest, Entry
from hvadam_bench.sweeping.sweep import Sweep

ADAM = Contest("digits_mlp", [Entry("adam")], seeds=1)
PAIR = Contest("digits_mlp", [Entry("adam"), Entry("sgd")], seeds=3)
KILLED = "the worker process was killed by signal 9."


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PAUSES", (0.0, 0.0))


def losing(losses: dict[tuple[str, float, int], int]) -> Callable[[RunConfig], Record | Outcome]:
    """Lose runs of (contender, lr, seed) so often; the others end as by `peak`."""
    left = dict(losses)

    def end(config: RunConfig) -> Record | Outcome:
        key = (config.contender, config.options["lr"], config.seed)
        if left.get(key, 0):
            left[key] -= 1
            return Outcome(config, "crashed", KILLED)
        return peak(3e-3)(config)

    return end


def shown(sweep: Sweep, engine: Engine) -> tuple[bool, str]:
    """Run a sweep; return whether it got to its end, and what it printed."""
    console = Console(file=io.StringIO(), width=200)
    finished = sweep_and_show(sweep, engine, console)
    assert isinstance(console.file, io.StringIO)
    return finished, console.file.getvalue()


def test_a_lost_trial_is_tried_again_when_all_else_is_over(store: Store) -> None:
    sweep = Sweep([ADAM], store)
    engine = Instant(store, losing({("adam", 3e-3, TUNING_SEED): 2}))
    sweep.run(engine)
    tried = Counter(config.options["lr"] for config in engine.tuning)
    assert tried.pop(3e-3) == 3
    assert set(tried.values()) == {1}
    assert [config.options["lr"] for config in engine.tuning[-2:]] == [3e-3, 3e-3]
    assert sweep.lost == []
    [reading] = sweep.results()
    assert reading.results is not None
    assert reading.results.contenders["adam"].options == {"lr": 3e-3}
    assert {record.status for record in store} == {"done"}


def test_what_stays_lost_chooses_nothing_extends_nothing_and_has_no_verdict(store: Store) -> None:
    end = losing({("adam", 3e-3, TUNING_SEED): 3})
    sweep, engine = Sweep([PAIR], store), Instant(store, end)
    finished, said = shown(sweep, engine)
    assert not finished
    [loss] = sweep.lost
    assert (loss.planned.config.options, loss.attempts) == ({"lr": 3e-3}, 3)
    adam = [job for job in engine.jobs if job.config.contender == "adam"]
    assert {job.role for job in adam} == {"tuning"}  # nobody was chosen
    assert len({job.config.key for job in adam}) == 7  # and the grid did not grow
    [reading] = sweep.results()
    assert reading.unfinished == ["adam"]
    # Without a reference nobody has a verdict.
    assert said.count("no verdict: Adam is not finished") == 2
    [line] = [line for line in said.splitlines() if "lost (" in line]
    assert line == (
        "digits_mlp: Adam has no verdict, because 1 run was lost (0.003, seed 1000): "
        f"{KILLED} Type the same again to try again."
    )
    [failed] = [record for record in store if record.status == "failed"]
    assert failed.reason == KILLED
    # The next sweep tries again, and ends as if nothing had been.
    later = Instant(store, end)
    finished, said = shown(Sweep([PAIR], store), later)
    assert finished
    assert later.jobs[0].config.options == {"lr": 3e-3}
    assert "no verdict" not in said
    assert "lost (" not in said


def test_a_lost_seed_of_the_winner_leaves_no_verdict_in_the_table_and_in_the_report(
    store: Store,
) -> None:
    sweep = Sweep([PAIR], store)
    finished, said = shown(sweep, Instant(store, losing({("sgd", 3e-3, 1): 3})))
    assert not finished
    assert said.count("no verdict: SGD is not finished") == 1
    assert "SGD has no verdict, because 1 run was lost (0.003, seed 1)" in said
    [results] = group(store)
    assert {name: one.is_cut for name, one in results.contenders.items()} == {
        **{"adam": False, "sgd": True}
    }
    assert "no verdict: SGD is not finished" in render_markdown(store)
    shown(Sweep([PAIR], store), Instant(store, peak(3e-3)))
    assert "no verdict" not in render_markdown(store)


def test_a_disk_that_is_full_throughout_gives_no_verdict_and_no_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    study = Contest("digits_mlp", PAIR.entries, "smoke", settings={"epochs": 1}, trials=3, seeds=1)

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        sweep, engine = Sweep([study], store), Inline(store)
        finished, said = shown(sweep, engine)
    assert not finished
    assert len({job.config.key for job in engine.jobs}) == 2 * 3  # no extension
    assert len(engine.jobs) == 3 * 2 * 3
    assert len(sweep.lost) == 2 * 3
    assert "tie" not in said
    assert "SGD has no verdict, because 3 runs were lost (" in said
    assert "No space left on device" in said
    assert list(store) == []
    # There is room again.
    finished, said = shown(Sweep([study], store), Inline(store))
    assert finished
    assert "against Adam" in said


def test_memory_that_runs_out_once_moves_no_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Contest(
        "digits_mlp", [Entry("adam")], "smoke", settings={"epochs": 1}, trials=3, seeds=1
    )
    whole, scarce = Store(tmp_path / "whole"), Store(tmp_path / "scarce")
    Sweep([study], whole).run(Inline(whole))
    steps, real = iter(range(10**9)), torch.optim.Adam.step

    def step(self: torch.optim.Adam) -> object:
        if next(steps) % 40 == 20:
            raise MemoryError
        return real(self)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    sweep, engine = Sweep([study], scarce), Inline(scarce)
    sweep.run(engine)
    assert len(engine.jobs) > len(list(whole))
    assert sweep.lost == []
    ends = [{r.config.key: (r.status, r.test) for r in store} for store in (whole, scarce)]
    assert ends[0] == ends[1]


def test_checkpoints_beside_records_that_are_over_are_cleared_away(store: Store) -> None:
    Sweep([ADAM], store).run(Instant(store, peak(3e-3)))
    over = next(iter(store))
    left = store.checkpoint_path(over.config)
    draft = left.with_name(f".{left.name}.{files.HOST}.999999999")
    lock = checkpoints.lock_path(left)
    under_way = store.checkpoint_path(RunConfig("digits_mlp", "adam", seed=77))
    for path in (left, draft, lock, under_way):
        path.write_bytes(b"")
    Sweep([ADAM], store).run(Instant(store, peak(3e-3)))
    assert [path.exists() for path in (left, draft, lock)] == [False] * 3
    assert under_way.exists()


def test_runs_that_another_process_makes_are_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "TICK", 0.0)
    monkeypatch.setattr(sweeping, "ELSEWHERE_SECONDS", 0.0)
    busy = {3e-4: 2, 1e-3: 1}  # lr -> how often another process is found at it
    sweep, notes = Sweep([ADAM], store), []

    def end(config: RunConfig) -> Record | Outcome:
        lr = config.options["lr"]
        if config.seed == TUNING_SEED and busy.get(lr, 0):
            busy[lr] -= 1
            if lr == 1e-3:  # the other one gets to its end
                store.put(peak(3e-3)(config))
            return Outcome(config, "busy", "made by another")
        return peak(3e-3)(config)

    engine = Instant(store, end)
    sweep.run(engine, lambda progress: notes.append(progress.elsewhere))
    assert max(notes) == 1
    assert notes[-1] == 0
    tried = Counter(config.options["lr"] for config in engine.tuning)
    assert (tried[3e-4], tried[1e-3], max(tried.values())) == (3, 1, 3)
    assert sweep.lost == []
    assert [reading.finished for reading in sweep.results()] == [True]


@pytest.mark.slow
def test_workers_killed_again_and_again_leave_no_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    settings = {"epochs": 400}  # long enough to be killed
    study = Contest("digits_mlp", [Entry("adam")], "smoke", settings=settings, trials=3, seeds=1)
    sweep, engine = Sweep([study], store), LocalEngine(store, 2)
    kills: list[int] = []

    def kill(progress: object) -> None:
        for worker in engine._workers:
            if worker.config is not None and worker.config.options["lr"] == 1e-3:
                os.kill(worker.process.pid, 9)
                kills.append(worker.process.pid)

    watched = sweep.run
    sweep.run = lambda engine, watch: watched(engine, kill)  # pyright: ignore
    finished, said = shown(sweep, engine)
    assert not finished
    assert len(set(kills)) == 3
    assert (
        "Adam has no verdict, because 1 run was lost (0.001, seed 1000): the worker process" in said
    )
    assert len([run for run in store if run.status == "done"]) == 2


def test_who_lost_everything_has_a_row_that_says_so(store: Store) -> None:
    lost = {("sgd", arm.options["lr"], TUNING_SEED): 3 for arm in PAIR.arms()[1].trials}
    finished, said = shown(Sweep([PAIR], store), Instant(store, losing(lost)))
    assert not finished
    [row] = [line for line in said.splitlines() if line.strip().startswith("SGD")]
    assert "no judged runs" in row
    assert "no verdict: SGD is not finished" in row
    assert "SGD has no verdict, because 7 runs were lost (" in said


def test_a_report_has_no_verdict_where_hvadams_runs_were_lost(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam"), Entry("hvadam")], seeds=3)
    shown(Sweep([study], store), Instant(store, losing({("hvadam", 3e-3, 2): 3})))
    text = " ".join(render_markdown(store).split())
    assert "Runs of HVAdam are not finished, so there is no verdict; sweep again." in text


def test_damaged_records_are_named_moved_aside_and_made_again(store: Store) -> None:
    Sweep([PAIR], store).run(Instant(store, peak(3e-3)))
    paths = sorted(store.folder.rglob("*.json"))
    whole = {path: path.read_bytes() for path in paths}
    for path in (broken := paths[::4]):
        path.write_bytes(path.read_bytes()[:-30])
    sweep, engine = Sweep([PAIR], store), Instant(store, peak(3e-3))
    finished, said = shown(sweep, engine)
    assert finished
    assert {job.config.key for job in engine.jobs} == {path.stem for path in broken}
    for path in broken:
        assert f"sweep: {path} is damaged (" in said
        assert path.with_name(f"{path.name}.unreadable").exists()
    assert {path: path.read_bytes() for path in paths} == whole
    assert "is damaged" not in shown(Sweep([PAIR], store), engine)[1]
