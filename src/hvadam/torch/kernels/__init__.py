"""The arithmetic of a step, as interchangeable kernels; no policy lives here.

A kernel is a module with three functions:

``available() -> str | None``
    None, or the reason why it cannot run here.
``accumulate(batches) -> Tensor``
    Updates m and s, and returns ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² of each batch, (batches, 4) float64.
``apply(batches, mix, gain)``
    v <- mix v + (1 - mix) m̂, then both steps on θ; one mix and one gain per batch.

Parameters are written by ``apply`` alone, after the scalars are known.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from hvadam.torch.kernels import foreach, loop

KERNELS: dict[str, ModuleType] = {"loop": loop, "foreach": foreach}
NAMES = ("auto", *KERNELS)

# On a CPU a list of small tensors costs least in one foreach call, and a large tensor in chunks
# that stay in cache; the two cross near this many elements (`speed/portable.py` measures it).
SMALL = 4096


def select(kernel: str, theta: Tensor) -> str:
    """The kernel that serves one parameter: the one asked for, or the best one for its shape."""
    if kernel != "auto":
        return kernel
    if torch.compiler.is_compiling() or theta.device.type != "cpu":
        return "foreach"
    return "foreach" if theta.numel() < SMALL else "loop"
