"""The classifiers of the vision tasks, with their images and schedules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from hvadam_bench import data
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.vision.classification import (
    CIFAR10_CHANNELS,
    ImageProblem,
    cosine_decay,
    step_decay,
)
from hvadam_bench.tasks.vision.networks import (
    VGG11,
    DenseNet,
    resnet8,
    resnet34,
    resnet50,
    small_cnn,
)
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
    makers: dict[str, Callable[[int], nn.Module]] = {
        "vgg11": lambda classes: VGG11(classes, settings["width"], settings["dropout"]),
        "resnet34": lambda classes: resnet34(classes, settings["width"], settings["depths"]),
        "densenet121": lambda classes: DenseNet(classes, settings["growth"], settings["depths"]),
    }
    return ImageProblem(
        makers[network],
        small_images(settings, classes=CLASSES[name]),
        settings,
        seed,
        protocol,
        step_decay(settings["milestones"]),
    )


def cifar10_resnet8(settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a ResNet of 8 layers and the images."""
    return ImageProblem(
        lambda classes: resnet8(classes, settings["width"]),
        small_images(settings),
        settings,
        seed,
        protocol,
        schedule=None,
        channels_last=True,
    )


def fashion_mnist(settings: Settings, seed: int, protocol: str) -> ImageProblem:
    """Build a small CNN and the images of Fashion-MNIST.

    The learning rate falls at "milestones" where there are any, else along a cosine.
    """
    stepwise = "milestones" in settings
    return ImageProblem(
        lambda classes: small_cnn(classes, settings["width"]),
        small_images(settings, size=28, margin=2, channels=1, native=28),
        settings,
        seed,
        protocol,
        schedule=step_decay(settings["milestones"]) if stepwise else None,
        channels=FASHION_CHANNELS,
        channels_last=not stepwise,
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
        lambda classes: resnet50(classes, settings["width"], settings["depths"]),
        pictures,
        settings,
        seed,
        protocol,
        step_decay(settings["milestones"]),
        warmup=settings["warmup"],
        channels=IMAGENET_CHANNELS,
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

    return ImageProblem(
        make,
        small_images(settings, settings["size"], classes=CLASSES[name]),
        settings,
        seed,
        protocol,
        cosine_decay(settings["epochs"]),
        warmup=settings["warmup"],
        floor=settings["floor"],
        channels=VIT_CHANNELS[name],
        loaders=3,
        rotation=VIT_ROTATION[name],
    )


def _weights(name: str, named: str | None) -> Path | None:
    if named is None:
        return None
    path = data.root() / Path(named).expanduser()  # an absolute path stays what it is
    if not path.is_file():
        raise data.DataError(
            f"{name}_vit_b16 fine-tunes pre-trained weights, and none are at "
            f"{path}; put B_16_imagenet1k.pth of pytorch_pretrained_vit there, or name another "
            "ViT-B/16 (the authors' .npz, timm's state dict) by the setting 'weights'."
        )
    return path
