"""A coordinate network of sines fits a picture: smooth, full batch, float32 as published.

Sitzmann et al. (arXiv:2006.09661) fit photographs of 256 x 256 pixels with three hidden layers of
256 and ω = 30 by Adam. The picture here is drawn by a formula, for it must be the same everywhere
and of any size. Mean squared error over all pixels; `psnr` is its peak signal-to-noise ratio, and
a run has arrived from the decibels that the scale names. With "batch", a step sees so many pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the network and the picture."""
    from hvadam_bench.models.siren import Siren
    from hvadam_bench.problems.coordinates import PictureProblem

    shape = settings["width"], settings["layers"], settings["omega"]
    return PictureProblem(lambda: Siren(2, *shape), settings, seed)


_LAPTOP = {
    **{"size": 64, "width": 32, "layers": 3, "omega": 30.0, "steps": 2000, "warmup": 0.02},
    **{"arrived": 35.0, "batch": None, "dtype": "float32"},
}

TASK = Task(
    name="siren_image",
    title="Coordinate network fits a picture, full batch",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "size": 16, "width": 16, "layers": 2, "steps": 60},
        "laptop": _LAPTOP,
        "paper": {**_LAPTOP, "size": 256, "width": 256, "steps": 15_000, "arrived": 40.0},
    },
    evaluations=30,
    smallest=1.25,
)
