"""Every table and figure of the paper as something to run, one file each, and some of our own.

Where the paper trained, there are two recipes. The plain one gives every contender the same tuning
budget around its published settings and holds a validation split out. `<name>_published` repeats
what was done: baselines at the settings of the literature, HVAdam over the grid of appendix F, with
the inherited protocol, which looks at the test set throughout.

Example:
    >>> from hvadam.bench import recipes
    >>> recipes.get("demo").tasks[0]
    'digits_mlp'
"""

from __future__ import annotations

import difflib
import pkgutil
from functools import cache
from importlib import import_module

from hvadam.bench.recipes._spec import Recipe

__all__ = ["Recipe", "get", "names"]

# The order of the paper. A file that is not named here is listed after these.
ORDER = (
    *("demo", "laptop", "evidence", "toy", "worked_example", "cifar", "imagenet", "vit", "lstm"),
    *("iwslt14", "gan", "sngan", "diffusion", "ablation", "theorems"),
)


def names() -> list[str]:
    """The recipes, in the order of the paper."""
    return list(_all())


def get(name: str) -> Recipe:
    """One recipe.

    Raises:
        ValueError: there is none of that name.

    Example:
        >>> get("demos")
        Traceback (most recent call last):
        ValueError: hvadam.bench.recipes: there is no 'demos'; did you mean 'demo'?
    """
    if name not in _all():
        close = difflib.get_close_matches(name, names())
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names())}."
        raise ValueError(f"hvadam.bench.recipes: there is no {name!r}; {hint}")
    return _all()[name]


@cache
def _all() -> dict[str, Recipe]:
    rank = {name: i for i, name in enumerate(ORDER)}
    files = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    files.sort(key=lambda name: (rank.get(name, len(ORDER)), name))
    found = [recipe for file in files for recipe in import_module(f"{__name__}.{file}").RECIPES]
    return {recipe.name: recipe for recipe in found}
