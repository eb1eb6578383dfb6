"""HVAdam for PyTorch."""

from hvadam.torch.optimizer import HVAdam
from hvadam.torch.warm_start import warm_start

__all__ = ["HVAdam", "warm_start"]
