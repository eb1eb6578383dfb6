"""Runs as bars on a terminal: how fast, how long still, the loss, the metric, and HVAdam's gain.

In a pipe or a log they are lines instead, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Point, Record
from hvadam_bench.running.runner import Watcher
from hvadam_bench.terminal import Lines, make_bars, print_line

REFRESH_SECONDS = 0.5  # drawing takes milliseconds, from the core that trains
# As terminals have it room for; the full names are the optimizer's.
SHORT = {"hidden_gain": "gain", "restarts": "restarts"}


class Bars:
    """A bar for every run under way, while the context lasts; lines where there is no terminal.

    Example:
        >>> import io
        >>> with Bars(Console(file=io.StringIO())) as bars:
        ...     watcher = bars.watch()  # for `run`; one for each run
    """

    def __init__(self, console: Console) -> None:
        self.progress = make_bars(
            console,
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[note]}"),
            refresh_per_second=1 / REFRESH_SECONDS,
        )
        self.console = console
        self.lines = Lines(console)

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def watch(self) -> Watcher:
        """Return a watcher of one run, in any thread."""
        return _Bar(self)


class _Bar(Watcher):
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._shown: TaskID | None = None
        self._next = 0.0
        self._measures = ""

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        label = self._label = f"{config.task} {config.entrant} seed {config.seed}"
        self._steps = steps
        if step:
            print_line(f"resuming {label} at step {step:,} of {steps:,}", self._bars.console)
        self._shown = self._bars.progress.add_task(
            label, total=steps, completed=step, rate="", note=""
        )
        self._metric = tasks.get(config.task).metric
        self._begun = monotonic(), step
        if curve:
            self.evaluated(curve[-1])

    def stepped(self, step: int, loss: float) -> None:
        now = monotonic()
        if self._shown is None or now < self._next:
            return
        self._next = now + REFRESH_SECONDS
        since, first = self._begun
        rate = (step - first) / max(now - since, 1e-9)
        pace, note = f"{rate:.3g} steps/s", f"loss {loss:.4g}{self._measures}"
        self._bars.progress.update(self._shown, completed=step, rate=pace, note=note)
        self._bars.lines.tell(f"{self._label}: step {step:,} of {self._steps:,}, {pace}, {note}")

    def evaluated(self, point: Point) -> None:
        measures = {self._metric: point.valid.get(self._metric)}
        for network, values in point.diagnostics.items():
            of = "" if len(point.diagnostics) == 1 else f"{network} "
            measures.update({f"{of}{SHORT[key]}": values.get(key) for key in SHORT})
        self._measures = "".join(f", {k} {v:.4g}" for k, v in measures.items() if v is not None)

    def ended(self, record: Record) -> None:
        if self._shown is not None:
            self._bars.progress.remove_task(self._shown)
