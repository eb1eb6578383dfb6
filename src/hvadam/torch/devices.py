"""What a device can hold: some have no float64."""

from __future__ import annotations

import torch

WITHOUT_FLOAT64 = ("mps",)  # types of devices


def has_float64(device: torch.device) -> bool:
    """Return whether a device computes in float64."""
    return device.type not in WITHOUT_FLOAT64


def home(device: torch.device) -> torch.device:
    """Return where the scalars of parameters on a device lie: there, or on the CPU.

    They are float64. Where that is not to be had, a step waits for the device twice instead.
    """
    return torch.device("cpu") if device.type in WITHOUT_FLOAT64 else device


def widest(device: torch.device) -> torch.dtype:
    """Return the dtype of most digits that a device has."""
    return torch.float64 if has_float64(device) else torch.float32
