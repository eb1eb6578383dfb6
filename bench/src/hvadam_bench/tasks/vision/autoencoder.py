"""A deep autoencoder of Fashion-MNIST, full batch: smooth, float32.

After Hinton and Salakhutdinov (doi:10.1126/science.1127647), whose 784-1000-500-250-30 and back is
the "paper" scale, and Martens (2010), who made it a test of optimizers; tanh units rather than
logistic ones, and no pretraining. The loss is the cross-entropy of pixels in [0, 1] above its
floor, their own entropy. `pca_ratio` is the squared error over that of the best linear code of the
same length, and a run has arrived when it is below 1. With "batch", a step sees so many images.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, binary_cross_entropy_with_logits

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.vision.pictures import small_images


def autoencoder_full_batch(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a deep autoencoder and the images that it learns.

    Args:
        settings: "widths" (from the first hidden layer to the code), "shrink" (how many pixels of
            a side become one), and those of `small_images` and `FullBatchProblem` are read.
        seed: The run's.
        protocol: "standard".
    """
    dtype = getattr(torch, settings["dtype"])
    pixels = _pixels(settings).to(dtype)
    floor = _entropy(pixels)
    widths = [pixels.shape[1], *settings["widths"]]
    linear = linear_error(pixels, widths[-1])

    def loss(network: nn.Module, chosen: Tensor | None = None) -> Tensor:
        seen = slice(None) if chosen is None else chosen
        cross = binary_cross_entropy_with_logits(network(pixels[seen]), pixels[seen])
        return cross - floor[seen].mean()

    def measure(network: nn.Module) -> dict[str, float]:
        error = (network(pixels).sigmoid() - pixels).square().mean().item()
        return {"pca_ratio": error / linear, "arrived": float(error < linear)}

    return FullBatchProblem(
        lambda: tanh_mlp([*widths, *reversed(widths[:-1])]),
        loss,
        len(pixels),
        settings,
        seed,
        measure,
    )


def linear_error(pixels: Tensor, code: int) -> float:
    """Return the mean squared error of the best affine code of some length: that of PCA.

    Example:
        >>> line = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> linear_error(line, 1) < 1e-12, round(linear_error(line, 0), 6)
        (True, 0.666667)
    """
    centred = (pixels - pixels.mean(0)).double()
    left_out = torch.linalg.svdvals(centred)[code:]
    return (left_out.square().sum() / pixels.numel()).item()


def _pixels(settings: Settings) -> Tensor:
    """Return the images as rows of levels in [0, 1]."""
    train = small_images(settings, size=28, margin=0, channels=1, native=28).train
    images = train.centred(torch.arange(len(train.labels))).float() / 255
    return avg_pool2d(images, settings["shrink"]).flatten(1)


def _entropy(pixels: Tensor) -> Tensor:
    """Return the mean entropy of each image's pixels, the least that cross-entropy can be."""
    exact = pixels.double()
    each = -(torch.xlogy(exact, exact) + torch.xlogy(1 - exact, 1 - exact))
    return each.mean(1).to(pixels.dtype)
