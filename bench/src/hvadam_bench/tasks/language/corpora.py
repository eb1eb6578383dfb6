"""Text for the language tasks: whole corpora, parts of them, or text made in memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hvadam_bench import data
from hvadam_bench.data.text import Corpus, Pairs, Translations, number
from hvadam_bench.tasks._spec import Settings

UNKNOWN = "<unk>"


@lru_cache(maxsize=2)
def corpus(name: str, tokens: int | None, evaluated: int | None, vocabulary: int | None) -> Corpus:
    """Return a corpus of `hvadam_bench.data`, or "synthetic", or the first part of either.

    Args:
        name: Of the data set.
        tokens: How many to train on; None for all.
        evaluated: How many of each of the other splits; None for all.
        vocabulary: How many of the commonest words to keep, `UNKNOWN` being the last of them and
            standing for the others; None for all. A perplexity holds for its vocabulary only.
    """
    whole = synthetic() if name == "synthetic" else data.load(name)
    part = Corpus(
        whole.train[:tokens], whole.valid[:evaluated], whole.test[:evaluated], whole.vocabulary
    )
    return part if vocabulary is None else _shrunk(part, vocabulary)


def corpus_of(settings: Settings) -> Corpus:
    """Return the text that the settings of a task name: Python's own help if they name none."""
    sizes = (settings.get(name) for name in ("tokens", "evaluated", "vocabulary"))
    return corpus(settings.get("data", "pydoc"), *sizes)


def synthetic(seed: int = 0) -> Corpus:
    """Make words that follow each other by chance, some far more often; always the same."""
    rng = np.random.default_rng(seed)
    words = 40
    shares = 1 / np.arange(1, words + 1)  # as in languages, by rank
    following = rng.dirichlet(4 * shares / shares.sum(), size=words).cumsum(axis=1)
    word, text = 0, []
    for draw in rng.random(9000):
        word = min(int(np.searchsorted(following[word], draw)), words - 1)
        text.append("<eos>" if word == 0 else f"w{word}")
    return number(text[:7000], text[7000:8000], text[8000:])


@lru_cache(maxsize=2)
def pairs(name: str, train: int | None, evaluated: int | None) -> Translations:
    """Return sentence pairs of `hvadam_bench.data`, or "synthetic", or the first of either."""
    whole = synthetic_pairs() if name == "synthetic" else data.load(name)
    counts = (train, evaluated, evaluated)
    parts = zip((whole.train, whole.valid, whole.test), counts, strict=True)
    return Translations(*(Pairs(part.source[:n], part.target[:n]) for part, n in parts))


def synthetic_pairs(seed: int = 0) -> Translations:
    """Make sentences whose translation is word for word, in other words."""
    rng = np.random.default_rng(seed)
    parts: list[Pairs] = []
    for count in (600, 40, 40):
        sentences = [rng.integers(12, size=rng.integers(3, 7)) for _ in range(count)]
        parts.append(
            Pairs([_say(s, "wort") for s in sentences], [_say(s, "word") for s in sentences])
        )
    return Translations(*parts)


def _say(sentence: NDArray[np.int64], word: str) -> str:
    return " ".join(f"{word}{i}" for i in sentence)


def _shrunk(whole: Corpus, vocabulary: int) -> Corpus:
    counts = np.bincount(whole.train, minlength=len(whole.vocabulary))
    if UNKNOWN in whole.vocabulary:
        counts[list(whole.vocabulary).index(UNKNOWN)] = -1
    kept = np.argsort(-counts, kind="stable")[: vocabulary - 1]
    numbers = np.full(len(whole.vocabulary), len(kept))
    numbers[kept] = np.arange(len(kept))
    words = [*(whole.vocabulary[i] for i in kept), UNKNOWN]
    return Corpus(numbers[whole.train], numbers[whole.valid], numbers[whole.test], words)
