"""The networks of the language tasks, with the text that they learn."""

from __future__ import annotations

from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.language.columns import ColumnProblem, PennTreebankProblem
from hvadam_bench.tasks.language.corpora import corpus_of
from hvadam_bench.tasks.language.recurrent import CharGRU, CharLSTM
from hvadam_bench.tasks.language.transformer import TransformerLM
from hvadam_bench.tasks.language.translation import TranslationProblem
from hvadam_bench.tasks.language.windows import FewWindowsProblem, Measure, WindowProblem


def penn_treebank(settings: Settings, seed: int, protocol: str) -> PennTreebankProblem:
    """Build AWD-LSTM and its columns of text."""
    return PennTreebankProblem(corpus_of(settings), settings, seed, protocol)


def lstm128(settings: Settings, seed: int, protocol: str) -> ColumnProblem:
    """Build a tied LSTM without dropout and its columns of text."""
    return ColumnProblem(corpus_of(settings), settings, seed)


def character_lstm(settings: Settings, seed: int, protocol: str) -> WindowProblem:
    """Build an LSTM over characters and its windows of text."""
    sizes = settings["width"], settings["hidden"], settings["layers"]
    return WindowProblem(
        lambda vocabulary: CharLSTM(vocabulary, *sizes),
        corpus_of(settings),
        settings,
        seed,
        "bits_per_character",
    )


def character_gru(settings: Settings, seed: int, protocol: str) -> WindowProblem:
    """Build a GRU over characters and its windows of text."""
    sizes = settings["width"], settings["hidden"]
    return WindowProblem(
        lambda vocabulary: CharGRU(vocabulary, *sizes),
        corpus_of(settings),
        settings,
        seed,
        "bits_per_character",
    )


def transformer(measure: Measure, settings: Settings, seed: int, protocol: str) -> WindowProblem:
    """Build a transformer, four times as wide inside unless told otherwise, and its windows."""
    width, heads, layers = (settings[name] for name in ("width", "heads", "layers"))
    inner, dropout = settings.get("inner", 4 * width), settings.get("dropout", 0.0)
    return WindowProblem(
        lambda vocabulary: TransformerLM(vocabulary, width, inner, heads, layers, dropout),
        corpus_of(settings),
        settings,
        seed,
        measure,
    )


def few_windows(settings: Settings, seed: int, protocol: str) -> FewWindowsProblem:
    """Build an LSTM that learns a few windows of text by heart, in batches of any size."""
    sizes = settings["width"], settings["hidden"], 1
    return FewWindowsProblem(
        lambda vocabulary: CharLSTM(vocabulary, *sizes), corpus_of(settings), settings, seed
    )


def translation(settings: Settings, seed: int, protocol: str) -> TranslationProblem:
    """Build a transformer that translates, and its sentence pairs."""
    return TranslationProblem(settings, seed)
