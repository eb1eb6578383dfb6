"""Recipes whose studies are not folders of their own yet; the others are studies' plans."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from hvadam_bench.sweeping.recipe import Recipe


def names() -> list[str]:
    """Return the names of the recipes."""
    return list(_all())


def get(name: str) -> Recipe:
    """Return a recipe by its name."""
    return _all()[name]


@cache
def _all() -> dict[str, Recipe]:
    files = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    found = [recipe for file in files for recipe in import_module(f"{__name__}.{file}").RECIPES]
    return {recipe.name: recipe for recipe in found}
