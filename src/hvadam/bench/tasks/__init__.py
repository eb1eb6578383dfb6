"""The trainings that contenders are compared on, one file each.

Example:
    >>> from hvadam.bench import tasks
    >>> tasks.get("digits_mlp").metric
    'accuracy'
"""

from __future__ import annotations

import difflib
import pkgutil
from importlib import import_module

from hvadam.bench.tasks._spec import Problem, Split, Task, Update

__all__ = ["Problem", "Split", "Task", "Update", "get", "names"]


def names() -> list[str]:
    """The tasks, by name."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_")


def get(name: str) -> Task:
    """One task.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in names():
        close = difflib.get_close_matches(name, names())
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names())}."
        raise ValueError(f"hvadam.bench.tasks: there is no {name!r}; {hint}")
    return import_module(f"{__name__}.{name}").TASK
