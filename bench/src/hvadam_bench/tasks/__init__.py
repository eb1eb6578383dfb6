"""The trainings that contenders are compared on, by family.

Example:
    >>> from hvadam_bench import tasks
    >>> tasks.get("digits_mlp").metric
    'accuracy'
"""

from __future__ import annotations

from hvadam_bench.registry import Registry, Source
from hvadam_bench.tasks._spec import Problem, Split, Task, Update, fit_batch

__all__ = ["Problem", "Split", "Task", "Update", "fit_batch", "get", "names", "source"]

_REGISTRY = Registry("task", __name__, "TASK", Task)


def names() -> list[str]:
    """Return the names of the tasks, sorted."""
    return _REGISTRY.names()


def get(name: str) -> Task:
    """Return one task.

    Raises:
        ValueError: there is none of that name, or it cannot be loaded.
    """
    return _REGISTRY.get(name)


def source(name: str) -> Source | None:
    """Return the file of a user's task and a hash of its code; None of ours, or of none."""
    return _REGISTRY.source(name)
