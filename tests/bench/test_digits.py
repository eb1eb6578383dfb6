"""The digits: their split, their batches and their measures."""

import math

import pytest
import torch

from hvadam.bench import digits


@pytest.fixture(scope="module")
def data() -> digits.Digits:
    return digits.load()


def test_split_is_fixed_and_stratified(data: digits.Digits) -> None:
    assert (len(data.train), len(data.test)) == (1347, 450)
    assert torch.equal(data.train.pixels, digits.load().train.pixels)
    assert (data.train.pixels.min(), data.train.pixels.max()) == (0, 1)
    shares = [part.labels.bincount() / len(part) for part in (data.train, data.test)]
    torch.testing.assert_close(*shares, atol=0.002, rtol=0)


def test_batches_hold_each_image_at_most_once(data: digits.Digits) -> None:
    numbered = digits.Images(torch.arange(len(data.train)), data.train.labels)
    shuffle = torch.Generator().manual_seed(0)
    first, second = (
        torch.cat([batch.pixels for batch in digits.batches(numbered, shuffle)]) for _ in range(2)
    )
    assert len(first.unique()) == len(first) == 1344
    assert not torch.equal(first, second)


def test_network_depends_on_the_seed_alone() -> None:
    torch.rand(1)  # away from any state that a seed sets
    before = torch.get_rng_state()
    weights = [
        torch.cat([p.flatten() for p in digits.make_network(seed).parameters()])
        for seed in (0, 0, 1)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_metrics_are_over_all_images_in_eval_mode(data: digits.Digits) -> None:
    class AlwaysThree(torch.nn.Module):
        """Sure of a three in eval mode, undecided in training."""

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(len(pixels), 10)
            logits[:, 3] = 0.0 if self.training else math.log(11)
            return logits

    share = (data.test.labels == 3).double().mean().item()
    expected = share * -math.log(11 / 20) + (1 - share) * math.log(20)
    assert digits.accuracy(AlwaysThree(), data.test) == pytest.approx(share)
    assert digits.mean_loss(AlwaysThree(), data.test) == pytest.approx(expected, rel=1e-5)
