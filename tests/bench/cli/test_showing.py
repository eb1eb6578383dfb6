"""What a sweep or a study prints on its way: that it goes on, how far it is, what it leaves."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from made_records import made_record
from rich.console import Console
from rich.progress import Progress

from hvadam_bench import terminal
from hvadam_bench.cli import showing, study
from hvadam_bench.cli.showing import sweep_and_show
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping import sweep as sweeping
from hvadam_bench.sweeping.engines import Job, Outcome
from hvadam_bench.sweeping.search import Contest, Entry
from hvadam_bench.sweeping.sweep import Sweep

STUDY = Contest("digits_mlp", [Entry("adam"), Entry("hvadam")], trials=1, seeds=3)


class Clock:
    """A clock that tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """An engine of one worker that ends a run at each call, a minute later by the clock."""

    slots = 1

    def __init__(self, store: Store, clock: Clock, interrupted_after: int = 99) -> None:
        self.store, self.clock, self.left = store, clock, interrupted_after
        self.jobs: list[Job] = []
        self.closed = False

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def wait(self, seconds: float) -> Sequence[Outcome]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.clock.now += 60
        config = self.jobs[-1].config
        self.store.put(made_record(90 + config.seed, config=config))
        return [Outcome(config, "over")]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (terminal, sweeping):
        monkeypatch.setattr(module, "monotonic", clock)
    return clock


def printed(store: Store, engine: Worker, **how: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=how.get("on_a_terminal", False))
    try:
        sweep_and_show(Sweep([STUDY], store), engine, console)
    finally:
        assert engine.closed
        text = file.getvalue()
    return text


def test_a_log_gets_a_line_now_and_then(store: Store, clock: Clock) -> None:
    lines = printed(store, Worker(store, clock)).splitlines()
    told = [line for line in lines if line.startswith("sweep: ")]
    # The guess was 40 seconds a run, until the records say 1.1.
    assert told[0] == "sweep: 1 of 6 runs, about 6 s left; Adam on digits_mlp"
    assert told[-1] == "sweep: 6 of 6 runs, about 0 s left"
    assert len(told) == 6


def test_going_on_says_so(store: Store, clock: Clock) -> None:
    assert "resuming" not in printed(store, Worker(store, clock))
    again = printed(store, Worker(store, clock))
    assert again.splitlines()[0] == (f"sweep: resuming, 6 of 6 runs are recorded in {store.folder}")


def test_stopping_says_what_it_waits_for(
    store: Store, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    file = io.StringIO()
    engine = Worker(store, clock, interrupted_after=2)
    with pytest.raises(KeyboardInterrupt):
        sweep_and_show(Sweep([STUDY], store), engine, Console(file=file))
    assert engine.closed
    last = file.getvalue().splitlines()[-1]
    assert last == "stopping: the runs under way write their checkpoints"
    assert printed(store, Worker(store, clock)).startswith("sweep: resuming, 2 of 6 runs")


def test_the_bar_moves_while_a_run_does(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    def update(self: Progress, task_id: Any, **fields: Any) -> None:
        seen.append(fields["completed"])

    monkeypatch.setattr(Progress, "update", update)

    class Slow(Worker):
        """One whose runs take three looks."""

        looks = 0

        def wait(self, seconds: float) -> Sequence[Outcome]:
            self.looks += 1
            self.clock.now += 10
            return super().wait(seconds) if self.looks % 3 == 0 else []

    printed(store, Slow(store, clock), on_a_terminal=True)
    first = [0.0, 0.25, 0.5]  # of 40 seconds
    assert seen[:3] == pytest.approx([0.95 * share for share in first])
    assert seen[-1] == 6
    assert seen == sorted(seen)


def test_how_to_read_the_tables_is_said_once(store: Store, clock: Clock) -> None:
    file = io.StringIO()
    both = [STUDY, Contest("digits_cnn", STUDY.entries, trials=1, seeds=3)]
    console = Console(file=file, width=80)
    sweep_and_show(Sweep(both, store), Worker(store, clock), console)
    assert file.getvalue().count("95% bootstrap interval") == 1
    assert file.getvalue().count("against Adam") == 2


def test_a_line_names_a_few_of_many_runs() -> None:
    running = [RunConfig("digits_mlp", "adam", seed=seed) for seed in range(64)]
    note = showing._note(sweeping.Progress(0, 64, 60.0, running, 0.0), 0.0)
    assert note.endswith("Adam on digits_mlp, 60 more")


def shown(monkeypatch: pytest.MonkeyPatch, *, on_a_terminal: bool) -> str:
    """Return what is seen of a study of 40 parts of two seconds each."""
    now = 0.0
    for module in (terminal, study):
        monkeypatch.setattr(module, "monotonic", lambda: now)
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=on_a_terminal)
    with study.bar(console) as shown_bar:
        advance = shown_bar.advance
        advance("the first part", 0.0)
        for part in range(40):
            now += 2
            advance(f"part {part}" if part % 2 else "", 1 / 40)
    return file.getvalue()


def test_a_log_hears_of_a_study_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, on_a_terminal=False).splitlines()
    assert lines[0] == "part 1: 8% of all, about 74 s left"  # at six seconds: a line every five
    assert lines[1].startswith("part 5: ")
    assert 5 <= len(lines) <= 16


def test_the_bar_on_a_terminal_moves_with_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = re.findall(r"(\d+)%", shown(monkeypatch, on_a_terminal=True))
    assert len(set(seen)) > 30
    assert (seen[0], seen[-1]) == ("0", "100")
