"""SGD along an average of gradients, for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import SGD

from hvadam_bench.contenders._options import require


class SGDEMA(SGD):
    """``torch.optim.SGD`` whose dampening is its momentum and whose average starts at 0."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with their averages at 0."""
        require("SGDEMA", "momentum", param_group.get("momentum", self.defaults["momentum"]), 0, 1)
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group["dampening"] = group["momentum"]
        for p in group["params"]:
            self.state[p]["momentum_buffer"] = torch.zeros_like(p)
