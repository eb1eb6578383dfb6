"""The language tasks: what their batches, losses and measures promise."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hvadam.bench import tasks
from hvadam.bench.data.parallel import Pairs, ParallelData
from hvadam.bench.models.awd_lstm import AWDLSTM, Dropouts
from hvadam.bench.models.beam import translate
from hvadam.bench.models.transformer import TransformerLM, Translator
from hvadam.bench.tasks import Problem, Task
from hvadam.bench.tasks._corpora import corpus, synthetic
from hvadam.bench.tasks._pieces import END, by_subwords, by_words
from hvadam.bench.tasks._ptb import PennTreebankProblem, pieces
from hvadam.bench.tasks._translation import TranslationProblem, bleu, by_length
from hvadam.bench.tasks._windows import WindowProblem

PTB = ["ptb_lstm1", "ptb_lstm2", "ptb_lstm3"]
TRANSLATION = ["iwslt14_transformer", "multi30k_transformer"]
WINDOWS = ["shakespeare_lstm", "pydoc_lstm", "wikitext2_transformer"]
LANGUAGE = [*PTB, *TRANSLATION, *WINDOWS]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The smallest scale needs no files."""
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path / "none"))


def smoke(name: str, seed: int = 0, protocol: str = "standard", **changed: Any) -> Problem:
    task = tasks.get(name)
    return task.build({**task.scales["smoke"], **changed}, seed, protocol)


def train(problem: Problem, steps: int, first: int = 0) -> list[float]:
    """Losses of a plain loop with torch's Adam."""
    torch.manual_seed(0)
    network = problem.networks["model"].train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses: list[float] = []
    for step in range(first, first + steps):
        for loss, _ in problem.updates(problem.batch(step)):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def tensors(batch: Any) -> list[torch.Tensor]:
    parts = [batch] if isinstance(batch, torch.Tensor) else batch
    return [part for part in parts if isinstance(part, torch.Tensor)]


@pytest.mark.parametrize("name", LANGUAGE)
def test_batches_depend_on_seed_and_step_alone(name: str) -> None:
    one, other, stranger = smoke(name), smoke(name), smoke(name, seed=1)
    steps = range(0, one.steps, 3)
    forwards = [tensors(one.batch(step)) for step in steps]
    backwards = [tensors(other.batch(step)) for step in reversed(steps)][::-1]
    for mine, theirs in zip(forwards, backwards, strict=True):
        assert all(map(torch.equal, mine, theirs))
    elsewhere = [tensors(stranger.batch(step)) for step in steps]
    assert any(
        mine.shape != theirs.shape or not torch.equal(mine, theirs)
        for one, other in zip(forwards, elsewhere, strict=True)
        for mine, theirs in zip(one, other, strict=True)
    )
    weights = one.networks["model"].state_dict(), other.networks["model"].state_dict()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert one.steps == stranger.steps


@pytest.mark.parametrize("name", LANGUAGE)
def test_loss_and_measure_fall(name: str) -> None:
    problem, task = smoke(name), tasks.get(name)
    before = problem.evaluate("valid")
    losses = train(problem, problem.steps)
    after = problem.evaluate("valid")
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert after["loss"] < 0.9 * before["loss"]
    assert problem.networks["model"].training  # as evaluations found it
    assert task.metric in after
    assert set(problem.evaluate("test")) >= {task.metric, "loss"}


@pytest.mark.parametrize("name", LANGUAGE)
def test_scales_share_their_settings(name: str) -> None:
    task = tasks.get(name)
    assert set(task.scales) == {"smoke", "laptop", "paper"}
    assert len({frozenset(settings) for settings in task.scales.values()}) == 1


@pytest.mark.parametrize("name", LANGUAGE)
def test_evaluations_leave_the_training_alone(name: str) -> None:
    quiet, asked = smoke(name), smoke(name)
    assert train(quiet, 3) == train(asked, 3)
    for split in ("valid", "test"):
        asked.evaluate(split)
    assert train(quiet, 3, first=3) == train(asked, 3, first=3)


@pytest.mark.parametrize("name", ["ptb_lstm2", "iwslt14_transformer"])
def test_training_goes_on_from_its_state(name: str) -> None:
    changed: dict[str, Any] = {"average": 2} if name.startswith("iwslt") else {}
    whole, resumed = smoke(name, **changed), smoke(name, **changed)
    half = whole.steps // 2
    train(whole, half)
    whole.evaluate("valid")
    resumed.networks["model"].load_state_dict(whole.networks["model"].state_dict())
    resumed.load_state_dict(whole.state_dict())
    rest = whole.steps - half
    assert train(whole, rest, first=half) == train(resumed, rest, first=half)
    assert whole.evaluate("test") == resumed.evaluate("test")


@pytest.mark.parametrize(
    ("layers", "parameters"), [(1, 5_293_200), (2, 13_632_400), (3, 24_221_600)]
)
def test_awd_lstm_has_the_published_size(layers: int, parameters: int) -> None:
    settings = tasks.get(f"ptb_lstm{layers}").scales["paper"]
    with torch.device("meta"):
        model = AWDLSTM(10_000, settings["width"], settings["hidden"], settings["layers"])
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_the_translator_has_the_published_size() -> None:
    with torch.device("meta"):
        model = Translator(8848, 6632)
    assert sum(p.numel() for p in model.parameters()) == 39_469_056


@pytest.mark.parametrize("name", PTB)
def test_ptb_keeps_to_the_published_protocol(name: str) -> None:
    settings = tasks.get(name).scales["paper"]
    assert settings["dropouts"] == [0.1, 0.4, 0.25, 0.4, 0.5]
    assert (settings["columns"], settings["evaluation_columns"], settings["bptt"]) == (20, 1, 70)
    assert (settings["epochs"], settings["milestones"]) == (200, [100, 145])
    assert (settings["ar"], settings["tar"]) == (2.0, 1.0)
    assert (settings["max_grad_norm"], settings["weight_decay"]) == (0.25, 1.2e-6)


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_recurrent_weights_learn_unless_inherited(protocol: str) -> None:
    problem = smoke("ptb_lstm2", protocol=protocol)
    [update] = problem.updates(problem.batch(0))
    update.loss.backward()
    for layer in problem.networks["model"].layers:  # pyright: ignore[reportGeneralTypeIssues]
        assert (layer.recurrent_weight.grad is None) == (protocol == "inherited")
        assert layer.input_weight.grad.abs().sum() > 0


def test_inherited_chooses_on_the_test_text_and_says_so() -> None:
    fair, inherited = smoke("ptb_lstm1"), smoke("ptb_lstm1", protocol="inherited")
    assert "test_perplexity" not in fair.evaluate("valid")
    valid, test = inherited.evaluate("valid"), inherited.evaluate("test")
    assert valid["test_perplexity"] == valid["perplexity"] == test["perplexity"]
    assert fair.evaluate("valid")["perplexity"] != fair.evaluate("test")["perplexity"]


def test_ptb_tests_the_weights_of_the_best_validation() -> None:
    problem = smoke("ptb_lstm1")
    train(problem, problem.steps)
    problem.evaluate("valid")
    best = problem.evaluate("test")
    with torch.no_grad():
        for parameter in problem.networks["model"].parameters():
            parameter.mul_(3)
    spoilt = {k: v.clone() for k, v in problem.networks["model"].state_dict().items()}
    problem.evaluate("valid")
    assert problem.evaluate("test") == best
    now = problem.networks["model"].state_dict()
    assert all(torch.equal(spoilt[key], now[key]) for key in now)


def test_ptb_loss_is_the_formula() -> None:
    problem = smoke("ptb_lstm1", dropouts=[0.0] * 5)
    assert isinstance(problem, PennTreebankProblem)
    batch = problem.batch(0)
    [update] = problem.updates(batch)
    out = problem.model(batch.words)
    logits = out.raw @ problem.model.weight.T + problem.model.bias
    picked = logits.log_softmax(-1).gather(-1, batch.targets[..., None])
    steps = out.raw[1:] - out.raw[:-1]
    expected = -picked.mean() + 2 * (out.raw**2).mean() + (steps**2).mean()
    torch.testing.assert_close(update.loss, expected)
    torch.testing.assert_close(batch.words[1:], batch.targets[:-1])


def test_ptb_carries_its_hidden_state_until_the_text_begins_anew() -> None:
    problem = smoke("ptb_lstm1", dropouts=[0.0] * 5, ar=0.0, tar=0.0)
    assert isinstance(problem, PennTreebankProblem)
    first, second = problem.batch(0), problem.batch(1)
    assert (first.begins, second.begins) == (True, False)
    list(problem.updates(first))
    [update] = problem.updates(second)
    words = torch.cat([first.words, second.words])
    out = problem.model(words).raw[len(first.words) :]
    torch.testing.assert_close(update.loss, problem.model.loss(out, second.targets))
    starts = [step for step in range(problem.steps) if problem.batch(step).begins]
    assert len(starts) - problem.settings["epochs"] in (0, 1)  # the last may be barely begun


def test_pieces_cover_the_text_and_scale_the_learning_rate() -> None:
    cut = pieces(rows=5000, bptt=70, epochs=20, seed=3)
    for one, following in pairwise(cut):
        ends = one.start + one.length
        assert (following.epoch, following.start) == (one.epoch, ends) or ends == 4999
    assert abs(cut[-1].epoch + cut[-1].start / 4999 - 20) < 0.5
    lengths = np.array([piece.length for piece in cut])
    assert abs(np.mean(lengths > 52) - 0.95) < 0.04  # others are around a half
    problem = smoke("ptb_lstm1")
    assert isinstance(problem, PennTreebankProblem)
    for step, (epoch, _, length) in enumerate(problem.pieces):
        assert problem.lr_factor(step) == pytest.approx(
            0.1 ** min(max(0, epoch - 3), 2) * length / 20
        )


def test_locked_dropout_is_one_mask_and_dropped_words_are_rows() -> None:
    model = AWDLSTM(50, 8, 8, 1, Dropouts(0.5, 0.0, 0.0, 0.5, 0.0))
    words = torch.arange(50).repeat(2, 1)
    zero = model(words).dropped == 0
    assert torch.equal(zero[0], zero[1])
    assert 0 < zero.float().mean() < 1
    rows = (model._embedding() == 0).all(dim=1)
    assert 0 < rows.sum() < 50
    model.eval()
    assert model._embedding() is model.weight


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_stay_inside_their_splits(name: str) -> None:
    problem, settings = smoke(name), tasks.get(name).scales["smoke"]
    assert isinstance(problem, WindowProblem)
    text = corpus(
        settings["data"], settings["tokens"], settings["evaluated"], settings.get("vocabulary")
    )
    for split in ("train", "valid", "test"):
        windows = problem.windows[split]
        stream = torch.from_numpy(getattr(text, split))
        joined = torch.cat([windows[:, :-1].flatten(), windows[-1, -1:]])
        assert torch.equal(joined, stream[: len(joined)])
        assert len(stream) - len(joined) < settings["length"]
    epoch = torch.cat([problem.batch(step) for step in range(problem.batches)])
    assert len(epoch.unique(dim=0)) <= len(problem.windows["train"])
    assert problem.lr_factor(problem.steps) == pytest.approx(0)


def test_units_of_the_measures() -> None:
    problem = smoke("pydoc_lstm")
    for parameter in problem.networks["model"].parameters():
        torch.nn.init.zeros_(parameter)
    measures = problem.evaluate("valid")
    vocabulary = len(corpus("pydoc", None, None, None).vocabulary)
    assert measures["bits_per_character"] == pytest.approx(math.log2(vocabulary), rel=1e-5)
    problem = smoke("ptb_lstm1")
    for parameter in problem.networks["model"].parameters():
        torch.nn.init.zeros_(parameter)
    assert problem.evaluate("valid")["perplexity"] == pytest.approx(
        len(synthetic().vocabulary), rel=1e-5
    )


def test_a_smaller_vocabulary_keeps_the_commonest_words() -> None:
    whole, small = synthetic(), corpus("synthetic", None, None, 10)
    assert len(small.vocabulary) == 10
    assert small.vocabulary[-1] == "<unk>"
    for before, after in zip(whole.test, small.test, strict=True):
        assert small.vocabulary[after] in (whole.vocabulary[before], "<unk>")
    counts = np.bincount(whole.train)
    assert whole.vocabulary[int(counts.argmax())] == small.vocabulary[0]


def test_sentences_come_back_from_their_numbers() -> None:
    lines = ["ein hund l@@ äuft .", "zwei hunde laufen ."]
    data = ParallelData(*[Pairs(lines, lines)] * 3)
    encoded = by_words(data)
    assert encoded.sizes == (16, 16)  # 4 + 9, rounded up
    assert encoded.decode(encoded.train[0][1][:-1]) == "ein hund läuft ."
    assert encoded.references["test"] == ["ein hund läuft .", "zwei hunde laufen ."]
    assert all(pair[0][-1] == pair[1][-1] == END for pair in encoded.train)
    pieces = by_subwords(data, size=30)
    assert [pieces.decode(target[:-1]) for _, target in pieces.test] == lines


def test_bleu_of_the_same_is_100_and_of_nothing_0() -> None:
    lines = ["two young males are outside near many bushes .", "a girl climbs into a house ."]
    assert bleu(lines, lines, "none") == bleu(lines, lines, "13a") == 100
    assert bleu(["", ""], lines, "none") == 0
    assert 0 < bleu([lines[0], "a boy climbs into a house ."], lines, "none") < 100


def test_batches_of_pairs_fit_and_cover_all() -> None:
    problem = smoke("iwslt14_transformer")
    assert isinstance(problem, TranslationProblem)
    tokens = problem.settings["batch_tokens"]
    chosen = sorted(i for batch in problem.batches for i in batch)
    assert chosen == list(range(len(problem.pairs.train)))
    for step in range(len(problem.batches)):
        source, _, target, ends = problem.batch(step)
        assert max(source.numel(), target.numel()) <= tokens
        assert ends == (step == len(problem.batches) - 1)
    assert by_length([([1] * 9, [1] * 9)], tokens=5) == [[0]]  # too long alone: alone


def test_warmup_is_linear_and_then_inverse_square_root() -> None:
    problem = smoke("iwslt14_transformer", warmup=100)
    assert problem.lr_factor(49) == pytest.approx(0.5)
    assert problem.lr_factor(99) == pytest.approx(1)
    assert problem.lr_factor(399) == pytest.approx(0.5)


def test_the_mean_of_the_last_epochs_is_tested() -> None:
    problem = smoke("iwslt14_transformer", average=2)
    assert isinstance(problem, TranslationProblem)
    train(problem, problem.steps)
    state = problem.state_dict()["last"]
    assert len(state) == 2
    own = {k: v.clone() for k, v in problem.model.state_dict().items()}
    assert all(torch.equal(state[-1][key], own[key]) for key in own)
    tested = problem.evaluate("test")
    assert all(torch.equal(value, own[key]) for key, value in problem.model.state_dict().items())
    problem.model.load_state_dict({key: (state[0][key] + state[1][key]) / 2 for key in own})
    problem._last.clear()
    assert problem.evaluate("test") == pytest.approx(tested)


def test_the_translator_looks_at_no_padding_and_no_future() -> None:
    torch.manual_seed(0)
    model = Translator(9, 9, 8, 16, 2, 2, 0.0).eval()
    source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7]])
    whole = model(source, target)
    padded = model(torch.tensor([[3, 4, 5, 0, 0]]), torch.tensor([[1, 6, 7, 0]]))
    torch.testing.assert_close(padded[:, :3], whole)
    changed = model(source, torch.tensor([[1, 6, 8]]))
    torch.testing.assert_close(changed[:, :2], whole[:, :2])
    assert not torch.allclose(changed[:, 2], whole[:, 2])
    language = TransformerLM(9, 8, 16, 2, 2, 0.0).eval()
    one, other = language(torch.tensor([[1, 2, 3]])), language(torch.tensor([[1, 2, 4]]))
    torch.testing.assert_close(one[:, :2], other[:, :2])


def test_a_wide_beam_finds_the_best_sentence_of_all() -> None:
    """Against every sentence of up to two words, by their mean log-probability."""
    torch.manual_seed(1)
    model = Translator(7, 6, 8, 16, 2, 1, 0.0).eval()
    with torch.no_grad():
        model.target.weight.mul_(3)  # else all sentences are about as likely
    source = torch.tensor([[3, 4, 2], [5, 2, 0]])
    begin, end, words = 1, 2, [1, 3, 4, 5]

    def score(row: int, sentence: list[int]) -> float:
        given, target = torch.tensor([[begin, *sentence]]), [*sentence, end]
        logits = model(source[row : row + 1], given)[0]
        logits[:, 0] = -torch.inf
        return logits.log_softmax(-1)[range(len(target)), target].mean().item()

    everything = [[], *([a] for a in words), *([a, b] for a in words for b in words)]
    best = [max(everything, key=lambda sentence: score(row, sentence)) for row in (0, 1)]
    # Wide enough that nothing is pruned: as many ends as there are sentences.
    found = translate(model, source, begin=begin, end=end, beam=3, limit=3)
    greedy = translate(model, source, begin=begin, end=end, beam=1, limit=3)
    for row in (0, 1):
        assert score(row, found[row]) >= score(row, greedy[row])
        assert score(row, found[row]) == pytest.approx(score(row, best[row]))


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    torch.manual_seed(2)
    model = Translator(9, 9, 8, 16, 2, 1, 0.0).eval()
    source = torch.tensor([[3, 4, 5, 2]])
    given = [1]
    with torch.no_grad():
        for _ in range(5):
            logits = model(source, torch.tensor([given]))[0, -1]
            logits[0] = -torch.inf
            given.append(int(logits.argmax()))
    expected = given[1:]
    if END in expected:
        expected = expected[: expected.index(END)]
    assert translate(model, source, begin=1, end=END, beam=1, limit=6) == [expected]


@pytest.mark.slow
def test_a_translator_learns_words() -> None:
    """Word for word, so that BLEU has to come."""
    problem = smoke("iwslt14_transformer", epochs=40, width=32, dropout=0.0)
    train(problem, 200)
    assert problem.evaluate("test")["bleu"] > 20


def test_paper_scales_name_what_they_miss(tmp_path: Path) -> None:
    for name in LANGUAGE:
        task: Task = tasks.get(name)
        if task.scales["paper"]["data"] != "pydoc":
            with pytest.raises(ValueError, match=r"put .* into .*none"):
                task.build(task.scales["paper"], 0, "standard")
