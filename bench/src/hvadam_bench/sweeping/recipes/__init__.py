"""Every table and figure of the paper as something to run, one file each, and some of our own.

Where the paper trained, there are two recipes. The plain one gives every contender the same tuning
budget around its published settings and holds a validation split out. `<name>_published` repeats
what was done: baselines at the settings of the literature, HVAdam over the grid of appendix F, with
the inherited protocol, which looks at the test set throughout.

Example:
    >>> from hvadam_bench.sweeping import recipes
    >>> recipes.get("demo").tasks[0]
    'digits_autoencoder'
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from hvadam_bench import contenders, tasks
from hvadam_bench.registry import instead, own_hint
from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

__all__ = ["Recipe", "get", "names"]

# The order of the paper. A file that is not named here is listed after these.
ORDER = (
    *("demo", "laptop", "evidence", "cifar", "imagenet", "vit", "lstm"),
    *("iwslt14", "gan", "sngan", "diffusion", "ablation"),
)


def names() -> list[str]:
    """Return the names of the recipes, in the order of the paper."""
    return list(_all())


def get(name: str) -> Recipe:
    """Return a recipe by its name, or the plain study of a task, by the task's.

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
    study = Contest(name, [Entry(contenders.REFERENCE), Entry(contenders.OURS)])
    return Recipe(name, f"ours: {tasks.get(name).title}, whoever competes", [study])


@cache
def _all() -> dict[str, Recipe]:
    rank = {name: i for i, name in enumerate(ORDER)}
    files = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    files.sort(key=lambda name: (rank.get(name, len(ORDER)), name))
    found = [recipe for file in files for recipe in import_module(f"{__name__}.{file}").RECIPES]
    return {recipe.name: recipe for recipe in found}
