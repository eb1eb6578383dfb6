"""HVAdam, a full-dimension adaptive optimizer.

``import hvadam`` loads no framework; ``hvadam.HVAdam`` (or ``from hvadam import HVAdam``),
``hvadam.GradientMeter`` and ``hvadam.warm_start`` load PyTorch on first use, and so do the modules
``hvadam.torch``, ``hvadam.jax`` and ``hvadam.convert`` with what they need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hvadam._version import __version__
from hvadam.core.hyperparams import ablation

if TYPE_CHECKING:
    from hvadam import convert as convert
    from hvadam import jax as jax
    from hvadam import torch as torch
    from hvadam.torch import GradientMeter, HVAdam, warm_start

__all__ = ["GradientMeter", "HVAdam", "__version__", "ablation", "warm_start"]

MODULES = ("convert", "jax", "torch")


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return _load(name, name)
    if name in ("GradientMeter", "HVAdam", "warm_start"):
        return getattr(_load("torch", name), name)
    raise AttributeError(f"module 'hvadam' has no attribute {name!r}")


def _load(module: str, wanted: str) -> Any:
    """Return a module of this package, or say what to install for it."""
    frameworks = {"torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX", "optax": "Optax"}
    try:
        return import_module(f"hvadam.{module}")
    except ModuleNotFoundError as error:
        if error.name not in frameworks:
            raise
        raise ModuleNotFoundError(
            f"hvadam.{wanted} needs {frameworks[error.name]}, which is not installed: pip install "
            f"'hvadam[{module}]'",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted([*__all__, *MODULES])
