"""HVAdam, a full-dimension adaptive optimizer.

``import hvadam`` loads no framework; ``hvadam.HVAdam`` (or ``from hvadam import HVAdam``) and
``hvadam.warm_start`` load PyTorch on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hvadam._version import __version__
from hvadam.core.hyperparams import ablation

if TYPE_CHECKING:
    from hvadam.torch import HVAdam, warm_start

__all__ = ["HVAdam", "__version__", "ablation", "warm_start"]


def __getattr__(name: str) -> Any:
    if name in ("HVAdam", "warm_start"):
        try:
            import hvadam.torch
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(
                f"hvadam.{name} needs PyTorch, which is not installed: pip install 'hvadam[torch]'",
                name="torch",
            ) from error
        return getattr(hvadam.torch, name)
    raise AttributeError(f"module 'hvadam' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
