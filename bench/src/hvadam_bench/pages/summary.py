"""What `hvadam run` and `hvadam tasks` print."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvadam_bench import contenders, data, tasks
from hvadam_bench.pages.formatting import number, seconds
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.runner import discarded, recorded, run
from hvadam_bench.tasks import Task
from hvadam_bench.terminal import say


def run_and_show(config: RunConfig, store: Store, threads: int, console: Console) -> Record:
    """Run under a progress bar, or look up what is recorded; then say how it went."""
    known = recorded(config, store) is not None
    if why := discarded(config, store):
        say(f"{why}: run again", console)
    with Bars(console) as bars:
        record = run(config, store, watcher=bars.watch(), threads=threads)
    for line in report(record, store.path(config), known):
        say(line, console)
    return record


def report(record: Record, path: Path, known: bool) -> list[str]:
    """Return how a run went, in two lines; `known` if it was recorded before."""
    config, metric = record.config, record.metric
    parts = [record.status if not record.reason else f"{record.status}: {record.reason}"]
    if record.curve:
        last = record.curve[-1]
        parts.append(f"{metric} {number(last.valid[metric], 4)} on validation at step {last.step}")
    if metric in record.test:
        parts.append(f"{number(record.test[metric], 4)} on test")
    parts.append(f"{seconds(record.train_seconds)} of training")
    options = "".join(f", {name} {value}" for name, value in config.options.items())
    return [
        f"{config.task} {config.scale}, {config.contender}{options}, seed {config.seed}: "
        + "; ".join(part.rstrip(".") for part in parts),
        f"already recorded: {path}, delete it to run again" if known else f"recorded: {path}",
    ]


def tasks_table() -> Table:
    """Return a table of the tasks: what counts, at which scales, and whether the data is here."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name in tasks.names():
        task = tasks.get(name)
        better = "more" if task.goal == "max" else "less"
        table.add_row(Text(name, style="bold"), Text(f"{task.title} ({task.source})"))
        table.add_row(
            "",
            Text(
                f"{task.metric}, {better} is better; {', '.join(task.scales)}; {data_of(task)}",
                style="dim",
            ),
        )
    return table


def contenders_table() -> Table:
    """Return a table of the contenders: label, paper, whose code runs, and defaults."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name in contenders.names():
        spec = contenders.get(name)
        table.add_row(Text(name, style="bold"), Text(f"{spec.label} ({spec.paper})"))
        options = ", ".join(f"{option} {value}" for option, value in spec.defaults.items())
        for line in (spec.source, options):
            table.add_row("", Text(line, style="dim"))
    return table


def data_of(task: Task) -> str:
    """Return which data a task reads, and whether it is here."""
    if not task.data:
        return "needs no data"
    missing = [name for name in task.data if data.available(name) is not None]
    if len(missing) < len(task.data):
        lacks = f"; {', '.join(missing)} is missing" if missing else ""
    else:
        lacks = ", which is missing" if len(missing) == 1 else ", which are missing"
    return f"reads {', '.join(task.data)}{lacks}"
