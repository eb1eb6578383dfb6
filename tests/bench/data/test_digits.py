"""The digits: their split."""

import torch

from hvadam_bench.data import digits


def test_split_is_fixed_and_stratified() -> None:
    data = digits.load()
    assert (len(data.train), len(data.test)) == (1347, 450)
    assert torch.equal(data.train.pixels, digits.load().train.pixels)
    assert (data.train.pixels.min(), data.train.pixels.max()) == (0, 1)
    shares = [part.labels.bincount() / len(part) for part in (data.train, data.test)]
    torch.testing.assert_close(*shares, atol=0.002, rtol=0)
