"""Sweeps by their names: the paper's tables and figures, some of our own, and any task."""

from __future__ import annotations

from hvadam_bench import contenders, tasks
from hvadam_bench.registry import instead, own_hint
from hvadam_bench.studies.demo.plan import RECIPE as DEMO
from hvadam_bench.studies.paper.plan import RECIPES as PAPER
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import Contest, Entry


def names() -> list[str]:
    """Return the names of the recipes, in the order of the paper."""
    return list(_all())


def get(name: str) -> Recipe:
    """Return a recipe by its name, or the plain contest of a task, by the task's.

    Raises:
        ValueError: there is neither of that name.

    Example:
        >>> get("demos")
        Traceback (most recent call last):
        ValueError: there is no recipe or task 'demos'; did you mean 'demo'? A task of your own ...
    """
    if name in _all():
        return _all()[name]
    known = [*names(), *tasks.names()]
    if name not in known:
        known_ones = f"{instead(name, known)} {own_hint('task')}"
        raise ValueError(f"there is no recipe or task {name!r}; {known_ones}")
    contest = Contest(name, [Entry(contenders.REFERENCE), Entry(contenders.OURS)])
    return Recipe(name, f"ours: {tasks.get(name).title}, whoever competes", [contest])


def _all() -> dict[str, Recipe]:
    return {one.name: one for one in (DEMO, *PAPER)}
