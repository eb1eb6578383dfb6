"""``hvadam data get``: download a data set from its makers, go on where a download broke off.

What is on its way has a name that ends in ``.part``, which nothing else reads. Only when its sum is
right does it get its own name, and only when the whole data set has been read is it called there.
"""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from hvadam_bench import data
from hvadam_bench.data import DataError, DataSet, Source
from hvadam_bench.terminal import Lines, print_line

Report = Callable[[int, int | None], None]  # bytes so far, and of how many if known
_CHUNK = 1 << 18
_SECONDS = 30  # without a byte, until a connection counts as dead


def show_list(console: Console) -> None:
    """Print a table of all data sets: whether they are there, and their licences."""
    table = Table(caption=f"data folder: {data.root()}", caption_justify="left")
    for heading in ("name", "what", "there", "licence"):
        table.add_column(heading, overflow="fold")
    for name in data.names():
        data_set = data.get(name)
        absent = data_set.absent(data.root())
        there = "no" if data.available(name) else f"lacks {len(absent)} files" if absent else "yes"
        table.add_row(name, data_set.title, there, data_set.licence)
    console.print(table)


def obtain(data_set: DataSet, root: Path, console: Console) -> None:
    """Make a data set complete, and say so.

    Raises:
        DataError: it cannot be downloaded, or is not what it should be; the message says what to
            put where by hand. What has arrived stays, and the next call goes on from there.
    """
    name = data_set.name
    if _is_complete(data_set, root):
        console.print(f"{name} is there, complete and checked: {root}")
        return
    if not data_set.sources:
        raise DataError(
            f"data get: {name} cannot be downloaded for you: {data_set.by_hand}. "
            f"Then {data_set.missing(root)}."
        )
    console.print(f"{data_set.title}\nlicence: {data_set.licence}")
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        for source in data_set.sources:
            if _is_fetched(source, root):
                continue
            try:
                fetch(source, root, _bar(progress, Path(source.url).name, console))
            except DataError as error:
                reason = data_set.missing(root)
                by_hand = f" Or by hand: {reason}." if reason else ""
                raise DataError(f"{error}{by_hand}") from error
    data_set.load(root)
    console.print(f"{name} is there, complete and checked: {root}")


def _bar(progress: Progress, name: str, console: Console) -> Report:
    """Return what shows a download, and says it if it goes on from a part."""
    bar = progress.add_task(name, total=None)
    lines = Lines(console)
    first = True

    def report(done: int, total: int | None) -> None:
        nonlocal first
        so_far = decimal(done) + (f" of {decimal(total)}" if total else "")
        if first and done:
            print_line(f"resuming {name} at {so_far}", console)
        first = False
        progress.update(bar, completed=done, total=total)
        lines.tell(f"{name}: {so_far}")

    return report


def fetch(source: Source, root: Path, report: Report) -> None:
    """Download one source and put its files into their places."""
    is_archive = source.url.endswith((".tar.gz", ".tgz", ".zip"))
    target = root / (Path(source.url).name if is_archive else source.files[0])
    part = target.with_name(f"{target.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        _download(source.url, part, report)
        got = _md5(part)
        if source.md5 is not None and got != source.md5:
            part.unlink()
            raise DataError(
                f"data get: {source.url} must have the md5 {source.md5}, got {got}; what "
                "came was deleted. Try again, or later."
            )
        if is_archive:
            _unpack(part, source, root)
            part.unlink()
        else:
            part.replace(target)
    except OSError as error:
        raise DataError(f"data get: cannot write {error.filename or part}: {error}.") from error


def _download(url: str, part: Path, report: Report) -> None:
    """Append to the part what it lacks."""
    start = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(request, timeout=_SECONDS)
    except HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing follows: the part is whole, its sum will tell
            return
        raise DataError(f"data get: {url} answered {error.code} {error.reason}.") from error
    except (URLError, HTTPException, OSError) as error:
        raise DataError(f"data get: cannot reach {url}: {error}.") from error
    with response:
        _receive(url, response, part, start if response.status == 206 else 0, report)


def _receive(url: str, response: HTTPResponse, part: Path, start: int, report: Report) -> None:
    length = response.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    done, cause = start, None
    with part.open("ab" if start else "wb") as file:
        report(done, total)
        while True:
            try:
                chunk = response.read(_CHUNK)
            except (HTTPException, OSError) as error:
                chunk, cause = b"", error
            if not chunk:
                break
            file.write(chunk)
            done += len(chunk)
            report(done, total)
    if cause is not None or (total is not None and done != total):
        raise DataError(
            f"data get: {url} broke off after {done:,} of {total or 'unknown'} bytes; the "
            "same command goes on from there."
        ) from cause


def _unpack(archive: Path, source: Source, root: Path) -> None:
    """Take the wanted members by the last part of their names, and nothing else."""
    wanted = {Path(path).name: root / path for path in source.files}
    try:
        for name, content in _members(archive, source.url.endswith(".zip")):
            target = wanted.pop(name, None)
            if target is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                draft = target.with_name(f"{target.name}.part")
                with draft.open("wb") as file:
                    while chunk := content.read(_CHUNK):
                        file.write(chunk)
                draft.replace(target)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        archive.unlink()
        raise DataError(f"data get: {source.url} is no whole archive: {error}.") from error
    if wanted:
        raise DataError(f"data get: {source.url} lacks {', '.join(sorted(wanted))}.")


def _members(archive: Path, zipped: bool) -> Iterator[tuple[str, IO[bytes]]]:
    if zipped:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                with opened.open(info) as content:
                    yield Path(info.filename).name, content
    else:
        with tarfile.open(archive, "r:gz") as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield Path(member.name).name, content


def _is_complete(data_set: DataSet, root: Path) -> bool:
    try:
        data_set.load(root)
    except (DataError, OSError):
        return False
    return not data_set.absent(root)


def _is_fetched(source: Source, root: Path) -> bool:
    """Return whether the file is there with its official sum; archives leave none to compare."""
    path = root / source.files[0]
    return len(source.files) == 1 and path.is_file() and _md5(path) == source.md5


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
