"""What `hvadam sweep` and `hvadam recipes` print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from hvadam.bench import recipes, stats, tasks
from hvadam.bench.costs import Costs
from hvadam.bench.engines import Engine
from hvadam.bench.records import MEASURED, Store
from hvadam.bench.search import EXTENSIONS, Study
from hvadam.bench.sweep import Progress, Result, Sweep


def sweep_and_show(
    studies: Sequence[Study], store: Store, engine: Engine, console: Console
) -> bool:
    """Run studies under a bar, then say who came where; whether all of them got to their end."""
    return run_and_show(Sweep(studies, store), engine, console)


def run_and_show(
    sweep: Sweep, engine: Engine, console: Console, about: str = "sweep", later: float = 0.0
) -> bool:
    """The same for a sweep that others follow, `about` what it is and taking so many seconds."""
    try:
        with _bars(console) as bars:
            shown = bars.add_task(about, total=None, note="")

            def watch(progress: Progress) -> None:
                note = _note(progress, later)
                bars.update(shown, completed=progress.over, total=progress.total, note=note)

            sweep.run(engine, watch)
    finally:
        engine.close()
    for _, group in groupby(sweep.results(), key=lambda result: id(result.study)):
        results = list(group)
        if any(result.runs for result in results):
            console.print(standings(results))
    for task, reason in sweep.refused.items():
        console.print(f"{task} cannot run: {reason}", markup=False, highlight=False)
    unfinished = [
        run for result in sweep.results() for run in result.runs if run.status == "failed"
    ]
    for run in unfinished:
        config = run.config
        line = f"{config.task}, {config.entrant}, seed {config.seed} failed: {run.reason}"
        console.print(line, markup=False, highlight=False)
    return not sweep.refused and not unfinished


def standings(results: Sequence[Result]) -> Table:
    """The entries of one study: what each chose, what that cost, and how it did on the test set."""
    study = results[0].study
    runs = [run for result in results for run in result.runs]
    metric = stats.Metric.of(runs[0])
    reference = next((r for r in results if r.entry.entrant == study.reference), None)
    rivals = sum(bool(result.runs) for result in results) - (reference is not None)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.title = f"{runs[0].title or study.task}, {study.scale} scale"
    for heading in (
        "contender",
        "options",
        "trials",
        "examples",
        "lost",
        f"test {metric.name}",
        "n",
    ):
        table.add_column(heading, overflow="fold")
    if reference is not None:
        table.add_column(f"against {study.reference}")
    for result in results:
        values = [stats.final(run, metric) for run in result.runs]
        summary = stats.summarize(values)
        lost = sum(run.status not in MEASURED for run in result.tuned.runs)
        cells = [
            result.entry.entrant,
            _options(result.tuned.best or {}),
            _trials(result),
            f"{result.tuning_examples:,}",
            str(lost) if lost else "",
            f"{summary.median:.4g} [{summary.lower:.4g}, {summary.upper:.4g}]",
            str(summary.n),
        ]
        if reference is not None:
            against = stats.compare(result.runs, reference.runs, metric, comparisons=max(1, rivals))
            cells.append("" if result is reference else _verdict(against))
        table.add_row(*map(Text, cells))
    table.caption = (
        "options: the choice on the validation split. trials: with +n, of them n past the grid's "
        f"edge, at most {EXTENSIONS}; ! if the choice is still at the edge. examples: seen in "
        "tuning. lost: trials that diverged, were pruned or failed. test: median and quartiles "
        "over n fresh seeds. against: median difference seed by seed, with its 95% interval "
        f"corrected for {max(1, rivals)} comparisons; a tie if that has 0 in it."
    )
    return table


def recipes_table(store: Store | None) -> Table:
    """The recipes: what each makes again, of what, and what it costs by the records of a store."""
    costs = Costs(store or ())
    known = set(tasks.names())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("recipe", "reproduces", "tasks or command", "scale", "runs", "cost"):
        table.add_column(heading, overflow="fold")
    for name in recipes.names():
        recipe = recipes.get(name)
        lines = [t if t in known else f"{t} (not here yet)" for t in recipe.tasks]
        scales = dict.fromkeys(study.scale for study in recipe.studies)
        cost = _duration(recipe.seconds(costs)) if recipe.studies else "minutes"
        table.add_row(
            *map(Text, (name, recipe.reproduces, "\n".join([*lines, *recipe.commands]))),
            *map(Text, (" ".join(scales), str(recipe.runs or ""), cost)),
        )
    table.caption = (
        "cost: all runs one after the other, by runs on record where there are any, else a guess: "
        "at laptop scale on one core, at paper scale on one large GPU. Divide by the workers."
    )
    return table


def _bars(console: Console) -> Bars:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Bars(*columns, console=console, transient=True, disable=not console.is_terminal)


def _note(progress: Progress, later: float) -> str:
    running = ", ".join(f"{config.entrant} on {config.task}" for config in progress.running)
    return f"about {_duration(progress.seconds_left + later)} left; {running}"


def _trials(result: Result) -> str:
    tuned = result.tuned
    grown = f" (+{tuned.extensions}{' !' if tuned.at_edge else ''})" if tuned.extensions else ""
    return f"{len(tuned.trials)}{grown}"


def _options(options: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def _verdict(against: stats.Comparison) -> str:
    low, high, _ = against.interval
    if math.isnan(against.difference):
        return "no seeds in common"
    verdict = against.verdict
    if verdict != "tie" and not against.settled:
        verdict = f"{verdict}?"  # too few seeds to tell it from chance
    return f"{verdict}: {against.difference:+.3g} [{low:+.3g}, {high:+.3g}], p {against.p:.2g}"


def _duration(seconds: float) -> str:
    """In the largest unit of which there are at least two.

    Example:
        >>> _duration(40), _duration(600), _duration(7200), _duration(9e5)
        ('40 s', '10 min', '2 h', '10 days')
    """
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
