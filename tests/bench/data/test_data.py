"""Data sets: no damaged file is read, and what is missing is named."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_problems import as_binary, as_idx, pictures
from PIL import Image

from hvadam_bench import data
from hvadam_bench.data import DataError, File, digits, imagenet, images, text

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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
    return text.read_pairs(root, file, file, count=99).source


def test_imagenet_is_folders_decoded_when_asked(tmp_path: Path) -> None:
    for part in ("train", "val"):
        for label, name in enumerate(("n01", "n02")):
            folder = tmp_path / "imagenet" / part / name
            folder.mkdir(parents=True)
            Image.new("L", (6, 4), 100 * label).save(folder / "0.JPEG", "JPEG")
            (folder / "1.JPEG.part").write_bytes(b"half")
    found = imagenet.load(tmp_path, classes=2)
    assert (len(found.train), len(found.test)) == (2, 2)
    path, label = found.train.pictures[1]
    picture = imagenet.decode(path)
    assert (picture.shape, picture.dtype, label) == ((4, 6, 3), np.uint8, 1)
    assert abs(int(picture.mean()) - 100) < 3

    path = tmp_path / "imagenet/train/n01/0.JPEG"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"n01/0\.JPEG must be a whole JPEG picture"):
        imagenet.decode(path)
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
    with pytest.raises(ValueError, match="there is no data set 'cifar'; did you mean 'cifar10'"):
        data.get("cifar")


def test_the_split_of_digits_is_fixed_and_stratified() -> None:
    train, test = digits.load()
    assert (len(train.labels), len(test.labels)) == (1347, 450)
    assert torch.equal(train.pixels, digits.load()[0].pixels)
    assert (train.pixels.min(), train.pixels.max()) == (0, 1)
    shares = [part.labels.bincount() / len(part.labels) for part in (train, test)]
    torch.testing.assert_close(*shares, atol=0.002, rtol=0)


# Text: words, characters and sentence pairs.
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
        text.read_pairs(tmp_path, File("a.de"), File("a.en"), 2)
    (tmp_path / "a.en").write_text("one\ntwo")
    with pytest.raises(DataError, match=r"a\.en must be lines that all end, got 'one\\ntwo'"):
        text.read_pairs(tmp_path, File("a.de"), File("a.en"), 2)
