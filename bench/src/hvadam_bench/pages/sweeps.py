"""What `hvadam sweep` and `hvadam recipes` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table as RichTable
from rich.text import Text

from hvadam.info import usable_cores
from hvadam_bench.analysis.grouping import ContenderRuns, describe_options
from hvadam_bench.analysis.judging import judge_against
from hvadam_bench.contenders import ABLATION, label
from hvadam_bench.pages.cells import against_cell, reading_of_verdicts, units_of, value_cell
from hvadam_bench.pages.formatting import counted, duration
from hvadam_bench.pages.rendering import say
from hvadam_bench.pages.report.answers import answer_of
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.records import MEASURED, Store
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.contest_results import ContestResults
from hvadam_bench.sweeping.costs import SECONDS, Costs
from hvadam_bench.sweeping.engines import Engine, make_engine
from hvadam_bench.sweeping.search import EXTENSIONS
from hvadam_bench.sweeping.sweep import Progress, Sweep
from hvadam_bench.terminal import Lines
from hvadam_bench.terminal import say as say_line

WORDS = "terminal.txt.j2"
NAMED = 4  # runs under way that a line names


def sweep_and_show(sweep: Sweep, engine: Engine, console: Console) -> bool:
    """Run a sweep under a bar, then say who came where; tell whether it got to its end."""
    return _run_and_show(sweep, engine, console, "sweep", 0.0)


def gather_and_show(sweeps: Sequence[Sweep], workers: int | None, console: Console) -> bool:
    """Run sweeps one after the other on this machine, and pack the records after each.

    Args:
        sweeps: What to run.
        workers: Runs at a time; None for as many as there are cores.
        console: Where progress and tables go.

    Returns:
        Whether all of them got to their end.
    """
    finished = True
    for place, sweep in enumerate(sweeps, 1):
        engine = make_engine("local", sweep.store, workers)
        later = sum(one.progress(engine.slots).seconds_left for one in sweeps[place:])
        about = f"{sweep.name}, {place} of {len(sweeps)}"
        finished &= _run_and_show(sweep, engine, console, about, later)
        sweep.store.pack()
    return finished


def standings(reading: ContestResults) -> Table:
    """Return a table of one study: what each entry chose at what cost, and how it did in the test.

    Args:
        reading: A study that has results.
    """
    study, results = reading.contest, reading.results
    assert results is not None, "only studies with results have standings"
    units, reference = units_of(results), results.contenders.get(study.reference)
    judged = judge_against(results, study.reference)
    rows: list[list[Cell | str]] = []
    for arm in study.arms():
        one = results.contenders[arm.entry.entrant]
        rows.append(
            [
                Cell.of(one.name),
                value_cell(one, results, units),
                *([against_cell(one, reference, results, judged)] if reference else ()),
                str(len(one.judged)),
                describe_options(one.options),
                _trials(one, len(arm.trials)),
                f"{one.tuning_examples:,}",
                str(sum(run.status not in MEASURED for run in one.tuning) or ""),
            ]
        )
    heads = ["", f"test {units.name}"]
    heads += [f"against {label(study.reference)}"] if reference else []
    heads += ["n", "lr chosen", "trials", "examples", "ended early"]
    title = f"{results.title}, {study.scale} scale"
    told = reading_of_verdicts(results, len(judged)) if judged else ""
    return Table(heads, rows, title, say(WORDS, "standings", EXTENSIONS, told))


def recipes_table(store: Store | None) -> RichTable:
    """Return a table of the recipes: what each makes again, of what, and at what cost.

    A name takes one line, whatever the width: beside it stand lines that may break between words.
    """
    costs = Costs(store.contents().records if store else ())
    table = RichTable(
        box=None,
        show_header=False,
        pad_edge=False,
        caption=Text(say(WORDS, "recipes")),
        caption_justify="left",
    )
    table.add_column(no_wrap=True)
    table.add_column()
    for name in recipes.names():
        recipe = recipes.get(name)
        table.add_row(Text(name, style="bold"), Text(recipe.reproduces))
        for line in [*recipe.commands, ", ".join(recipe.tasks), _cost(recipe, costs)]:
            if line:
                table.add_row("", Text(line, style="dim"))
    return table


def _cost(recipe: recipes.Recipe, costs: Costs) -> str:
    """Return how many runs a recipe has and how long they take, all together and here."""
    if not recipe.studies:
        return "some minutes"
    seconds, cores = recipe.seconds(costs), usable_cores()
    scales = list(dict.fromkeys(study.scale for study in recipe.studies))
    where = f"about {duration(seconds)} on one large GPU"
    if all(scale in SECONDS for scale in scales):
        where = f"about {duration(seconds / cores)} on {counted(cores, 'core')}"
    return f"{' and '.join(scales)} scale, {counted(recipe.runs, 'run')}, {where}"


def _run_and_show(sweep: Sweep, engine: Engine, console: Console, about: str, later: float) -> bool:
    for line in sweep.discarded:
        say_line(f"{about}: {line}", console)
    before = sweep.progress(1)
    if before.over:
        recorded = f"{before.over:,} of {before.total:,} runs are recorded in {sweep.store.folder}"
        say_line(f"{about}: resuming, {recorded}", console)
    lines = Lines(console)
    try:
        with _bars(console) as bars:
            shown = bars.add_task(about, total=before.total, completed=before.over, note="")

            def watch(progress: Progress) -> None:
                note = f"{progress.over:,} of {progress.total:,} runs, {_note(progress, later)}"
                done = progress.over + progress.part
                bars.update(shown, completed=done, total=progress.total, note=note)
                lines.tell(f"{about}: {note}")

            sweep.run(engine, watch)
    except KeyboardInterrupt:
        say_line("stopping: the runs under way write their checkpoints", console)
        raise
    finally:
        engine.close()
    readings = [reading for reading in sweep.results() if reading.results]
    tables = [standings(reading) for reading in readings]
    for place, table in enumerate(tables, 1):
        again = any(later.reading == table.reading for later in tables[place:])
        console.print((replace(table, reading="") if again else table).terminal())
        study, results = readings[place - 1].contest, readings[place - 1].results
        if results and study.reference not in ABLATION and len(results.race) > 1:
            say_line(answer_of(results).told, console)
    for task, reason in sweep.refused.items():
        say_line(f"{task} cannot run: {reason}", console)
    for line in _lost(sweep):
        say_line(line, console)
    return not sweep.refused and not sweep.lost


def _lost(sweep: Sweep) -> list[str]:
    """Return a line for each contender, task and reason, that names the runs that were lost."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for loss in sweep.lost:
        config = loss.planned.config
        run = f"{describe_options(config.options)}, seed {config.seed}"
        groups.setdefault((config.task, label(config.entrant), loss.reason), []).append(run)
    return [
        say(WORDS, "lost", task, who, runs, reason) for (task, who, reason), runs in groups.items()
    ]


def _bars(console: Console) -> Bars:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[note]}"),
    )
    return Bars(*columns, console=console, transient=True, disable=not console.is_terminal)


def _note(progress: Progress, later: float) -> str:
    told = [f"{label(config.entrant)} on {config.task}" for config in progress.running]
    more = [f"{len(told) - NAMED:,} more"] if len(told) > NAMED else []
    running = ", ".join([*told[:NAMED], *more])
    if progress.elsewhere:
        waiting = f"waiting for {counted(progress.elsewhere, 'run')} of other processes"
        running = f"{running}; {waiting}" if running else waiting
    left = f"about {duration(progress.seconds_left + later)} left"
    return f"{left}; {running}" if running else left


def _trials(one: ContenderRuns, planned: int) -> str:
    trials = len(one.trials)
    more = trials - planned
    grown = f" (+{more}{' !' if one.at_edge else ''})" if more > 0 else ""
    return f"{trials}{grown}"
