"""Data sets: small files of the official layouts, whole, cut short, corrupt and half downloaded."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import re
import struct
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console

from hvadam.bench import data
from hvadam.bench.cli import main
from hvadam.bench.data import DataError, DataSet, File, Source, imagenet, images, parallel, text
from hvadam.bench.data._spec import lacking, read
from hvadam.bench.data.download import fetch, obtain

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def pictures(count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    pixels = rng.integers(256, size=(count, 3, 32, 32), dtype=np.uint8)
    return pixels, rng.integers(classes, size=count, dtype=np.uint8)


def as_binary(pixels: np.ndarray, labels: np.ndarray, classes: int) -> bytes:
    coarse = b"" if classes == 10 else b"\x07"
    rows = zip(labels, pixels, strict=True)
    return b"".join(coarse + bytes([label]) + image.tobytes() for label, image in rows)


def as_idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.mark.parametrize("classes", [10, 100])
def test_cifar_reads_the_same_from_both_layouts(classes: int, tmp_path: Path) -> None:
    pixels, labels = pictures(5, classes)
    (tmp_path / "a.bin").write_bytes(as_binary(pixels, labels, classes))
    key = b"labels" if classes == 10 else b"fine_labels"
    content = {b"data": pixels.reshape(5, -1), key: labels.tolist()}
    (tmp_path / "a").write_bytes(pickle.dumps(content, protocol=2))
    for part in (
        images.read_binary(tmp_path, File("a.bin"), classes),
        images.read_pickle(tmp_path, File("a"), classes),
    ):
        assert (part.pixels.dtype, part.labels.dtype) == (np.uint8, np.int64)
        np.testing.assert_array_equal(part.pixels, pixels)
        np.testing.assert_array_equal(part.labels, labels)


def test_a_pickle_may_call_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"cos\nsystem\n(S'touch harmed'\ntR.")
    with pytest.raises(DataError, match=r"a must be a pickled CIFAR batch, got .*os\.system"):
        images.read_pickle(tmp_path, File("a"), 10)


def test_labels_beyond_the_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(as_binary(*pictures(9, 100), classes=10))
    with pytest.raises(DataError, match=r"a\.bin must be labels from 0 to 9, got \d+ to \d\d;"):
        images.read_binary(tmp_path, File("a.bin"), 10)


def test_cifar_uses_the_official_files_that_are_there(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two", "test"):
        content = as_binary(*pictures(4, 10), classes=10)
        (tmp_path / name).write_bytes(content)
        files.append(File(name, len(content), hashlib.md5(content).hexdigest()))
    cifar = images._Cifar("small", 10, binary=files, pickled=[File("gone"), File("gone too")])
    assert (len(cifar.load(tmp_path).train), cifar.load(tmp_path).missing) == (8, ())

    (tmp_path / "one").rename(tmp_path / "one.part")  # as if half downloaded
    found = cifar.load(tmp_path)
    assert (len(found.train), len(found.test), found.missing) == (4, 4, ("one",))

    (tmp_path / "two").write_bytes(b"x" * files[1].size)  # right size, wrong content
    assert cifar.missing(tmp_path) is None
    with pytest.raises(DataError, match=f"two must be the official file with md5 {files[1].md5}"):
        cifar.load(tmp_path)
    (tmp_path / "two").write_bytes(b"x")
    with pytest.raises(DataError, match=r"two has 1 bytes where the official file has 12,292"):
        cifar.load(tmp_path)
    (tmp_path / "two").unlink()
    with pytest.raises(DataError, match=r"put one, two into .* \(one: half downloaded\)"):
        cifar.load(tmp_path)


def test_fashion_mnist_must_be_whole(tmp_path: Path) -> None:
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    pixels, labels = np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2), np.arange(6, dtype=np.uint8)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(as_idx(pixels)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(as_idx(labels)))
    found = images.load_fashion_mnist(tmp_path, train=6, test=6)
    np.testing.assert_array_equal(found.train.pixels[:, 0], pixels)
    np.testing.assert_array_equal(found.test.labels, labels)
    with pytest.raises(DataError, match=r"train-images.* must be 60,000 images, got 6"):
        images.load_fashion_mnist(tmp_path)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(as_idx(labels[:5])))
    with pytest.raises(DataError, match=r"t10k-labels.* one label for each image, got 5 for 6"):
        images.load_fashion_mnist(tmp_path, train=6, test=6)


@SHARED_FOLDER
@given(cut=st.integers(0, 10_000), flip=st.integers(0, 10_000), truncate=st.booleans())
def test_no_damaged_file_is_read(cut: int, flip: int, truncate: bool, tmp_path: Path) -> None:
    """Cut anywhere or change any byte: idx and text in gzip, CIFAR with an official sum."""
    lines = "".join(f"ein Satz {i}\n" for i in range(99)).encode()
    binary = as_binary(*pictures(2, 10), classes=10)
    official = File("b.bin", len(binary), hashlib.md5(binary).hexdigest())
    for name, whole, reader in (
        ("i.gz", gzip.compress(as_idx(np.zeros((9, 3, 3), np.uint8)), mtime=0), idx),
        ("t.gz", gzip.compress(lines, mtime=0), pairs),
        ("b.bin", binary, lambda root, file: images.read_binary(root, official, 10)),
    ):
        path = tmp_path / name
        path.write_bytes(whole)
        expected = reader(tmp_path, File(name))
        damaged = bytearray(whole[: cut % len(whole)] if truncate else whole)
        if not truncate:
            damaged[flip % len(whole)] ^= 0x55
        path.write_bytes(damaged)
        # Gzip's header has fields that do not matter: time, system, flags of speed.
        if not truncate and name.endswith(".gz") and flip % len(whole) in range(4, 10):
            np.testing.assert_equal(reader(tmp_path, File(name)), expected)
        else:
            with pytest.raises(DataError, match=re.escape(str(path))):
                reader(tmp_path, File(name))


def idx(root: Path, file: File) -> object:
    return images._idx(root, file, dimensions=3)


def pairs(root: Path, file: File) -> object:
    return parallel.read_pairs(root, file, file, count=99).source


def test_words_are_numbered_and_counted(tmp_path: Path) -> None:
    for name, content in (("train", " a b \n a <unk> \n"), ("valid", " b \n"), ("test", "a\n")):
        (tmp_path / name).write_text(content)
    files = [File(name) for name in ("train", "valid", "test")]
    corpus = text.read_words(tmp_path, files, (6, 2, 2))
    assert corpus.vocabulary == ["a", "b", "<eos>", "<unk>"]
    assert corpus.train.tolist() == [0, 1, 2, 0, 3, 2]
    assert corpus.test.tolist() == [0, 2]
    with pytest.raises(DataError, match="valid must be 3 tokens, got 2"):
        text.read_words(tmp_path, files, (6, 3, 2))
    (tmp_path / "test").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="test must be text in UTF-8"):
        text.read_words(tmp_path, files, (6, 2, 2))


def test_characters_are_cut_into_disjoint_splits() -> None:
    corpus = text.characters("abcdefghijklmnopqrst")
    joined = np.concatenate([corpus.train, corpus.valid, corpus.test])
    assert "".join(corpus.vocabulary[int(i)] for i in joined) == "abcdefghijklmnopqrst"
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [18, 1, 1]


def test_pairs_keep_in_step(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\u2028und\nzwei\n")  # a separator inside a sentence
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    with pytest.raises(DataError, match=r"a\.en must be 2 lines, got 3"):
        parallel.read_pairs(tmp_path, File("a.de"), File("a.en"))
    (tmp_path / "a.en").write_text("one\ntwo")
    with pytest.raises(DataError, match=r"a\.en must be lines that all end, got 'one\\ntwo'"):
        parallel.read_pairs(tmp_path, File("a.de"), File("a.en"))


def test_imagenet_is_folders_decoded_when_asked(tmp_path: Path) -> None:
    for part in ("train", "val"):
        for label, name in enumerate(("n01", "n02")):
            folder = tmp_path / "imagenet" / part / name
            folder.mkdir(parents=True)
            Image.new("L", (6, 4), 100 * label).save(folder / "0.JPEG", "JPEG")
            (folder / "1.JPEG.part").write_bytes(b"half")
    found = imagenet.load(tmp_path, classes=2)
    assert (len(found.train), len(found.test)) == (2, 2)
    picture, label = found.train[1]
    assert (picture.shape, picture.dtype, label) == ((4, 6, 3), np.uint8, 1)
    assert abs(int(picture.mean()) - 100) < 3

    path = tmp_path / "imagenet/train/n01/0.JPEG"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"n01/0\.JPEG must be a whole JPEG picture"):
        _ = found.train[0]
    with pytest.raises(DataError, match="train must be 1,000 folders, one per class, got 2"):
        imagenet.load(tmp_path)
    (tmp_path / "imagenet/val/n02/0.JPEG").unlink()
    with pytest.raises(DataError, match=r"val/n02 must be a folder of \*\.JPEG, got none"):
        imagenet.load(tmp_path, classes=2)


def test_what_is_missing_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    for name in data.names():
        if name != "pydoc":
            assert str(tmp_path) in (data.available(name) or "")
            with pytest.raises(DataError, match=f"{name}: put .* into {tmp_path}"):
                data.load(name)
    with pytest.raises(ValueError, match="there is no 'cifar'; did you mean 'cifar10'"):
        data.get("cifar")


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


def test_a_broken_download_goes_on_where_it_stopped(shelf: Shelf, tmp_path: Path) -> None:
    content = bytes(range(256)) * 40
    small = one_file(shelf, content, hashlib.md5(content).hexdigest())
    shelf.files["/a.txt"], shelf.break_after = content, 1000
    with pytest.raises(DataError, match=r"broke off after 1,000 of 10240 bytes; the same command"):
        obtain(small, tmp_path, quiet())
    assert "half downloaded" in (small.missing(tmp_path) or "")
    shelf.break_after = None
    obtain(small, tmp_path, quiet())
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
