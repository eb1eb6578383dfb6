"""What the commands that list something print: a name on one line, its particulars below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from hvadam.info import usable_cores
from hvadam_bench import contenders, data, tasks
from hvadam_bench.pages.formatting import counted, duration
from hvadam_bench.running.records import Store
from hvadam_bench.studies import _recipes as recipes
from hvadam_bench.sweeping.costs import SECONDS, Costs
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.tasks import Task


def tasks_table() -> Table:
    """Return a table of the tasks: what counts, at which scales, and whether the data is here."""
    rows = []
    for task in map(tasks.get, tasks.names()):
        better = "more" if task.goal == "max" else "less"
        how = f"{task.metric}, {better} is better; {', '.join(task.scales)}; {data_of(task)}"
        rows.append((task.name, f"{task.title} ({task.source})", how))
    return _table(rows)


def contenders_table() -> Table:
    """Return a table of the contenders: label, paper, whose code runs, and defaults."""
    rows = []
    for spec in map(contenders.get, contenders.names()):
        options = ", ".join(f"{option} {value}" for option, value in spec.defaults.items())
        rows.append((spec.name, f"{spec.label} ({spec.paper})", spec.source, options))
    return _table(rows)


def recipes_table(store: Store) -> Table:
    """Return a table of the recipes: what each makes again, of what, and at what cost."""
    costs = Costs(store.contents().records)
    table = _table(
        (one.name, one.reproduces, *one.commands, ", ".join(one.tasks), _cost(one, costs))
        for one in map(recipes.get, recipes.names())
    )
    table.caption = Text(
        "Times are those of runs on record where there are any, else a guess by how much is "
        "trained. `hvadam sweep NAME` runs one; stopped, the same command goes on."
    )
    table.caption_justify = "left"
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


def _table(rows: Iterable[tuple[str, ...]]) -> Table:
    """Return a table in which a name takes one line, whatever the width."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, title, *below in rows:
        table.add_row(Text(name, style="bold"), Text(title))
        for line in filter(None, below):
            table.add_row("", Text(line, style="dim"))
    return table


def _cost(recipe: Recipe, costs: Costs) -> str:
    """Return how many runs a recipe has and how long they take, all together and here."""
    if not recipe.studies:
        return "some minutes"
    seconds, cores = recipe.seconds(costs), usable_cores()
    scales = list(dict.fromkeys(study.scale for study in recipe.studies))
    where = f"about {duration(seconds)} on one large GPU"
    if all(scale in SECONDS for scale in scales):
        where = f"about {duration(seconds / cores)} on {counted(cores, 'core')}"
    return f"{' and '.join(scales)} scale, {counted(recipe.runs, 'run')}, {where}"
