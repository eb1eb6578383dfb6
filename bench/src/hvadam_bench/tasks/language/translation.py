"""Sentence pairs, translated by a transformer.

Batches hold pairs of similar length, as many as fit into `batch_tokens`, and come in a new order in
each epoch. The loss is the cross-entropy with smoothed labels; the learning rate rises linearly for
`warmup` steps and falls with the square root of the step from there. Measured are the plain loss of
all sentences, and BLEU of the first `scored` ones. The test is taken with the mean of the weights
after the last `average` epochs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from hvadam_bench.tasks._seeds import permuted, seeded
from hvadam_bench.tasks._spec import Problem, Settings, Split, Update, evaluating
from hvadam_bench.tasks.language.corpora import pairs
from hvadam_bench.tasks.language.pieces import (
    BEGIN,
    END,
    PADDING,
    Encoded,
    Sentence,
    by_subwords,
    by_words,
)
from hvadam_bench.tasks.language.transformer import Translator, translate


class SentenceBatch(NamedTuple):
    """Padded sentences (n, length): to read, to write given those before, and to write."""

    source: Tensor
    given: Tensor
    target: Tensor
    ends_epoch: bool = False


class TranslationProblem(Problem):
    """A transformer that learns to translate; see the module."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.pairs = _encode(
            *(settings[k] for k in ("data", "train_pairs", "evaluated_pairs", "subwords"))
        )
        shape = (settings[k] for k in ("width", "inner", "heads", "layers", "dropout"))
        self.model = seeded(seed, lambda: Translator(*self.pairs.sizes, *shape, padding=PADDING))
        self.networks = {"model": self.model}
        self.batches = by_length(self.pairs.train, settings["batch_tokens"])
        self.batch_size = round(len(self.pairs.train) / len(self.batches))
        self.steps = settings["epochs"] * len(self.batches)
        self.weight_decay = settings["weight_decay"]
        self._last: deque[dict[str, Tensor]] = deque(maxlen=settings["average"])

    def batch(self, step: int, variant: int = 0) -> SentenceBatch:
        epoch, place = divmod(step, len(self.batches))
        order = permuted(len(self.batches), self.seed, epoch)
        chosen = [self.pairs.train[i] for i in self.batches[order[place]]]
        return collate(chosen, ends_epoch=place == len(self.batches) - 1)

    def updates(self, batch: SentenceBatch) -> Iterator[Update]:
        yield Update(self._loss(batch, self.settings["smoothing"]))
        # The step has been taken by now.
        if batch.ends_epoch and self.settings["average"] > 1:
            weights = self.model.state_dict().items()
            self._last.append({name: value.clone() for name, value in weights})

    def lr_factor(self, step: int) -> float:
        warmup = self.settings["warmup"]
        return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        if split == "test" and self._last:
            own = {name: value.clone() for name, value in self.model.state_dict().items()}
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
        data = {"train": self.pairs.train, "valid": self.pairs.valid, "test": self.pairs.test}
        loss, tokens = 0.0, 0
        with evaluating(self.model):
            for chosen in by_length(data[split], self.settings["batch_tokens"]):
                batch = collate([data[split][i] for i in chosen])
                count = int((batch.target != PADDING).sum())
                loss += self._loss(batch, smoothing=0.0).item() * count
                tokens += count
            loss /= tokens
            measures = {"loss": loss, "perplexity": math.exp(loss)}
            if split != "train":
                scored = data[split][: self.settings["scored"]]
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
    """Return BLEU of a whole set, in percent.

    Example:
        >>> bleu(["the cat sat on the mat"], ["the cat sat on the mat"], "none")
        100.0
    """
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


@lru_cache(maxsize=1)
def _encode(data: str, train: int | None, evaluated: int | None, subwords: int | None) -> Encoded:
    sentences = pairs(data, train, evaluated)
    return by_words(sentences) if subwords is None else by_subwords(sentences, subwords)
