"""The networks of the vision tasks, with their images."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, binary_cross_entropy_with_logits

from hvadam_bench import data
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.vision import networks
from hvadam_bench.tasks.vision.classification import CIFAR10_CHANNELS, ImageProblem
from hvadam_bench.tasks.vision.pictures import Decoded, Parts, small_images
from hvadam_bench.tasks.vision.vit import ViT, load_pretrained

CLASSES = {"cifar10": 10, "cifar100": 100}
FASHION_CHANNELS = (0.2860,), (0.3530,)
IMAGENET_CHANNELS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Unlike the convolutional networks, ViT on CIFAR-100 was published with that set's own constants,
# and with rotations.
VIT_CHANNELS = {
    "cifar10": CIFAR10_CHANNELS,
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
VIT_ROTATION = {"cifar10": 0.0, "cifar100": 15.0}


def cifar(name: str, network: str, settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a convolutional network on CIFAR-10 or CIFAR-100, as published."""
    kind, *sizes = {
        "vgg11": (networks.VGG11, "width", "dropout"),
        "resnet34": (networks.resnet34, "width", "depths"),
        "densenet121": (networks.DenseNet, "growth", "depths"),
    }[network]
    pictures = small_images(settings, classes=CLASSES[name])
    options = [settings[size] for size in sizes]
    return ImageProblem(lambda classes: kind(classes, *options), pictures, settings, seed, protocol)


def cifar10_resnet8(settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a ResNet of 8 layers and the images."""
    return ImageProblem(
        lambda classes: networks.resnet8(classes, settings["width"]),
        *(small_images(settings), settings, seed, protocol),
        channels_last=True,
    )


def fashion_mnist(settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a small CNN and the images of Fashion-MNIST."""
    pictures = small_images(settings, size=28, margin=2, channels=1, native=28)
    return ImageProblem(
        lambda classes: networks.small_cnn(classes, settings["width"]),
        *(pictures, settings, seed, protocol, FASHION_CHANNELS),
        channels_last="milestones" not in settings,
    )


def imagenet_resnet50(settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build ResNet50 and its pictures."""
    size = settings["size"]
    if settings["data"] == "imagenet":
        folders = data.load("imagenet")
        pictures = Parts(Decoded(folders.train, size), Decoded(folders.test, size), folders.classes)
    else:
        pictures = small_images(settings, size)
    return ImageProblem(
        lambda classes: networks.resnet50(classes, settings["width"], settings["depths"]),
        *(pictures, settings, seed, protocol, IMAGENET_CHANNELS),
        loaders=3,
        rotation=15.0,
    )


def vit(name: str, settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a vision transformer on CIFAR-10 or CIFAR-100, from pre-trained weights if named.

    Raises:
        DataError: the weights are not there.
    """
    shape = {key: settings[key] for key in ("size", "patch", "dim", "depth", "heads", "dropout")}
    weights = _weights(name, settings["weights"])

    def make(classes: int) -> ViT:
        model = ViT(classes, **shape)
        if weights is not None:
            load_pretrained(model, weights)
        return model

    pictures = small_images(settings, settings["size"], classes=CLASSES[name])
    return ImageProblem(
        make,
        *(pictures, settings, seed, protocol, VIT_CHANNELS[name]),
        loaders=3,
        rotation=VIT_ROTATION[name],
    )


def autoencoder_full_batch(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a deep autoencoder of Fashion-MNIST, full batch: smooth, float32.

    After Hinton and Salakhutdinov (doi:10.1126/science.1127647), whose 784-1000-500-250-30 and back
    is the "paper" scale, and Martens (2010), who made it a test of optimizers; tanh units rather
    than logistic ones, and no pretraining. The loss is the cross-entropy of pixels in [0, 1] above
    its floor, their own entropy. `pca_ratio` is the squared error over that of the best linear code
    of the same length, and a run has arrived when it is below 1. "widths" go from the first hidden
    layer to the code; "shrink" says how many pixels of a side become one.
    """
    pixels = _pixels(settings).to(getattr(torch, settings["dtype"]))
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
    """Return the mean squared error of the best affine code of some length: that of PCA."""
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


def _weights(name: str, named: str | None) -> Path | None:
    if named is None:
        return None
    path = data.root() / Path(named).expanduser()  # an absolute path stays what it is
    if not path.is_file():
        raise data.DataError(
            f"{name}_vit_b16 fine-tunes pre-trained weights, and none are at {path}; put "
            "B_16_imagenet1k.pth of pytorch_pretrained_vit there, or name it by the setting "
            "'weights'."
        )
    return path
