"""The digits as a problem: their batches and their measures."""

import math

import pytest
import torch

from hvadam_bench.data.digits import Digits, Images, load
from hvadam_bench.problems.digits import accuracy, batches, mean_loss


@pytest.fixture(scope="module")
def data() -> Digits:
    return load()


def test_batches_hold_each_image_at_most_once(data: Digits) -> None:
    numbered = Images(torch.arange(len(data.train)), data.train.labels)
    shuffle = torch.Generator().manual_seed(0)
    first, second = (
        torch.cat([batch.pixels for batch in batches(numbered, shuffle)]) for _ in range(2)
    )
    assert len(first.unique()) == len(first) == 1344
    assert not torch.equal(first, second)


def test_metrics_are_over_all_images_in_eval_mode(data: Digits) -> None:
    class AlwaysThree(torch.nn.Module):
        """Sure of a three in eval mode, undecided in training."""

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits = torch.zeros(len(pixels), 10)
            logits[:, 3] = 0.0 if self.training else math.log(11)
            return logits

    share = (data.test.labels == 3).double().mean().item()
    expected = share * -math.log(11 / 20) + (1 - share) * math.log(20)
    assert accuracy(AlwaysThree(), data.test) == pytest.approx(share)
    assert mean_loss(AlwaysThree(), data.test) == pytest.approx(expected, rel=1e-5)
