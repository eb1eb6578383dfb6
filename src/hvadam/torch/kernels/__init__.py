"""The arithmetic of a step, as interchangeable kernels; no policy lives here.

A kernel is a module with the functions of `Kernel`. What stands in ``__all__`` is the door:
nobody above imports from inside a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, get_args

import torch
from torch import Tensor

from hvadam.torch.gradients import refuse_sparse
from hvadam.torch.kernels import foreach, loop, native, triton
from hvadam.torch.kernels.batch import Batch, Columns, Options, scaled
from hvadam.torch.kernels.native import ISA, instruction_set
from hvadam.torch.parameters import refuse_changed, refuse_lazy_views

__all__ = [
    "ISA",
    "KERNELS",
    "NAMES",
    "PORTABLE",
    "Batch",
    "Columns",
    "Kernel",
    "KernelName",
    "Options",
    "Portable",
    "assign",
    "instruction_set",
    "require",
    "scaled",
]


class Kernel(Protocol):
    """The passes over the tensors of a step, all of one kernel's in one call.

    Parameters are written by ``apply`` alone, after the scalars are known.
    """

    def available(self) -> str | None:
        """Return None, or the reason why the kernel cannot run here."""
        ...

    def norm(self, batches: Sequence[Batch[Any]], total: Tensor) -> None:
        """Add the squares of the gradients to a 0-dim float64 tensor."""
        ...

    def accumulate(self, batches: Sequence[Batch[Any]], dots: Tensor) -> None:
        """Count the step, update m and s, and add the dots of each tensor to its scope's.

        ``dots`` is (scopes, 4), float64: ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖².
        """
        ...

    def apply(self, batches: Sequence[Batch[Any]], mix: Tensor, gain: Tensor) -> None:
        """Move v to mix v + (1 - mix) m̂, then θ by both steps; one mix and gain per scope."""
        ...


class Portable(Kernel, Protocol):
    """A kernel that can do without float64: it measures v as it is about to be moved.

    Its first pass takes ``wide``: whether the dots are to tell the cosine by themselves, for which
    they have to be float64.
    """

    def accumulate(self, batches: Sequence[Batch[Any]], dots: Tensor, wide: bool = True) -> None:
        """Count the step, update m and s, and add the dots of each tensor to its scope's."""
        ...

    def measure(self, batches: Sequence[Batch[Any]], mix: Tensor, feet: Tensor) -> None:
        """Add the squares of mix v + (1 - mix) m̂ to its scope's, a float64 for each."""
        ...


PORTABLE: dict[str, Portable] = {"loop": loop, "foreach": foreach}
KERNELS: dict[str, Kernel] = {**PORTABLE, "native": native, "triton": triton}
KernelName = Literal["auto", "loop", "foreach", "native", "triton"]
NAMES: tuple[str, ...] = get_args(KernelName)  # "auto" and those of KERNELS


def require(kernel: str) -> None:
    """Refuse a kernel that cannot run here, with the reason."""
    reason = KERNELS[kernel].available() if kernel != "auto" else None
    if reason:
        raise RuntimeError(f'HVAdam: kernel="{kernel}" is not available: {reason}')


def assign(
    kernel: str,
    options: Options,
    tensors: Columns,
    scopes: Sequence[int],
    trusts_triton: Callable[[torch.device, torch.dtype], bool] = lambda device, state: False,
) -> Iterator[tuple[str, Batch[Any]]]:
    """Sort tensors of one param group into batches, each with the kernel that serves it.

    "native" and "auto" give the native kernel all that it can take, "triton" the Triton one, and
    "auto" too on devices where that is trusted; the rest goes to the portable kernels, tensor by
    tensor, inside the same step.
    """
    compiling = torch.compiler.is_compiling()
    if kernel in ("auto", "native") and not compiling and KERNELS["native"].available() is None:
        table = native.describe(tensors, scopes)
        if not table.rest:
            yield "native", Batch(tensors, scopes, options, table)
            return
        if table.taken:
            yield "native", Batch(*_rows(tensors, scopes, table.taken), options, table)
        tensors, scopes = _rows(tensors, scopes, table.rest)

    if not compiling:
        refuse_lazy_views(tensors.theta)
    refuse_changed(tensors.theta, tensors.m)

    tries_triton = kernel == "triton" or (kernel == "auto" and triton.may_serve(tensors.theta))
    if tries_triton and not compiling:
        tensors = tensors.as_real()
        taken, rest = triton.split(tensors)
        for indices in taken:
            device, kinds = tensors.theta[indices[0]].device, {tensors.m[i].dtype for i in indices}
            if kernel == "triton" or all(trusts_triton(device, kind) for kind in kinds):
                batch = Batch(*_rows(tensors, scopes, indices), options, triton.Shared())
                yield "triton", batch
            else:
                rest += indices
        if not rest:
            return
        tensors, scopes = _rows(tensors, scopes, sorted(rest))

    refuse_sparse(tensors.g)
    name = kernel if kernel in PORTABLE and not compiling else "foreach"
    batches: dict[Any, list[int]] = {}
    for i, theta in enumerate(tensors.theta):
        alike = (scopes[i], theta.dtype, theta.device, foreach.takes_alone(theta))
        batches.setdefault(alike, []).append(i)
    for indices in batches.values():
        columns, batch_scopes = _rows(tensors, scopes, indices)
        own = options.traced(columns.theta[0].device) if compiling else options
        yield name, Batch(columns.signed().as_real(), batch_scopes, own, None)


def _rows(
    tensors: Columns, scopes: Sequence[int], indices: Sequence[int]
) -> tuple[Columns, Sequence[int]]:
    """Return some rows of the columns, with their scopes."""
    if len(indices) == len(scopes):
        return tensors, scopes
    return tensors.take(indices), [scopes[i] for i in indices]
