"""Sentence pairs to translate: Multi30k as its makers publish it, IWSLT14 as it is prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.data._spec import DataSet, File, Source, lacking, read, refusal


@dataclass(frozen=True)
class Pairs:
    """Sentences and their translations, line by line."""

    source: Sequence[str]
    target: Sequence[str]

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class ParallelData:
    """The official training, validation and test pairs of one data set."""

    train: Pairs
    valid: Pairs
    test: Pairs


def read_pairs(root: Path, source: File, target: File, count: int | None = None) -> Pairs:
    """Read two files with a sentence on each line, as many lines in both as expected."""
    left, right = _lines(root, source), _lines(root, target)
    expected = len(left) if count is None else count
    for file, lines in ((source, left), (target, right)):
        if len(lines) != expected:
            raise refusal(root / file.path, f"{expected:,} lines", f"{len(lines):,}")
    return Pairs(left, right)


def _lines(root: Path, file: File) -> list[str]:
    try:
        text = read(root, file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(root / file.path, "text in UTF-8", str(error)) from error
    if not text.endswith("\n"):
        raise refusal(root / file.path, "lines that all end", f"{text[-20:]!r} at the end")
    # Not splitlines(): a few sentences hold other characters that it would cut at.
    return [line.strip() for line in text[:-1].split("\n")]


@dataclass(frozen=True)
class _Parallel:
    """German and English files; split -> (stem of the two files, lines)."""

    splits: Mapping[str, tuple[str, int]]
    ending: str

    def files(self) -> list[tuple[File, File, int]]:
        return [
            (File(f"{stem}.de{self.ending}"), File(f"{stem}.en{self.ending}"), count)
            for stem, count in self.splits.values()
        ]

    def missing(self, root: Path) -> str | None:
        return lacking(root, [file for *pair, _ in self.files() for file in pair])

    def load(self, root: Path) -> ParallelData:
        return ParallelData(*(read_pairs(root, *files) for files in self.files()))


_MULTI30K = _Parallel(
    {
        "train": ("multi30k/train", 29_000),
        "valid": ("multi30k/val", 1_014),
        "test": ("multi30k/test_2016_flickr", 1_000),
    },
    ending=".gz",
)
# Fairseq's prepare-iwslt14.sh leaves this folder: Moses tokens in lower case, cut by a joint BPE of
# 10,000 merges, every 23rd line held out, five older test sets joined.
_IWSLT14 = _Parallel(
    {
        "train": ("iwslt14.tokenized.de-en/train", 160_239),
        "valid": ("iwslt14.tokenized.de-en/valid", 7_283),
        "test": ("iwslt14.tokenized.de-en/test", 6_750),
    },
    ending="",
)

DATA_SETS = [
    DataSet(
        name="multi30k",
        title="Multi30k: 31,014 captions of pictures, German and English, test 2016",
        licence="for research and education, as Flickr30k",
        load=_MULTI30K.load,
        missing=_MULTI30K.missing,
        sources=[
            Source(
                "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
                + Path(file.path).name,
                [file.path],
            )
            for *pair, _ in _MULTI30K.files()
            for file in pair
        ],
    ),
    DataSet(
        name="iwslt14",
        title="IWSLT14: 160,239 sentences of TED talks, German and English",
        licence="CC BY-NC-ND 4.0, as the talks",
        load=_IWSLT14.load,
        missing=_IWSLT14.missing,
        by_hand="get the 2014 de-en data from its makers (WIT3, https://wit3.fbk.eu) and run "
        "fairseq's examples/translation/prepare-iwslt14.sh, which makes these files",
    ),
]
