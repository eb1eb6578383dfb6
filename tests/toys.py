"""A task that trains in milliseconds and has all that makes resuming hard."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from hvadam_bench.running.config import RunConfig
from hvadam_bench.tasks import Problem, Split, Update


class Toy(Problem):
    """A problem of two networks with batch norm, dropout, a state and a schedule."""

    max_grad_norm = 0.5
    weight_decay = 0.01

    def __init__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> None:
        torch.manual_seed(seed)
        self.seed, self.steps, self.batch_size = seed, settings["steps"], 16
        self.norm = nn.BatchNorm1d(8)
        body = nn.Sequential(nn.Linear(4, 8), self.norm, nn.Dropout(0.2), nn.Linear(8, 2))
        self.networks = {"body": body, "head": nn.Linear(2, 1)}
        self.hidden = torch.zeros(())
        self.variants: list[int] = []
        self.before_step: Callable[[int], None] = lambda step: None

    def batch(self, step: int, variant: int = 0) -> torch.Tensor:
        self.variants.append(variant)
        self.before_step(step)
        return self.draw(step) + 0.1 * variant

    def draw(self, step: int) -> torch.Tensor:
        """Return the examples of a step."""
        drawn = np.random.default_rng((self.seed, step)).normal(size=(16, 4))
        return torch.as_tensor(drawn, dtype=torch.float32)

    def updates(self, batch: torch.Tensor) -> Iterator[Update]:
        for name in ("body", "head"):
            out = self.networks["head"](self.networks["body"](batch)).squeeze(1)
            loss = (out - batch.sum(1) - self.hidden).square().mean()
            yield Update(loss, name)
            self.hidden = 0.9 * self.hidden + 0.1 * out.detach().mean() + torch.rand(()) / 10

    def lr_factor(self, step: int) -> float:
        return 1.0 if step < self.steps // 2 else 0.1

    def evaluate(self, split: Split) -> dict[str, float]:
        for network in self.networks.values():
            network.eval()
        x = torch.linspace(-1, 1, 40).reshape(10, 4) + (split == "test")
        with torch.no_grad():
            loss = (self.networks["head"](self.networks["body"](x)).squeeze(1) - x.sum(1)).square()
        return {"loss": (loss.mean() + 0.01 * torch.rand(())).item(), "gap": self.gap()}

    def gap(self) -> float:
        """Return how far the running means are from those of the weights now."""
        with torch.no_grad():
            first = self.networks["body"][0]  # type: ignore[index]
            means = [first(self.draw(step)).mean(0) for step in range(min(64, self.steps))]
        assert self.norm.running_mean is not None
        return (torch.stack(means).mean(0) - self.norm.running_mean).abs().max().item()

    def artifacts(self) -> dict[str, bytes]:
        return {"picture.png": b"\x89PNG"}

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self.hidden}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.hidden = state["hidden"]


class Builder:
    """A builder of toys that keeps the last one."""

    last: Toy
    before_step: Callable[[int], None] = staticmethod(lambda step: None)

    def __call__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> Toy:
        self.last = Toy(settings, seed, protocol)
        self.last.before_step = self.before_step
        return self.last


def config(contender: str = "adam", **changes: Any) -> RunConfig:
    """Return the configuration of a run of the toy."""
    return RunConfig("toy", contender, **{"scale": "smoke", **changes})
