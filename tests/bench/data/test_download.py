"""Downloads: broken off, whole, wrong and refused; and the command line."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from hvadam_bench import data, terminal
from hvadam_bench.cli import main
from hvadam_bench.data import DataError, DataSet, File, Source, lacking, read
from hvadam_bench.data.download import fetch, obtain


@dataclass
class Shelf:
    """A server's files; it can break off, and counts what it sent."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    break_after: int | None = None
    ranges: list[str | None] = field(default_factory=list)


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = shelf.files.get(self.path)
            wanted = self.headers.get("Range")
            shelf.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            if content is None or start >= len(content):
                self.send_error(404 if content is None else 416)
                return
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start:][: shelf.break_after])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shelf.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield shelf
        server.shutdown()


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def one_file(shelf: Shelf, content: bytes, md5: str | None = None) -> DataSet:
    file = File("folder/a.txt", len(content))
    return DataSet(
        name="small",
        title="a small file",
        licence="free",
        load=lambda root: read(root, file),
        missing=lambda root: lacking(root, [file]),
        sources=[Source(f"{shelf.url}/a.txt", [file.path], md5)],
    )


def test_a_broken_download_goes_on_where_it_stopped(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", 0.0)
    content = bytes(range(256)) * 40
    small = one_file(shelf, content, hashlib.md5(content).hexdigest())
    shelf.files["/a.txt"], shelf.break_after = content, 1000
    with pytest.raises(DataError, match=r"broke off after 1,000 of 10240 bytes; the same command"):
        obtain(small, tmp_path, quiet())
    assert "half downloaded" in (small.missing(tmp_path) or "")
    shelf.break_after = None
    console = quiet()
    obtain(small, tmp_path, console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue().splitlines()
    assert "resuming a.txt at 1.0 kB of 10.2 kB" in said
    assert "a.txt: 1.0 kB of 10.2 kB" in said
    assert shelf.ranges == [None, "bytes=1000-"]
    assert (tmp_path / "folder/a.txt").read_bytes() == content
    assert list((tmp_path / "folder").iterdir()) == [tmp_path / "folder/a.txt"]
    obtain(small, tmp_path, quiet())  # nothing left to do
    assert len(shelf.ranges) == 2


def test_a_whole_part_needs_no_byte_more(shelf: Shelf, tmp_path: Path) -> None:
    shelf.files["/a.txt"] = content = b"all of it"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.txt.part").write_bytes(content)
    obtain(one_file(shelf, content), tmp_path, quiet())
    assert (tmp_path / "folder/a.txt").read_bytes() == content


def test_a_wrong_sum_is_refused_and_nothing_stays(shelf: Shelf, tmp_path: Path) -> None:
    shelf.files["/a.txt"] = b"something else"
    with pytest.raises(DataError, match=r"a\.txt must have the md5 0123, got .*Or by hand: put"):
        obtain(one_file(shelf, b"something more", "0123"), tmp_path, quiet())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_refusing_or_absent_server_says_what_to_put_where(shelf: Shelf, tmp_path: Path) -> None:
    small = one_file(shelf, b"x")
    by_hand = f"put folder/a.txt into {tmp_path}"
    with pytest.raises(DataError, match=f"answered 404 .* Or by hand: {by_hand}"):
        obtain(small, tmp_path, quiet())
    shelf.url = "http://127.0.0.1:9"  # nobody listens there
    with pytest.raises(DataError, match=f"cannot reach http.* Or by hand: {by_hand}"):
        obtain(one_file(shelf, b"x"), tmp_path, quiet())


@pytest.mark.parametrize("ending", ["tgz", "zip"])
def test_archives_give_their_wanted_members_only(ending: str, shelf: Shelf, tmp_path: Path) -> None:
    packed = io.BytesIO()
    members = {"./x/data/a.txt": b"A", "../../evil": b"E", "x/b.txt": b"B"}
    if ending == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    shelf.files[f"/x.{ending}"] = packed.getvalue()
    source = Source(f"{shelf.url}/x.{ending}", ["own/a.txt", "own/b.txt"])
    fetch(source, tmp_path, lambda done, total: None)
    found = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*.*")}
    assert found == {"own/a.txt": b"A", "own/b.txt": b"B"}

    shelf.files[f"/x.{ending}"] = packed.getvalue()[:-30]
    with pytest.raises(DataError, match=rf"x\.{ending} is no whole archive"):
        fetch(source, tmp_path, lambda done, total: None)


def test_the_command_line_lists_and_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["data", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in data.names())
    assert main(["data", "get", "pydoc"]) == 0
    assert "pydoc is there, complete and checked" in capsys.readouterr().out
    assert main(["data", "get", "imagenet"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hvadam: data get: imagenet cannot be downloaded for you: register")
    assert main(["data", "get", "cifer10"]) == 2
    assert "did you mean 'cifar10'?" in capsys.readouterr().err
