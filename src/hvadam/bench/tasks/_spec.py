"""What a task is to the runner. A task knows nothing of optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

Split = Literal["train", "valid", "test"]


class Update(NamedTuple):
    """A loss to take one step on, and the network whose parameters move."""

    loss: Tensor
    network: str = "model"


class Problem:
    """A task at one scale with one seed: networks, data and measures, ready to train.

    The runner asks for a batch, then for its updates one at a time: it differentiates each loss,
    clips, steps the network's optimizer, and only then asks for the next. Everything random draws
    from generators seeded by the run's seed or from torch's global one, which the runner saves in
    its checkpoints.

    Attributes:
        networks: By name; each gets an optimizer of its own. Most tasks have one, "model".
        steps: Batches in a full run. Every contender sees as many: the budget is in examples.
        batch_size: Examples in a batch.
        weight_decay: For contenders that have one, unless the run says otherwise.
        max_grad_norm: To clip each network's gradients to, if any.
    """

    networks: dict[str, nn.Module]
    steps: int
    batch_size: int
    weight_decay: float = 0.0
    max_grad_norm: float | None = None

    def batch(self, step: int, variant: int = 0) -> Any:
        """The batch of a step: the same whenever it is asked for, so that a run can resume.

        Args:
            step: From 0.
            variant: Which of several augmentations, for contenders that train several heads.
        """
        raise NotImplementedError

    def updates(self, batch: Any) -> Iterator[Update]:
        """The losses of a batch, in the order to step on them."""
        raise NotImplementedError

    def lr_factor(self, step: int) -> float:
        """What the schedule multiplies the learning rate by at a step."""
        return 1.0

    def evaluate(self, split: Split) -> dict[str, float]:
        """The measures of a split, the task's metric and "loss" among them; in eval mode.

        "valid" is a fixed part of the training set that no batch draws from; "test" is asked for
        once, at the end.
        """
        raise NotImplementedError

    def collapsed(self, measures: Mapping[str, float]) -> bool:
        """Whether measures tell of samples that are all alike; only generators can."""
        return False

    def artifacts(self) -> dict[str, bytes]:
        """Files that show what was learnt, by name: sample grids, say. Made at evaluations."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What training carries from batch to batch besides weights: hidden states, averages."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""


@dataclass(frozen=True)
class Task:
    """One kind of training, at several scales.

    Attributes:
        name: As `names()` lists it.
        title: For people.
        source: Where its protocol is from: a table or figure of the paper, or "extra".
        metric: The measure that counts, a key of what `Problem.evaluate` returns.
        goal: Whether more of it is better.
        build: (settings, seed, protocol) -> Problem.
        scales: By name, the settings: "smoke" takes seconds, "laptop" 20 to 60 seconds on one
            core, "paper" is the published protocol. All scales have the same keys.
        data: Data sets that it reads, by their names in `hvadam.bench.data`.
        protocols: "standard", and "inherited" where published quirks can be had.
        published: The paper's numbers at "paper" scale, contender or variant -> value.
        evaluations: How many points a run's curve has, evenly spaced, the end included; where
            scales differ in it, it is a setting of theirs instead.
    """

    name: str
    title: str
    source: str
    metric: str
    goal: Literal["min", "max"]
    build: Callable[[Mapping[str, Any], int, str], Problem]
    scales: Mapping[str, Mapping[str, Any]]
    data: Sequence[str] = ()
    protocols: Sequence[str] = ("standard",)
    published: Mapping[str, float] = field(default_factory=dict)
    evaluations: int = 10
