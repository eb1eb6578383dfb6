"""What ``torch.compile`` sees of a step: options as tensors, and refusals that reach the user."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam.torch import devices


def operand(x: Any, device: torch.device) -> Any:
    """Return an option as an operand: itself, or a 0-dim tensor while ``torch.compile`` traces.

    A float that changes between steps is a symbol to ``torch.compile``, which goes into the graph
    as a tensor only where a tensor is added, multiplied or compared. Elsewhere (``alpha=``, a
    logarithm) torch 2.13 writes today's value into the graph, and inductor's cache then has that
    graph for tomorrow's value too. So it is added to a tensor here, and is one from then on.

    Args:
        x: The option: a float, or a tensor of one element.
        device: That of the parameters; the tensor is at their scalars' home.
    """
    if not torch.compiler.is_compiling():
        return x
    if isinstance(x, Tensor):
        return x.reshape(())
    return torch.zeros((), dtype=torch.float64, device=devices.home(device)) + x


def refuse(reason: str) -> None:
    """Refuse to trace a step.

    A plain ``raise`` in traced code only ends the graph: without ``fullgraph=True`` the step would
    go on uncompiled, its functions compiled one by one. This is called while tracing, in Python.
    """
    raise RuntimeError(f"HVAdam: {reason}")


# What torch.compiler.assume_constant_result does, but that loads the compiler, and Triton with it.
refuse._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]
