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

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hvadam_bench.registry import instead

_FAMILIES = ("images", "imagenet", "text")


class DataError(ValueError):
    """Data that cannot be trained on: missing, cut short, corrupt, or not what it is named."""


@dataclass(frozen=True)
class File:
    """An official file: its place below the data folder, and what is known of its content."""

    path: str
    size: int | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Source:
    """A download: its address, its sum, and where its files go.

    Attributes:
        url: The data set's own.
        md5: Official sum of what is downloaded, where one is known.
        files: Where it goes, below the data folder. An archive gives these of its members, found
            by the last part of their names, and nothing else.
    """

    url: str
    files: Sequence[str]
    md5: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A data set: its licence, where it is from, and how it is read and checked.

    Attributes:
        name: As `names()` lists it.
        title: For people.
        licence: What its makers allow.
        load: Data folder -> content, checked from the first byte to the last.
        missing: Data folder -> None, or what has to be put where. Looks at names and sizes only.
        sources: What `hvadam data get` downloads.
        absent: Data folder -> official files that it can be used without, but that are not there.
        by_hand: How to get it where nothing can be downloaded without a person.
    """

    name: str
    title: str
    licence: str
    load: Callable[[Path], Any]
    missing: Callable[[Path], str | None]
    sources: Sequence[Source] = ()
    absent: Callable[[Path], Sequence[str]] = lambda root: ()
    by_hand: str = ""


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
        raise ValueError(f"there is no data set {name!r}; {instead(name, sorted(known))}")
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


def lacking(root: Path, files: Sequence[File]) -> str | None:
    """Return None if all files are there in their official sizes, else what to put where."""
    absent = [file.path for file in files if not (root / file.path).is_file()]
    if absent:
        halves = [path for path in absent if (root / f"{path}.part").exists()]
        also = f" ({', '.join(halves)}: half downloaded)" if halves else ""
        return f"put {', '.join(absent)} into {root}{also}"
    for file in files:
        got = (root / file.path).stat().st_size
        if file.size is not None and got != file.size:
            return (
                f"{root / file.path} has {got:,} bytes where the official file has {file.size:,}; "
                "delete it and get it again"
            )
    return None


def read(root: Path, file: File) -> bytes:
    """Read a file's bytes, unzipped if its name ends in .gz.

    Raises:
        DataError: it is missing, cut short, corrupt, or not the official one.
    """
    path = root / file.path
    reason = lacking(root, [file])
    if reason is not None:
        raise DataError(f"data: {reason}.")
    raw = path.read_bytes()
    got = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    if file.md5 is not None and got != file.md5:
        raise refusal(path, f"the official file with md5 {file.md5}", f"md5 {got}")
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise refusal(path, "a whole gzip file", str(error)) from error


def refusal(path: Path, expected: str, got: str) -> DataError:
    """Return the error for a file that is there but wrong."""
    return DataError(f"data: {path} must be {expected}, got {got}; delete it and get it again.")
