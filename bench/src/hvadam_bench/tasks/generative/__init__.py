"""Generators of images: WGAN, WGAN-GP, SN-GAN and diffusion, judged by a Fréchet distance."""

from __future__ import annotations

from typing import Any, Literal

from hvadam_bench.tasks._spec import Task, family, scales

_task = family(__name__, metric="frechet")


def _wgan(
    name: str, title: str, kind: Literal["clip", "penalty"], limit: float, published: dict[str, Any]
) -> Task:
    """Return the task whose critic is kept from growing in one way, by so much.

    Published distances go by the names of the recipes' entries.
    """
    return _task(
        name,
        title,
        "wasserstein.WassersteinProblem",
        kind,
        source="WGAN and WGAN-GP figures, and the table beside Padam",
        scales=scales(
            {
                **{"data": "fashion_mnist", "train_images": 20_000, "size": 16, "latent": 32},
                **{"width": 16, "batch_size": 64, "epochs": 8, "critic_steps": 5},
                **{"samples": 2_000, "features": "small", kind: limit},
            },
            smoke={
                **{"data": "digits", "train_images": 400, "width": 4},
                **{"batch_size": 40, "epochs": 2, "samples": 100},
            },
            paper={
                **{"data": "cifar10", "train_images": None, "size": 64, "latent": 100},
                **{"width": 64, "epochs": 100, "samples": 64_000, "features": "inception"},
            },
        ),
        data=("fashion_mnist", "cifar10"),
        protocols=("standard", "inherited"),
        published=published,
        published_from="They are the table of the paper's appendix G, means over five runs: "
        "HVAdam's, with the hidden step off, are its own, the others are from the re-run (Buvanesh "
        "& Panwar, 2021). Figure 6 has box plots and no numbers.",
    )


TASKS = [
    _wgan(
        "wgan",
        "WGAN with DCGAN's networks",
        "clip",
        0.01,
        {
            **{"adabelief": 82.85, "hvadam (no hidden step)": 65.48},
            **{"padam (p 1/2)": 106.38, "padam (p 1/4)": 422.62, "padam (p 1/8)": 330.44},
            **{"padam (p 1/16)": 357.26, "padam (p 0)": 459.01},
        },
    ),
    _wgan(
        "wgan_gp",
        "WGAN-GP with DCGAN's networks",
        "penalty",
        10.0,
        {
            **{"adabelief": 75.37, "hvadam (no hidden step)": 58.76},
            **{"padam (p 1/2)": 71.87, "padam (p 1/4)": 152.34, "padam (p 1/8)": 205.57},
            **{"padam (p 1/16)": 228.40, "padam (p 0)": 236.99},
        },
    ),
    _task(
        "sngan",
        "SN-GAN with residual networks",
        "sngan.SpectralProblem",
        source="SN-GAN table",
        scales=scales(
            {
                **{"data": "cifar10", "train_images": 10_000, "size": 16, "latent": 32},
                **{"width": 4, "batch_size": 32, "iterations": 200, "critic_steps": 5},
                **{"evaluations": 10, "samples": 1_000, "features": "small"},
            },
            smoke={
                **{"data": "digits", "train_images": 400, "width": 2},
                **{"batch_size": 20, "iterations": 6, "evaluations": 5, "samples": 100},
            },
            paper={
                **{"train_images": None, "size": 32, "latent": 128, "width": 64},
                **{"batch_size": 64, "iterations": 100_000},
                **{"evaluations": 50, "samples": 10_000, "features": "inception"},
            },
        ),
        data=("cifar10",),
        protocols=("standard", "inherited"),
        published={
            **{"hvadam": 12.72, "adabelief": 12.98, "radam": 13.10, "rmsprop": 12.86},
            **{"adam": 13.01, "fromage": 46.31, "yogi": 14.16, "sgd": 48.94, "adabound": 16.84},
        },
        published_from="They are the paper's Table 3, means over five runs: HVAdam's are its own, "
        "the others are from the re-run (Buvanesh & Panwar, 2021).",
    ),
    # The paper's FIDs come without the learning rate, the number of iterations, of samples and of
    # sampling steps, and whether weights were averaged. "paper" scale is the code that the paper
    # names, as that was released: 500,000 iterations with AdamW at 1e-4 and no decay, samples of
    # the average, by all 4,000 steps.
    _task(
        "diffusion",
        "Improved diffusion with a U-Net",
        "diffusion.DiffusionProblem",
        source="the table of diffusion models",
        scales=scales(
            # Steps are what a run of seconds lacks most, so they are small, and so is the network.
            {
                **{"data": "fashion_mnist", "train_images": 20_000, "size": 16, "width": 8},
                **{"multipliers": (1, 2, 4), "blocks": 1, "attention": (4,), "heads": 2},
                **{"dropout": 0.0, "batch_size": 16, "iterations": 500, "ema": 0.98},
                # With 10 steps DDIM's samples stay as far from real ones, however long one trains.
                **{"diffusion_steps": 1_000, "sampler": "ddim", "sampling_steps": 25},
                **{"evaluations": 3, "samples": 300, "features": "small"},
            },
            smoke={
                **{"data": "digits", "train_images": 400, "size": 8, "multipliers": (1, 2)},
                **{"dropout": 0.3, "iterations": 12, "ema": 0.8},
                **{"sampling_steps": 5, "samples": 100},
            },
            paper={
                **{"data": "cifar10", "train_images": None, "size": 32, "width": 128},
                **{"multipliers": (1, 2, 2, 2), "blocks": 3, "attention": (16, 8), "heads": 4},
                **{"dropout": 0.3, "batch_size": 128, "iterations": 500_000, "ema": 0.9999},
                **{"diffusion_steps": 4_000, "sampler": "ancestral", "sampling_steps": 4_000},
                # Samples cost a fifth of the training each time, hence few points.
                **{"evaluations": 2, "samples": 10_000, "features": "inception"},
            },
        ),
        data=("fashion_mnist", "cifar10"),
        published={"hvadam": 11.68, "adam": 15.09, "sgd": 82.29},
        published_from="They are the paper's appendix G, which says nothing of learning rates, "
        "iterations, samples and sampling steps: ours are those of the code that it names.",
    ),
]

TASKS += [
    _task(
        "ring_gan",
        "Small GAN on a ring of eight heaps",
        "ring.RingGANProblem",
        metric="loss",
        scales=scales(
            {"width": 32, "latent": 4, "batch_size": 64, "steps": 1000, "warmup": 0.05},
            smoke={"width": 16, "batch_size": 32, "steps": 60},
        ),
        stream=True,
        evaluations=5,
    )
]
