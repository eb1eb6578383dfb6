"""The digits: their split."""

import torch

from hvadam_bench.data import digits


def test_split_is_fixed_and_stratified() -> None:
    train, test = digits.load()
    assert (len(train.labels), len(test.labels)) == (1347, 450)
    assert torch.equal(train.pixels, digits.load()[0].pixels)
    assert (train.pixels.min(), train.pixels.max()) == (0, 1)
    shares = [part.labels.bincount() / len(part.labels) for part in (train, test)]
    torch.testing.assert_close(*shares, atol=0.002, rtol=0)
