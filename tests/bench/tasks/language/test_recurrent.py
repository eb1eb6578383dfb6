"""AWD-LSTM: its published size, and its dropouts."""

from __future__ import annotations

import pytest
import torch

from hvadam_bench import tasks
from hvadam_bench.tasks.language.recurrent import AWDLSTM, Dropouts


@pytest.mark.parametrize(
    ("layers", "parameters"), [(1, 5_293_200), (2, 13_632_400), (3, 24_221_600)]
)
def test_awd_lstm_has_the_published_size(layers: int, parameters: int) -> None:
    settings = tasks.get(f"ptb_lstm{layers}").scales["paper"]
    with torch.device("meta"):
        model = AWDLSTM(10_000, settings["width"], settings["hidden"], settings["layers"])
    assert sum(p.numel() for p in model.parameters()) == parameters


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
