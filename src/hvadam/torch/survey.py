"""Which kernels run here, and which of them a step takes: for `hvadam info` and benchmarks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from hvadam.torch import kernels
from hvadam.torch.kernels import Kernel
from hvadam.torch.optimizer import HVAdam


def reasons() -> dict[str, str | None]:
    """Return, for each kernel, None or the reason why it cannot run here."""
    return {name: module.available() for name, module in kernels.KERNELS.items()}


def instruction_set() -> str | None:
    """Return the native kernel's instruction set, None where it is not available."""
    return kernels.instruction_set() if kernels.KERNELS["native"].available() is None else None


def instruction_set_chosen_by() -> str | None:
    """Return the variable that chose the native kernel's instruction set, None if none did."""
    return kernels.ISA if instruction_set() and os.environ.get(kernels.ISA) else None


def automatic_kernels() -> dict[str, list[str]]:
    """Return what kernel="auto" takes on a CPU, for tensors of either size."""
    return {
        "small tensors": kernels_of(_automatic_step(1)),
        "large tensors": kernels_of(_automatic_step(1 << 16)),
    }


def kernels_of(step: Callable[[], object]) -> list[str]:
    """Return the kernels that a step of HVAdam calls, by watching it; [] for other optimizers."""
    seen: set[str] = set()
    watched = {name: _Watched(name, module, seen) for name, module in kernels.KERNELS.items()}
    with _replaced(watched):
        step()
    return [name for name in kernels.KERNELS if name in seen]


@contextmanager
def without_native() -> Iterator[None]:
    """Behave as if hvadam had been installed without a compiler."""
    with _replaced({"native": _SwitchedOff("native")}):
        yield


@contextmanager
def _replaced(others: Mapping[str, Any]) -> Iterator[None]:
    """Put others in the place of kernels for a while."""
    own = {name: kernels.KERNELS[name] for name in others}
    kernels.KERNELS.update(others)
    try:
        yield
    finally:
        kernels.KERNELS.update(own)


class _SwitchedOff(ModuleType):
    """A kernel that cannot run, as nobody built it."""

    def available(self) -> str:
        """Return the reason why the kernel cannot run."""
        return "it is switched off for now."


class _Watched(ModuleType):
    """A kernel that notes when it is asked for more than whether it is available."""

    def __init__(self, name: str, module: Kernel, seen: set[str]) -> None:
        super().__init__(name)
        self._module = module
        self._seen = seen

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "available":
            self._seen.add(self.__name__)
        return getattr(self._module, attribute)


def _automatic_step(size: int) -> Callable[[], object]:
    """Return the step of an optimizer over one tensor, which chooses its own kernel."""
    parameter = torch.nn.Parameter(torch.zeros(size, device="cpu"))
    parameter.grad = torch.ones(size, device="cpu")
    return HVAdam([parameter]).step
