"""Text to model, and sentence pairs to translate.

The Penn Treebank, WikiText-2, tiny Shakespeare and Python's own help become a `Corpus`: a stream of
token numbers for each split. Word-level ones end each line with ``<eos>``; character-level ones are
cut into 90% to train on, 5% to validate and 5% to test, in the order of the text. Multi30k (as its
makers publish it) and IWSLT14 (as it is prepared) become `Translations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hvadam_bench.data import DataSet, File, Source, lacking, read, refusal


@dataclass(frozen=True)
class Corpus:
    """Token numbers, int64, one stream per split; `vocabulary[i]` is what number i stands for."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]
    vocabulary: Sequence[str]


@dataclass(frozen=True)
class Pairs:
    """Sentences and their translations, line by line."""

    source: Sequence[str]
    target: Sequence[str]

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Translations:
    """The official training, validation and test pairs of one data set."""

    train: Pairs
    valid: Pairs
    test: Pairs


def words(text: str) -> list[str]:
    r"""Split text into words between spaces, and ``<eos>`` for each end of a line.

    Example:
        >>> words(" no it was n't \n\n")
        ['no', 'it', 'was', "n't", '<eos>', '<eos>']
    """
    return [word for line in text.splitlines() for word in (*line.split(), "<eos>")]


def number(train: Iterable[str], valid: Iterable[str], test: Iterable[str]) -> Corpus:
    """Number the tokens of three splits in the order in which they first appear."""
    numbers: dict[str, int] = {}
    streams = [
        np.array([numbers.setdefault(token, len(numbers)) for token in split], dtype=np.int64)
        for split in (train, valid, test)
    ]
    return Corpus(*streams, vocabulary=list(numbers))


def characters(text: str) -> Corpus:
    """Number the characters of a text: the first 90% to train on, then 5% and 5%."""
    first, second = int(0.9 * len(text)), int(0.95 * len(text))
    return number(text[:first], text[first:second], text[second:])


def read_words(root: Path, files: Sequence[File], counts: Sequence[int]) -> Corpus:
    """Read three files of words that must have so many tokens, ``<eos>`` included."""
    splits = [words(_decode(root, file)) for file in files]
    for file, split, count in zip(files, splits, counts, strict=True):
        if len(split) != count:
            raise refusal(root / file.path, f"{count:,} tokens", f"{len(split):,}")
    return number(*splits)


def read_pairs(root: Path, source: File, target: File, count: int) -> Pairs:
    """Read two files with a sentence on each of so many lines."""
    return Pairs(*(_lines(root, file, count) for file in (source, target)))


def _lines(root: Path, file: File, count: int) -> list[str]:
    text = _decode(root, file)
    if not text.endswith("\n"):
        raise refusal(root / file.path, "lines that all end", f"{text[-20:]!r} at the end")
    # Not splitlines(): a few sentences hold other characters that it would cut at.
    lines = [line.strip() for line in text[:-1].split("\n")]
    if len(lines) != count:
        raise refusal(root / file.path, f"{count:,} lines", f"{len(lines):,}")
    return lines


def _decode(root: Path, file: File) -> str:
    try:
        return read(root, file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(root / file.path, "text in UTF-8", str(error)) from error


# The sums are those that torchtext checks against.
_PTB = [
    File("ptb/ptb.train.txt", 5_101_618, "f26c4b92c5fdc7b3f8c7cdcb991d8420"),
    File("ptb/ptb.valid.txt", 399_782, "aa0affc06ff7c36e977d7cd49e3839bf"),
    File("ptb/ptb.test.txt", 449_945, "8b80168b89c18661a38ef683c0dc3721"),
]
_SHAKESPEARE = File("tinyshakespeare/input.txt", 1_115_394, "6fb458f1232090904fb40fe944165e91")


def _wikitext2(root: Path) -> list[File]:
    """Return the files, plain or gzipped one by one; told apart by counts, not by sums."""
    plain = [File(f"wikitext-2/wiki.{split}.tokens") for split in ("train", "valid", "test")]
    zipped = [File(f"{file.path}.gz") for file in plain]
    return zipped if lacking(root, zipped) is None else plain


def _load_pydoc(root: Path) -> Corpus:
    """Read what ``help()`` knows of the language; it grows with Python's versions."""
    from pydoc_data.topics import topics

    return characters("\n".join(topics[name] for name in sorted(topics)))


def _pydoc_missing(root: Path) -> str | None:
    try:
        import pydoc_data.topics  # noqa: F401
    except ImportError:  # some distributions strip it
        return "this Python comes without pydoc_data; use another"
    return None


def _german_english(
    counts: Mapping[str, int], ending: str, sources: bool = False, **about: Any
) -> DataSet:
    """Return a data set of German and English files: stems for training, validation and test."""
    files = [
        (File(f"{stem}.de{ending}"), File(f"{stem}.en{ending}"), count)
        for stem, count in counts.items()
    ]
    flat = [file for *pair, _ in files for file in pair]
    return DataSet(
        load=lambda root: Translations(*(read_pairs(root, *one) for one in files)),
        missing=lambda root: lacking(root, flat),
        sources=[Source(_MULTI30K + Path(file.path).name, [file.path]) for file in flat]
        if sources
        else (),
        **about,
    )


_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
DATA_SETS = [
    DataSet(
        name="ptb",
        title="Penn Treebank, Mikolov's preparation: words, vocabulary 10,000",
        licence="derived from LDC material: for measuring, not for passing on",
        load=lambda root: read_words(root, _PTB, (929_589, 73_760, 82_430)),
        missing=lambda root: lacking(root, _PTB),
        sources=[
            Source(
                "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz",
                [file.path for file in _PTB],
                "30177ea32e27c525793142b6bf2c8e2d",
            )
        ],
    ),
    DataSet(
        name="wikitext2",
        title="WikiText-2: words of Wikipedia's good articles, vocabulary 33,278",
        licence="CC BY-SA 3.0",
        load=lambda root: read_words(root, _wikitext2(root), (2_088_628, 217_646, 245_569)),
        missing=lambda root: lacking(root, _wikitext2(root)),
        sources=[
            Source(
                "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
                [f"wikitext-2/wiki.{split}.tokens" for split in ("train", "valid", "test")],
                "542ccefacc6c27f945fb54453812b3cd",
            )
        ],
    ),
    DataSet(
        name="tinyshakespeare",
        title="Tiny Shakespeare: 1,115,394 characters of plays",
        licence="public domain",
        load=lambda root: characters(_decode(root, _SHAKESPEARE)),
        missing=lambda root: lacking(root, [_SHAKESPEARE]),
        sources=[
            Source(
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
                "tinyshakespeare/input.txt",
                [_SHAKESPEARE.path],
                _SHAKESPEARE.md5,
            )
        ],
    ),
    DataSet(
        name="pydoc",
        title="Python's own help on the language: characters, no download",
        licence="PSF licence, part of every Python",
        load=_load_pydoc,
        missing=_pydoc_missing,
        by_hand="every full Python has it",
    ),
    _german_english(
        {"multi30k/train": 29_000, "multi30k/val": 1_014, "multi30k/test_2016_flickr": 1_000},
        ending=".gz",
        sources=True,
        name="multi30k",
        title="Multi30k: 31,014 captions of pictures, German and English, test 2016",
        licence="for research and education, as Flickr30k",
    ),
    # Fairseq's prepare-iwslt14.sh leaves this folder: Moses tokens in lower case, cut by a joint
    # BPE of 10,000 merges, every 23rd line held out, five older test sets joined.
    _german_english(
        {
            "iwslt14.tokenized.de-en/train": 160_239,
            "iwslt14.tokenized.de-en/valid": 7_283,
            "iwslt14.tokenized.de-en/test": 6_750,
        },
        ending="",
        name="iwslt14",
        title="IWSLT14: 160,239 sentences of TED talks, German and English",
        licence="CC BY-NC-ND 4.0, as the talks",
        by_hand="get the 2014 de-en data from its makers (WIT3, https://wit3.fbk.eu) and run "
        "fairseq's examples/translation/prepare-iwslt14.sh, which makes these files",
    ),
]
