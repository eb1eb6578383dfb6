"""Data sets in their official layouts, as NumPy arrays and text, checked before anyone trains.

They are read below one folder, `root()`. A file that is missing, cut short, corrupt or half
downloaded (``*.part``) is refused by name.

Example:
    >>> from hvadam_bench import data
    >>> corpus = data.load("pydoc")  # every Python carries it: needs no download
    >>> "".join(corpus.vocabulary[i] for i in corpus.train[:13])
    'The "assert" '
    >>> data.available("pydoc") is None
    True
"""

from __future__ import annotations

import difflib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from hvadam_bench.data._spec import DataError, DataSet, File, Source

__all__ = ["DataError", "DataSet", "File", "Source", "available", "get", "load", "names", "root"]

_FAMILIES = ("images", "imagenet", "text")


def names() -> list[str]:
    """Return the names of the data sets, sorted."""
    return sorted(_all())


def get(name: str) -> DataSet:
    """Return one data set: where it is from, and how it is read.

    Raises:
        ValueError: there is none of that name.
    """
    known = _all()
    if name not in known:
        close = difflib.get_close_matches(name, known)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}."
        raise ValueError(f"there is no data set {name!r}; {hint}")
    return known[name]


def available(name: str) -> str | None:
    """Return None if the files are there, else which to put where; `load` checks contents."""
    return get(name).missing(root())


def load(name: str) -> Any:
    """Read the content of a data set; its family's module says which class.

    Raises:
        DataError: it is missing or cannot be trusted; the message says what to do.
    """
    data_set = get(name)
    reason = data_set.missing(root())
    if reason is not None:
        way = f"`hvadam data get {name}` downloads it" if data_set.sources else data_set.by_hand
        raise DataError(f"{name}: {reason}; {way}.")
    return data_set.load(root())


def root() -> Path:
    """Return the data folder: what HVADAM_DATA names, or a place for caches."""
    named = os.environ.get("HVADAM_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "hvadam"


def _all() -> dict[str, DataSet]:
    families = (import_module(f"{__name__}.{family}") for family in _FAMILIES)
    return {data_set.name: data_set for family in families for data_set in family.DATA_SETS}
