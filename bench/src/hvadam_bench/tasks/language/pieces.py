"""Sentence pairs as numbers: dictionaries of words, or subwords learnt by sentencepiece."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hvadam_bench.data.text import Pairs, Translations

PADDING, BEGIN, END, UNKNOWN = range(4)
Sentence = list[int]


@dataclass(frozen=True)
class Encoded:
    """Pairs of sentences, each with its end.

    Attributes:
        train, valid, test: (source, target) pairs.
        references: The plain targets of the last two, to score translations with.
        sizes: Of the source's and of the target's vocabulary.
        decode: Numbers of a target -> text.
        tokenize: How sacrebleu should cut the text: "13a", or "none" where it is cut already.
    """

    train: Sequence[tuple[Sentence, Sentence]]
    valid: Sequence[tuple[Sentence, Sentence]]
    test: Sequence[tuple[Sentence, Sentence]]
    references: Mapping[str, Sequence[str]]
    sizes: tuple[int, int]
    decode: Callable[[Sentence], str]
    tokenize: str


def by_words(data: Translations) -> Encoded:
    """Number sentences by words: everything between spaces is in one of two dictionaries.

    For text that is tokenised already, and cut into subwords perhaps, "@@" marking the cuts. Sizes
    are rounded up to multiples of 8, as fairseq's are.
    """
    source, target = _dictionary(data.train.source), _dictionary(data.train.target)
    words = {number: word for word, number in target.items()}

    def numbers(sentence: str, dictionary: dict[str, int]) -> Sentence:
        return [dictionary.get(word, UNKNOWN) for word in sentence.split()]

    def decode(sentence: Sentence) -> str:
        return joined(" ".join(words.get(number, "<unk>") for number in sentence))

    sizes = tuple(8 * math.ceil((4 + len(d)) / 8) for d in (source, target))
    return _encoded(
        data,
        lambda sentence: numbers(sentence, source),
        lambda sentence: numbers(sentence, target),
        (sizes[0], sizes[1]),
        decode,
        tokenize="none",
        reference=joined,
    )


def by_subwords(data: Translations, size: int) -> Encoded:
    """Number sentences by byte pairs, learnt from both sides of the training pairs."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([*data.train.source, *data.train.target]),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        pad_id=PADDING,
        bos_id=BEGIN,
        eos_id=END,
        unk_id=UNKNOWN,
        num_threads=1,
        minloglevel=2,
    )
    pieces = SentencePieceProcessor(model_proto=model.getvalue())
    encode, decode = pieces.encode, pieces.decode
    return _encoded(data, encode, encode, (size, size), decode, "13a", reference=str)


def joined(text: str) -> str:
    """Return text without the marks of cuts.

    Example:
        >>> joined("haus@@ auf@@ gaben .")
        'hausaufgaben .'
    """
    return f"{text} ".replace("@@ ", "").rstrip()


def _dictionary(sentences: Iterable[str]) -> dict[str, int]:
    counts = Counter(word for sentence in sentences for word in sentence.split())
    return {word: 4 + i for i, word in enumerate(sorted(counts, key=lambda w: (-counts[w], w)))}


def _encoded(
    data: Translations,
    source: Callable[[str], Sentence],
    target: Callable[[str], Sentence],
    sizes: tuple[int, int],
    decode: Callable[[Sentence], str],
    tokenize: str,
    reference: Callable[[str], str],
) -> Encoded:
    def pairs(part: Pairs) -> list[tuple[Sentence, Sentence]]:
        return [
            ([*source(one), END], [*target(other), END])
            for one, other in zip(part.source, part.target, strict=True)
        ]

    references = {
        "valid": [reference(line) for line in data.valid.target],
        "test": [reference(line) for line in data.test.target],
    }
    parts = pairs(data.train), pairs(data.valid), pairs(data.test)
    return Encoded(*parts, references, sizes, decode, tokenize)
