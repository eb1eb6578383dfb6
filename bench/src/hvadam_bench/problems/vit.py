"""ViT-B/16 on CIFAR: what its two tasks share.

At paper scale a network that was trained on ImageNet is fine-tuned on images enlarged to 224×224:
200 epochs along a cosine down to 1e-5, whatever the learning rate, after one epoch of warm-up.
"inherited" makes three differently augmented passes an epoch, as Lookaround's code does, which
changes the rate once an epoch where ours changes at every step. Its configuration says batches of
64, which its command line makes 128 unless told otherwise; "batch_size" is a setting. At the other
scales a tiny transformer starts from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hvadam_bench.tasks._spec import Problem, Task

if TYPE_CHECKING:
    from hvadam_bench.models.vit import ViT

_CLASSES = {"cifar10": 10, "cifar100": 100}
# Unlike the convolutional networks, ViT on CIFAR-100 was published with that set's own constants,
# and with rotations.
_CHANNELS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
_ROTATION = {"cifar10": 0.0, "cifar100": 15.0}


def task(data: str, title: str, published: Mapping[str, float]) -> Task:
    """Return the task of the transformer on one of the two data sets."""
    return Task(
        name=f"{data}_vit_b16",
        title=title,
        source="Table 2",
        metric="accuracy",
        goal="max",
        build=lambda settings, seed, protocol: _build(data, settings, seed, protocol),
        scales={
            "smoke": {
                "data": "synthetic",
                "train_images": 200,
                "test_images": 50,
                "weights": None,
                "size": 32,
                "patch": 8,
                "dim": 16,
                "depth": 2,
                "heads": 2,
                "dropout": 0.1,
                "batch_size": 20,
                "epochs": 3,
                "warmup": 0.5,
                "floor": 1e-5,
                "weight_decay": 5e-5,
            },
            "laptop": {
                "data": data,
                "train_images": 10_000,
                "test_images": None,
                "weights": None,
                "size": 32,
                "patch": 8,
                "dim": 64,
                "depth": 3,
                "heads": 4,
                "dropout": 0.1,
                "batch_size": 64,
                "epochs": 6,
                "warmup": 0.5,
                "floor": 1e-5,
                "weight_decay": 5e-5,
            },
            "paper": {
                "data": data,
                "train_images": None,
                "test_images": None,
                "weights": "vit/B_16_imagenet1k.pth",
                "size": 224,
                "patch": 16,
                "dim": 768,
                "depth": 12,
                "heads": 12,
                "dropout": 0.1,
                "batch_size": 64,
                "epochs": 200,
                "warmup": 1,
                "floor": 1e-5,
                "weight_decay": 5e-5,
            },
        },
        data=(data,),
        protocols=("standard", "inherited"),
        published=published,
        published_from="They are the paper's Table 2: HVAdam's are its own, the others are quoted "
        "from Lookaround's paper.",
    )


def _build(data: str, settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    from hvadam_bench.tasks._images import ImageProblem, cosine_decay, small_images

    weights = _weights(data, settings["weights"])
    return ImageProblem(
        lambda classes: _make(classes, settings, weights),
        small_images(settings, settings["size"], classes=_CLASSES[data]),
        settings,
        seed,
        protocol,
        cosine_decay(settings["epochs"]),
        warmup=settings["warmup"],
        floor=settings["floor"],
        channels=_CHANNELS[data],
        loaders=3,
        rotation=_ROTATION[data],
    )


def _make(classes: int, settings: Mapping[str, Any], weights: Path | None) -> ViT:
    from hvadam_bench.models.vit import ViT, load_pretrained

    shape = {key: settings[key] for key in ("size", "patch", "dim", "depth", "heads", "dropout")}
    model = ViT(classes, **shape)
    if weights is not None:
        load_pretrained(model, weights)
    return model


def _weights(data: str, named: str | None) -> Path | None:
    from hvadam_bench.data import DataError, root

    if named is None:
        return None
    path = root() / Path(named).expanduser()  # an absolute path stays what it is
    if not path.is_file():
        raise DataError(
            f"{data}_vit_b16 fine-tunes pre-trained weights, and none are at "
            f"{path}; put B_16_imagenet1k.pth of pytorch_pretrained_vit there, or name another "
            "ViT-B/16 (the authors' .npz, timm's state dict) by the setting 'weights'."
        )
    return path
