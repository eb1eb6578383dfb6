"""Text: words, characters and sentence pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hvadam_bench.data import DataError, File, text


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
