"""Files written whole or not at all, and lines of text packed into one of them.

The same lines give the same bytes, so that a version control sees no change where there is none.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import zlib
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one.

    Drafts that others left are cleared away: they were killed, or are about to write what is there.

    Raises:
        OSError: it cannot be written, with the name of the file; no draft is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            draft.replace(path)
        except FileNotFoundError:  # cleared away by who wrote the file just now
            if not path.exists():
                raise
        _clear_drafts(path)
    except OSError as error:
        error.filename = str(path)  # a full disk names none, and nobody knows the draft
        error.filename2 = None
        raise
    finally:
        draft.unlink(missing_ok=True)


def write_packed(path: Path, lines: Iterable[str]) -> None:
    """Write lines into one compressed file, unless it holds these very bytes.

    Neither a time nor a name goes into it. Another zlib may pack other bytes of the same lines.
    """
    buffer = io.BytesIO()
    # Not `gzip.compress`, whose header depends on the version of Python.
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as packed:
        packed.write("".join(f"{line}\n" for line in lines).encode())
    content = buffer.getvalue()
    if path.exists() and path.read_bytes() == content:
        _clear_drafts(path)  # of one killed before it could put the same bytes in place
    else:
        write_atomically(path, content)


def read_packed(path: Path) -> list[str]:
    """Return the lines of a packed file.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        return gzip.decompress(path.read_bytes()).decode().splitlines()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{error}") from error


def _clear_drafts(path: Path) -> None:
    """Delete what others who were killed left of writing a file."""
    for left in path.parent.glob(glob.escape(f".{path.name}.") + "*"):
        left.unlink(missing_ok=True)
