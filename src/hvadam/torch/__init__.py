"""HVAdam for PyTorch."""

from hvadam.torch.meter import GradientMeter
from hvadam.torch.optimizer import HVAdam
from hvadam.torch.warm_start import warm_start

__all__ = ["GradientMeter", "HVAdam", "warm_start"]
