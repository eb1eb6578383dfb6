"""Files written whole or not at all, locks, and lines of text packed into one file.

The same lines give the same bytes, so that a version control sees no change where there is none.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import socket
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hvadam_bench.registry import RefusedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

HOST = socket.gethostname()
# Seconds after which a draft is nobody's, even where its process cannot be asked for.
DRAFT_SECONDS = 86400.0


class BusyError(RefusedError):
    """Another process makes it; the message says which one, as far as that is known."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one.

    Drafts of processes that were killed are cleared away, those of living ones are left alone.

    Raises:
        OSError: it cannot be written, with the name of the file; no draft is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{HOST}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        clear_drafts(path)
    except OSError as error:  # a full disk names no file, and nobody knows the draft
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, what: str = "it") -> Iterator[None]:
    """Enter a context that one process at a time can be in, on this machine or a shared folder.

    The system gives a lock back when its process ends, however that ends. Where a system has no
    such locks nobody is kept out.

    Args:
        path: The lock's file, which is there as long as the lock is held, or after a kill.
        what: What is made while the lock is held, for the error.

    Raises:
        BusyError: another process is in it.
    """
    file = _acquire(path, what)
    try:
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)  # while it is held: whoever waits looks again
            os.close(file)


def _acquire(path: Path, what: str) -> int | None:
    """Return the descriptor of a file that is locked now; None where there are no locks."""
    if fcntl is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(file, 1000).decode(errors="replace") or "another process"
            os.close(file)
            why = f"{what} is being made by {holder}; wait for it, or stop it."
            raise BusyError(why) from error
        except OSError:  # a file system without locks
            os.close(file)
            path.unlink(missing_ok=True)
            return None
        with suppress(FileNotFoundError):  # deleted by who held it before
            if os.path.samestat(os.fstat(file), path.stat()):
                with suppress(OSError):  # a full disk: then nobody is told whose it is
                    os.truncate(file, 0)
                    os.write(file, f"process {os.getpid()} on {HOST}".encode())
                return file
        os.close(file)


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
        clear_drafts(path)  # of one killed before it could put the same bytes in place
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


def clear_drafts(path: Path) -> None:
    """Delete what processes that were killed left of writing a file."""
    for draft in path.parent.glob(glob.escape(f".{path.name}.") + "*"):
        with suppress(FileNotFoundError):  # put in place, or cleared away, just now
            if not _may_live(draft.name.removeprefix(f".{path.name}."), draft.stat().st_mtime):
                draft.unlink()


def _may_live(writer: str, written: float) -> bool:
    """Tell whether "host.process" may still be writing; where it cannot be asked, for a day."""
    host, _, process = writer.rpartition(".")
    if host != HOST or os.name != "posix" or not process.isdigit():
        return time.time() - written < DRAFT_SECONDS
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True
