"""Sentence pairs, translated by a transformer.

Batches hold pairs of similar length, as many as fit into `batch_tokens`, and come in a new order in
each epoch. The loss is the cross-entropy with smoothed labels; the learning rate rises linearly for
`warmup` steps and falls with the square root of the step from there. Measured are the plain loss of
all sentences, and BLEU of the first `scored` ones. The test is taken with the mean of the weights
after the last `average` epochs.
"""

from __future__ import annotations

import io
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from hvadam_bench.data.text import Pairs, Translations
from hvadam_bench.tasks._problem import ModelProblem, permuted
from hvadam_bench.tasks._spec import Settings, Split, Update, evaluating
from hvadam_bench.tasks.language.corpora import pairs
from hvadam_bench.tasks.language.transformer import Translator, translate

PADDING, BEGIN, END, UNKNOWN = range(4)
Sentence = list[int]


class SentenceBatch(NamedTuple):
    """Padded sentences (n, length): to read, to write given those before, and to write."""

    source: Tensor
    given: Tensor
    target: Tensor
    ends_epoch: bool = False


class TranslationProblem(ModelProblem):
    """A transformer that learns to translate; see the module."""

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        names = ("data", "train_pairs", "evaluated_pairs", "subwords")
        self.pairs = _encode(*(settings[name] for name in names))
        shape = (settings[k] for k in ("width", "inner", "heads", "layers", "dropout"))
        super().__init__(
            lambda: Translator(*self.pairs.sizes, *shape, padding=PADDING), settings, seed
        )
        train = self.pairs.splits["train"]
        self.shapes = by_length(train, settings["batch_tokens"])
        self.batches = len(self.shapes)
        self.batch_size = round(len(train) / self.batches)
        self.steps = settings["epochs"] * self.batches
        self._last: deque[dict[str, Tensor]] = deque(maxlen=settings["average"])

    def batch(self, step: int, variant: int = 0) -> SentenceBatch:
        epoch, place = divmod(step, self.batches)
        order = permuted(self.batches, self.seed, epoch)
        chosen = [self.pairs.splits["train"][i] for i in self.shapes[order[place]]]
        return collate(chosen, ends_epoch=place == self.batches - 1)

    def updates(self, batch: SentenceBatch) -> Iterator[Update]:
        yield Update(self._loss(batch, self.settings["smoothing"]))
        # The step has been taken by now.
        if batch.ends_epoch and self.settings["average"] > 1:
            self._last.append(self._weights())

    def lr_factor(self, step: int) -> float:
        warmup = self.settings["warmup"]
        return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        if split == "test" and self._last:
            own = self._weights()
            total = {name: sum(weights[name] for weights in self._last) for name in own}
            self.model.load_state_dict({k: v / len(self._last) for k, v in total.items()})
            measures = self._measure("test")
            self.model.load_state_dict(own)
            return measures
        return self._measure(split)

    def state_dict(self) -> dict[str, Any]:
        return {"last": list(self._last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._last = deque(state["last"], maxlen=self.settings["average"])

    def _measure(self, split: Split) -> dict[str, float]:
        data, loss, tokens = self.pairs.splits[split], 0.0, 0
        with evaluating(self.model):
            for chosen in by_length(data, self.settings["batch_tokens"]):
                batch = collate([data[i] for i in chosen])
                count = int((batch.target != PADDING).sum())
                loss += self._loss(batch, smoothing=0.0).item() * count
                tokens += count
            loss /= tokens
            measures = {"loss": loss, "perplexity": math.exp(loss)}
            if split != "train":
                scored = data[: self.settings["scored"]]
                found = self._translate([source for source, _ in scored])
                references = self.pairs.references[split][: len(scored)]
                measures["bleu"] = bleu(found, references, self.pairs.tokenize)
        return measures

    def _translate(self, sources: Sequence[Sentence]) -> list[str]:
        found = [""] * len(sources)
        sentences = [(source, source) for source in sources]
        for chosen in by_length(sentences, self.settings["batch_tokens"]):
            batch = collate([sentences[i] for i in chosen]).source.to(self._device)
            limit = batch.shape[1] + self.settings["longer"]
            beam = self.settings["beam"]
            results = translate(self.model, batch, begin=BEGIN, end=END, beam=beam, limit=limit)
            for i, result in zip(chosen, results, strict=True):
                found[i] = self.pairs.decode(result)
        return found

    def _loss(self, batch: SentenceBatch, smoothing: float) -> Tensor:
        source, given, target = (part.to(self._device) for part in batch[:3])
        logits = self.model(source, given).flatten(0, 1)
        return cross_entropy(
            logits, target.flatten(), ignore_index=PADDING, label_smoothing=smoothing
        )


def bleu(found: Sequence[str], references: Sequence[str], tokenize: str) -> float:
    """Return BLEU of a whole set, in percent."""
    from sacrebleu import corpus_bleu

    # Forced: it would complain of text that is tokenised already, which is meant here.
    score = corpus_bleu(list(found), [list(references)], tokenize=tokenize, force=True).score
    return round(score, 6)


def by_length(pairs: Sequence[tuple[Sentence, Sentence]], tokens: int) -> list[list[int]]:
    """Sort pairs by length and cut them into batches of numbers that fit when padded."""
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    batches: list[list[int]] = [[]]
    longest = 0
    for i in order:
        longest = max(longest, len(pairs[i][0]), len(pairs[i][1]))
        if batches[-1] and longest * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            longest = max(len(pairs[i][0]), len(pairs[i][1]))
        batches[-1].append(i)
    return batches


def collate(chosen: Sequence[tuple[Sentence, Sentence]], ends_epoch: bool = False) -> SentenceBatch:
    """Pad pairs of sentences into a batch."""
    given = [[BEGIN, *target[:-1]] for _, target in chosen]
    return SentenceBatch(
        _padded([source for source, _ in chosen]),
        _padded(given),
        _padded([target for _, target in chosen]),
        ends_epoch,
    )


def _padded(sentences: Sequence[Sentence]) -> Tensor:
    longest = max(map(len, sentences))
    return torch.tensor([s + [PADDING] * (longest - len(s)) for s in sentences])


class Encoded(NamedTuple):
    """Pairs of sentences as numbers, each with its end.

    Attributes:
        splits: (source, target) pairs of each split.
        references: The plain targets of each, to score translations with.
        sizes: Of the source's and of the target's vocabulary.
        decode: Numbers of a target -> text.
        tokenize: How sacrebleu should cut the text: "13a", or "none" where it is cut already.
    """

    splits: Mapping[Split, Sequence[tuple[Sentence, Sentence]]]
    references: Mapping[Split, Sequence[str]]
    sizes: tuple[int, int]
    decode: Callable[[Sentence], str]
    tokenize: str


def by_words(data: Translations) -> Encoded:
    """Number sentences by words: everything between spaces is in one of two dictionaries.

    For text that is tokenised already, and cut into subwords perhaps, "@@" marking the cuts. Sizes
    are rounded up to multiples of 8, as fairseq's are.
    """
    sides = [_dictionary(data.train.source), _dictionary(data.train.target)]
    words = {number: word for word, number in sides[1].items()}

    def encode(sentence: str, side: int) -> Sentence:
        return [sides[side].get(word, UNKNOWN) for word in sentence.split()]

    def decode(sentence: Sentence) -> str:
        return joined(" ".join(words.get(number, "<unk>") for number in sentence))

    source, target = (8 * math.ceil((4 + len(side)) / 8) for side in sides)
    return Encoded(
        _splits(data, encode), _references(data, joined), (source, target), decode, "none"
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
    splits = _splits(data, lambda sentence, side: pieces.encode(sentence))
    return Encoded(splits, _references(data, str), (size, size), pieces.decode, "13a")


def joined(text: str) -> str:
    """Return text without the marks of cuts.

    Example:
        >>> joined("haus@@ auf@@ gaben .")
        'hausaufgaben .'
    """
    return f"{text} ".replace("@@ ", "").rstrip()


def _parts(data: Translations) -> dict[Split, Pairs]:
    return {"train": data.train, "valid": data.valid, "test": data.test}


def _splits(
    data: Translations, encode: Callable[[str, int], Sentence]
) -> dict[Split, list[tuple[Sentence, Sentence]]]:
    """Return the pairs of each split, given what numbers a sentence of the side 0 or 1."""
    return {
        split: [
            ([*encode(one, 0), END], [*encode(other, 1), END])
            for one, other in zip(part.source, part.target, strict=True)
        ]
        for split, part in _parts(data).items()
    }


def _references(data: Translations, plain: Callable[[str], str]) -> dict[Split, list[str]]:
    return {split: [plain(line) for line in part.target] for split, part in _parts(data).items()}


def _dictionary(sentences: Iterable[str]) -> dict[str, int]:
    counts = Counter(word for sentence in sentences for word in sentence.split())
    return {word: 4 + i for i, word in enumerate(sorted(counts, key=lambda w: (-counts[w], w)))}


@lru_cache(maxsize=1)
def _encode(data: str, train: int | None, evaluated: int | None, subwords: int | None) -> Encoded:
    sentences = pairs(data, train, evaluated)
    return by_words(sentences) if subwords is None else by_subwords(sentences, subwords)
