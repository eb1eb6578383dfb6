"""What `hvadam run` and `hvadam tasks` print."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvadam.bench import data, tasks
from hvadam.bench.config import RunConfig
from hvadam.bench.progress import Bars
from hvadam.bench.records import FINAL, Record, Store
from hvadam.bench.runner import run
from hvadam.bench.tasks import Task


def run_and_show(config: RunConfig, store: Store, threads: int, console: Console) -> Record:
    """Run under a progress bar, or look up what is recorded; then say how it went."""
    before = store.get(config)
    with Bars(console) as bars:
        record = run(config, store, watcher=bars.watch(), threads=threads)
    known = before is not None and before.status in FINAL
    for line in report(record, store.path(config), known):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return record


def report(record: Record, path: Path, known: bool) -> list[str]:
    """How a run went, in two lines; `known` if it was recorded before."""
    config, metric = record.config, record.metric
    parts = [record.status if not record.reason else f"{record.status}: {record.reason}"]
    if record.curve:
        last = record.curve[-1]
        parts.append(f"{metric} {last.valid[metric]:.4g} on validation at step {last.step}")
    if metric in record.test:
        parts.append(f"{record.test[metric]:.4g} on test")
    parts.append(f"{record.train_seconds:.1f} s of training")
    options = "".join(f", {name} {value}" for name, value in config.options.items())
    return [
        f"{config.task} {config.scale}, {config.contender}{options}, seed {config.seed}: "
        + "; ".join(part.rstrip(".") for part in parts),
        f"already recorded: {path}, delete it to run again" if known else f"recorded: {path}",
    ]


def tasks_table() -> Table:
    """The tasks: what counts in each, at which scales it runs, and whether its data is here."""
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


def data_of(task: Task) -> str:
    """Such as "needs no data", "reads ptb", or "reads ptb, which is missing"."""
    if not task.data:
        return "needs no data"
    missing = [name for name in task.data if data.available(name) is not None]
    if len(missing) < len(task.data):
        lacks = f"; {', '.join(missing)} is missing" if missing else ""
    else:
        lacks = ", which is missing" if len(missing) == 1 else ", which are missing"
    return f"reads {', '.join(task.data)}{lacks}"
