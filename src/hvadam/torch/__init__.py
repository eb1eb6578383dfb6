"""HVAdam for PyTorch."""

from hvadam.torch.optimizer import HVAdam

__all__ = ["HVAdam"]
