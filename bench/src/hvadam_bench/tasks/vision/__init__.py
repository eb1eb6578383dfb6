"""Image classification, and a deep autoencoder of images.

The paper's tasks are VGG11, ResNet34, DenseNet121 and ViT-B/16 on CIFAR-10 and CIFAR-100, and
ResNet50 on ImageNet. Each has a small stand-in at "laptop" scale. The others are real data that
everyone may have; where no paper has them, "paper" scale is only a larger network and all images.
"""

from __future__ import annotations

from hvadam_bench.tasks._spec import Settings, Task, family, scales

_ALL = {"train_images": None, "test_images": None}
_SYNTHETIC = {"data": "synthetic", "train_images": 200, "test_images": 50, "batch_size": 20}
_TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "vgg11": "VGG11 without batch norm",
    "resnet34": "ResNet34",
    "densenet121": "DenseNet121",
}
# What the networks are made of, and how long the small ones train. The small VGG has less dropout:
# under 0.5 it learns too little in so few steps for contenders to differ.
_NETWORKS: dict[str, dict[str, Settings]] = {
    "vgg11": {
        "smoke": {"width": 8, "dropout": 0.1},
        "laptop": {"width": 8, "dropout": 0.1, "epochs": 6, "milestones": [4.5]},
        "paper": {"width": 64, "dropout": 0.5},
    },
    "resnet34": {
        "smoke": {"width": 4, "depths": [1, 1, 1, 1]},
        "laptop": {"width": 8, "depths": [1, 1, 1, 1], "epochs": 4, "milestones": [3]},
        "paper": {"width": 64, "depths": [3, 4, 6, 3]},
    },
    "densenet121": {
        "smoke": {"growth": 4, "depths": [1, 1, 1, 1]},
        "laptop": {"growth": 6, "depths": [1, 1, 2, 2], "epochs": 3, "milestones": [2.25]},
        "paper": {"growth": 32, "depths": [6, 12, 24, 16]},
    },
}
# Accuracies of the re-run after the last of 200 epochs.
_METHODS = "adabelief", "sgd", "adabound", "yogi", "adam", "msvag", "radam", "adamw", "fromage"
_PUBLISHED = {
    ("cifar10", "vgg11"): (91.34, 89.67, 90.52, 90.42, 88.54, 89.86, 88.89, 88.63, 89.38),
    ("cifar10", "resnet34"): (95.20, 92.57, 95.01, 94.62, 92.82, 94.55, 94.47, 94.28, 93.07),
    ("cifar10", "densenet121"): (95.55, 93.13, 95.10, 95.15, 92.89, 94.90, 94.45, 93.97, 94.69),
    ("cifar100", "vgg11"): (67.65, 62.44, 65.09, 66.01, 58.75, 63.49, 58.82, 57.83, 63.31),
    ("cifar100", "resnet34"): (None, 72.60, 75.91, 76.63, 71.29, 75.53, 74.02, 72.47, 74.52),
    ("cifar100", "densenet121"): (78.51, 74.43, 77.30, 77.44, 73.39, 77.43, 76.56, 75.43, 76.19),
}
_FROM = (
    "They are accuracies after the last of 200 epochs, from the curves of the re-run (Buvanesh & "
    "Panwar, 2021) that the paper took its baselines from; of HVAdam there are only curves."
)
_NOTES = {
    ("cifar10", "resnet34"): " AdaBelief's file there is cut short, so its number is its own "
    "authors'.",
    ("cifar100", "resnet34"): " AdaBelief's file there is cut short.",
}


_task = family(__name__, metric="accuracy", goal="max")


def _cifar(data: str, network: str) -> Task:
    """Return the task of one of the paper's convolutional networks on one of its data sets.

    200 epochs in batches of 128, cropped out of a margin of 4 and flipped, learning rate a tenth
    from epoch 150 on. CIFAR-100 is normalised with CIFAR-10's constants, as published.
    """
    sizes, accuracies = _NETWORKS[network], _PUBLISHED[data, network]
    paper = {**_ALL, "batch_size": 128, "epochs": 200, "milestones": [150], "weight_decay": 5e-4}
    return _task(
        f"{data}_{network}",
        f"{_TITLES[network]} on {_TITLES[data]}",
        "problems.cifar",
        data,
        network,
        source="CNN figures",
        scales={
            "smoke": {**paper, **_SYNTHETIC, "epochs": 3, "milestones": [2], **sizes["smoke"]},
            "laptop": {
                **{"data": data, **paper, "train_images": 10_000, "batch_size": 64},
                **sizes["laptop"],
            },
            "paper": {"data": data, **paper, **sizes["paper"]},
        },
        data=(data,),
        protocols=("standard", "inherited"),
        published={
            method: accuracy
            for method, accuracy in zip(_METHODS, accuracies, strict=True)
            if accuracy is not None
        },
        published_from=f"{_FROM}{_NOTES.get((data, network), '')}",
    )


def _vit(data: str, published: dict[str, float]) -> Task:
    """Return the task of ViT-B/16 on one of the two data sets.

    At paper scale a network that was trained on ImageNet is fine-tuned on images enlarged to
    224×224: 200 epochs along a cosine down to 1e-5, whatever the learning rate, after one epoch of
    warm-up. "inherited" makes three differently augmented passes an epoch, as Lookaround's code
    does, which changes the rate once an epoch where ours changes at every step. Its configuration
    says batches of 64, which its command line makes 128 unless told otherwise; "batch_size" is a
    setting. At the other scales a tiny transformer starts from nothing.
    """
    return _task(
        f"{data}_vit_b16",
        f"ViT-B/16 fine-tuned on {_TITLES[data]}",
        "problems.vit",
        data,
        source="Table 2",
        scales=scales(
            {
                **{"data": data, "train_images": 10_000, "test_images": None, "weights": None},
                **{"size": 32, "patch": 8, "dim": 64, "depth": 3, "heads": 4, "dropout": 0.1},
                **{"batch_size": 64, "epochs": 6, "warmup": 0.5, "floor": 1e-5},
                "weight_decay": 5e-5,
            },
            smoke={**_SYNTHETIC, "dim": 16, "depth": 2, "heads": 2, "epochs": 3},
            paper={
                **{"train_images": None, "weights": "vit/B_16_imagenet1k.pth", "size": 224},
                **{"patch": 16, "dim": 768, "depth": 12, "heads": 12, "epochs": 200, "warmup": 1},
            },
        ),
        data=(data,),
        protocols=("standard", "inherited"),
        published=published,
        published_from="They are the paper's Table 2: HVAdam's are its own, the others are quoted "
        "from Lookaround's paper.",
    )


TASKS = [
    *(_cifar(data, network) for data, network in _PUBLISHED),
    _vit(
        "cifar10",
        {"adam": 98.34, "swa": 98.47, "lookahead": 98.51, "lookaround": 98.71, "hvadam": 99.00},
    ),
    _vit(
        "cifar100",
        {"adam": 91.55, "swa": 91.32, "lookahead": 91.76, "lookaround": 92.21, "hvadam": 92.38},
    ),
    # 90 epochs, a tenth of the learning rate from 30 and from 60 on, one epoch of warm-up.
    # "standard" passes over the pictures once an epoch, cut at random and flipped. The published
    # rows are of Lookaround's code, which "inherited" follows: an epoch is three such passes,
    # flipped, AutoAugment and RandAugment, each turned by up to 15 degrees. Its configuration says
    # batches of 256, which its command line makes 128 unless told otherwise.
    _task(
        "imagenet_resnet50",
        "ResNet50 on ImageNet",
        source="Table 1",
        scales=scales(
            {
                **{"data": "cifar10", "train_images": 10_000, "test_images": None, "size": 64},
                **{"width": 8, "depths": [1, 1, 1, 1], "batch_size": 64, "epochs": 3},
                **{"warmup": 0.25, "milestones": [1.5, 2.25], "weight_decay": 5e-4},
            },
            smoke={**_SYNTHETIC, "size": 32, "width": 4, "warmup": 0.5, "milestones": [1, 2]},
            paper={
                **{"data": "imagenet", "train_images": None, "size": 224, "width": 64},
                **{"depths": [3, 4, 6, 3], "batch_size": 256, "epochs": 90},
                **{"warmup": 1, "milestones": [30, 60]},
            },
        ),
        data=("imagenet", "cifar10"),
        protocols=("standard", "inherited"),
        published={
            **{"sgd": 76.49, "adam": 72.87, "adai": 76.80, "swa": 76.78, "lookahead": 76.52},
            **{"lookaround": 77.32, "hvadam": 77.22},
        },
        published_from="They are the paper's Table 1. SGD, Adam and Adai are quoted there from "
        "Adai's paper, whose settings are not known; SWA, Lookahead and Lookaround from "
        "Lookaround's, whose epochs are three passes each; HVAdam was run with Lookaround's code.",
    ),
    # Its stem halves the image, which makes a step four times as quick. 5,000 of the 50,000
    # training images are held out for validation, whose standard error at 80% is 0.57 points; a
    # curve is of 1,000 of them, but for its last point, by which rates are chosen.
    _task(
        "cifar10_resnet8",
        "ResNet of 8 layers on all of CIFAR-10",
        scales=scales(
            {
                **{"data": "cifar10", **_ALL, "width": 32, "batch_size": 128, "steps": 1000},
                **{"warmup": 0.05, "weight_decay": 0.05, "curve_images": 1000},
            },
            # With a width of 4, torch's strided 1x1 convolution aborts on CPUs without AVX-512.
            smoke={**_SYNTHETIC, "width": 8, "steps": 30, "curve_images": 10},
        ),
        data=("cifar10",),
        evaluations=30,
    ),
    _task(
        "fashion_mnist_cnn",
        "Small CNN on Fashion-MNIST",
        "problems.fashion_mnist",
        scales=scales(
            {
                **{"data": "fashion_mnist", "train_images": 20_000, "test_images": None},
                **{"width": 16, "batch_size": 64, "epochs": 4, "milestones": [3]},
                "weight_decay": 5e-4,
            },
            smoke={**_SYNTHETIC, "width": 4, "epochs": 3, "milestones": [2]},
            paper={
                **{"train_images": None, "width": 64, "batch_size": 128},
                **{"epochs": 60, "milestones": [45]},
            },
        ),
        data=("fashion_mnist",),
    ),
    # 6,000 of the 60,000 training images are held out for validation, whose standard error at 91%
    # is 0.37 points.
    _task(
        "fashion_mnist_60k",
        "CNN of two convolutions on all of Fashion-MNIST",
        "problems.fashion_mnist",
        scales=scales(
            {
                **{"data": "fashion_mnist", **_ALL, "width": 16, "batch_size": 128},
                **{"steps": 3600, "warmup": 0.05, "weight_decay": 0.05},
            },
            smoke={**_SYNTHETIC, "width": 4, "steps": 30},
        ),
        data=("fashion_mnist",),
        evaluations=30,
    ),
    _task(
        "autoencoder_full_batch",
        "Deep autoencoder of Fashion-MNIST, full batch",
        metric="loss",
        goal="min",
        scales=scales(
            {
                **{"data": "fashion_mnist", "train_images": 512, "test_images": 1, "shrink": 2},
                **{"widths": [64, 32, 12], "steps": 2500, "warmup": 0.02},
                **{"batch": None, "dtype": "float32"},
            },
            smoke={"data": "synthetic", "train_images": 64, "widths": [16, 4], "steps": 60},
            paper={
                **{"train_images": 60_000, "shrink": 1, "widths": [1000, 500, 250, 30]},
                "steps": 10_000,
            },
        ),
        data=("fashion_mnist",),
        evaluations=30,
        smallest=1.25,
    ),
]
