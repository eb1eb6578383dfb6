"""Running under bars, and what is printed of it: one run, a sweep, several sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn

from hvadam_bench.analysis.grouping import describe_options
from hvadam_bench.contenders import ABLATION, label
from hvadam_bench.pages.formatting import counted, duration, number, seconds
from hvadam_bench.pages.report.answers import answer_of
from hvadam_bench.pages.standings import standings
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.runner import discarded, recorded, run
from hvadam_bench.sweeping.engines import Engine, make_engine
from hvadam_bench.sweeping.sweep import Progress, Sweep
from hvadam_bench.terminal import Lines, make_bars, print_line

NAMED = 4  # runs under way that a line names


def run_and_show(config: RunConfig, store: Store, threads: int, console: Console) -> Record:
    """Run under a progress bar, or look up what is recorded; then say how it went."""
    known = recorded(config, store) is not None
    if why := discarded(config, store):
        print_line(f"{why}: run again", console)
    with Bars(console) as bars:
        record = run(config, store, watcher=bars.watch(), threads=threads)
    path = store.path(config)
    print_line(_told(record), console)
    print_line(
        f"already recorded: {path}, delete it to run again" if known else f"recorded: {path}",
        console,
    )
    return record


def _told(record: Record) -> str:
    """Return how a run went, in a line."""
    config, metric = record.config, record.metric
    parts = [record.status if not record.reason else f"{record.status}: {record.reason}"]
    if record.curve:
        last = record.curve[-1]
        parts.append(f"{metric} {number(last.valid[metric], 4)} on validation at step {last.step}")
    if metric in record.test:
        parts.append(f"{number(record.test[metric], 4)} on test")
    parts.append(f"{seconds(record.train_seconds)} of training")
    options = "".join(f", {name} {value}" for name, value in config.options.items())
    told = "; ".join(part.rstrip(".") for part in parts)
    return f"{config.task} {config.scale}, {config.contender}{options}, seed {config.seed}: {told}"


def gather_and_show(sweeps: Sequence[Sweep], workers: int | None, console: Console) -> bool:
    """Run sweeps one after the other here, and pack their records; return whether all ended well.

    There are as many workers as cores, if that is None.
    """
    finished = True
    for place, sweep in enumerate(sweeps, 1):
        engine = make_engine("local", sweep.store, workers)
        later = sum(one.progress(engine.slots).seconds_left for one in sweeps[place:])
        about = f"{sweep.name}, {place} of {len(sweeps)}" if len(sweeps) > 1 else sweep.name
        finished &= sweep_and_show(sweep, engine, console, about, later)
        if sweep.store.packed is not None:
            sweep.store.pack()
    return finished


def sweep_and_show(
    sweep: Sweep, engine: Engine, console: Console, about: str = "sweep", later: float = 0.0
) -> bool:
    """Run a sweep under a bar, then print its tables; return whether it ran to its end.

    Args:
        sweep: What to run.
        engine: Where it runs; it is closed then.
        console: Where progress and tables go.
        about: How lines of progress begin.
        later: The seconds that what comes after it will take.
    """
    for line in sweep.discarded:
        print_line(f"{about}: {line}", console)
    before = sweep.progress(1)
    if before.over:
        kept = f"{before.over:,} of {before.total:,} runs are recorded in {sweep.store.folder}"
        print_line(f"{about}: resuming, {kept}", console)
    lines = Lines(console)
    columns = ("{task.description}", BarColumn(bar_width=30), "{task.fields[note]}")
    try:
        with make_bars(console, *columns) as bars:
            shown = bars.add_task(about, note="")

            def watch(progress: Progress) -> None:
                note = f"{progress.over:,} of {progress.total:,} runs, {_note(progress, later)}"
                done = progress.over + progress.part
                bars.update(shown, completed=done, total=progress.total, note=note)
                lines.tell(f"{about}: {note}")

            sweep.run(engine, watch)
    except KeyboardInterrupt:
        print_line("stopping: the runs under way write their checkpoints", console)
        raise
    finally:
        engine.close()
    _show_results(sweep, console)
    for task, reason in sweep.refused.items():
        print_line(f"{task} cannot run: {reason}", console)
    for line in _lost(sweep):
        print_line(line, console)
    return not sweep.refused and not sweep.lost


def _show_results(sweep: Sweep, console: Console) -> None:
    """Print a table of each contest and its answer; how to read the tables is said once."""
    readings = [
        (one.contest, one.results, standings(one)) for one in sweep.results() if one.results
    ]
    for place, (study, results, table) in enumerate(readings, 1):
        again = any(later.reading == table.reading for *_, later in readings[place:])
        console.print((replace(table, reading="") if again else table).terminal())
        if study.reference not in ABLATION and len(results.race) > 1:
            print_line(answer_of(results).told, console)


def _lost(sweep: Sweep) -> list[str]:
    """Return a line for each contender, task and reason, that names the runs that were lost."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for loss in sweep.lost:
        config = loss.planned.config
        one = f"{describe_options(config.options)}, seed {config.seed}"
        groups.setdefault((config.task, label(config.entrant), loss.reason), []).append(one)
    return [
        f"{task}: {who} has no verdict, because {counted(len(runs), 'run')} "
        f"{'was' if len(runs) == 1 else 'were'} lost ({'; '.join(runs)}): {reason} "
        "Type the same again to try again."
        for (task, who, reason), runs in groups.items()
    ]


def _note(progress: Progress, later: float) -> str:
    told = [f"{label(config.entrant)} on {config.task}" for config in progress.running]
    more = [f"{len(told) - NAMED:,} more"] if len(told) > NAMED else []
    running = ", ".join([*told[:NAMED], *more])
    if progress.elsewhere:
        waiting = f"waiting for {counted(progress.elsewhere, 'run')} of other processes"
        running = f"{running}; {waiting}" if running else waiting
    left = f"about {duration(progress.seconds_left + later)} left"
    return f"{left}; {running}" if running else left
