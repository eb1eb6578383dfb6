"""What a task is to the runner. A task knows nothing of optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Split = Literal["train", "valid", "test"]
Settings = Mapping[str, Any]


def fit_batch(settings: Settings, examples: int, name: str = "batch_size") -> int:
    """Return the batch size of some settings, refused if the training set has fewer examples.

    Example:
        >>> fit_batch({"batch_size": 100_000}, examples=200)
        Traceback (most recent call last):
        ValueError: batch_size must be at most 200, all training examples, got 100000.
    """
    size = settings[name]
    if size > examples:
        raise ValueError(f"{name} must be at most {examples}, all training examples, got {size}.")
    return size


def run_length(settings: Settings, batches: int) -> int:
    """Return the steps of a run: "steps" of some settings, else "epochs" of so many batches.

    Example:
        >>> run_length({"steps": 70}, batches=20), run_length({"epochs": 1.5}, batches=20)
        (70, 30)
    """
    return settings["steps"] if "steps" in settings else round(settings["epochs"] * batches)


def scales(laptop: Settings, smoke: Settings, paper: Settings | None = None) -> dict[str, Settings]:
    """Return the settings of each scale, where only "laptop" has all of them.

    Example:
        >>> scales({"width": 8, "steps": 900}, smoke={"steps": 9})
        {'smoke': {'width': 8, 'steps': 9}, 'laptop': {'width': 8, 'steps': 900}}
    """
    found = {"smoke": {**laptop, **smoke}, "laptop": laptop}
    return found if paper is None else {**found, "paper": {**laptop, **paper}}


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Enter a context in which a network is in eval mode, and leave it in the mode it was in."""
    was_training = network.training
    network.eval()
    yield
    network.train(was_training)


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
        same_loss: Whether every step is on one network and the very same loss, without clipping;
            a contender may then evaluate it as often as it likes, as line searches do.
    """

    networks: dict[str, nn.Module]
    steps: int
    batch_size: int
    weight_decay: float = 0.0
    max_grad_norm: float | None = None
    same_loss: bool = False

    def batch(self, step: int, variant: int = 0) -> Any:
        """Return the batch of a step: the same whenever asked for, so that a run can resume.

        Args:
            step: From 0.
            variant: Which of several augmentations, for contenders that train several heads.
        """
        raise NotImplementedError

    def updates(self, batch: Any) -> Iterator[Update]:
        """Yield the losses of a batch, in the order to step on them."""
        raise NotImplementedError

    def lr_factor(self, step: int) -> float:
        """Return what the schedule multiplies the learning rate by at a step."""
        return 1.0

    def rate(self, step: int, lr: float) -> float:
        """Return the learning rate of a step of a run at this one.

        Schedules are factors; only one that ends at a rate in numbers has to know the run's.
        """
        return lr * self.lr_factor(step)

    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the measures of a split, the task's metric and "loss" among them, in eval mode.

        "arrived" is among them where a task can tell a solution from a collapse: 1 or 0.

        "valid" is a fixed part of the training set that no batch draws from; "test" is asked for
        once, at the end.
        """
        raise NotImplementedError

    def glance(self) -> dict[str, float]:
        """Return the measures of some of "valid", for the points of a curve before its last.

        Of all of it, unless that would take a good part of a run's time.
        """
        return self.evaluate("valid")

    def test_parts(self) -> tuple[float, ...]:
        """Return the metric over equal parts of the test split, just evaluated; empty if unknown.

        They tell how much another test set might have changed it.
        """
        return ()

    def collapsed(self, measures: Mapping[str, float]) -> bool:
        """Return whether measures tell of samples that are all alike; only generators can."""
        return False

    def artifacts(self) -> dict[str, bytes]:
        """Return files, by name, that show at an evaluation what was learnt: sample grids, say."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return what training carries between batches besides weights: hidden states, averages."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""

    @property
    def _device(self) -> torch.device:
        return next(next(iter(self.networks.values())).parameters()).device


Builder = Callable[[Settings, int, str], Problem]


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
        scales: By name, the settings: "smoke" takes seconds, "laptop" seconds to four minutes
            on one core, "paper" is the published protocol, where there is one. All scales have
            the same keys.
        data: Data sets that it reads, by their names in `hvadam_bench.data`.
        protocols: "standard", and "inherited" where published quirks can be had.
        published: The paper's numbers at "paper" scale, contender or variant -> value.
        published_from: Where these are from and what of their settings is not known, in sentences.
        stream: Whether no example comes twice, so that a batch may be of any size.
        evaluations: How many points a run's curve has, evenly spaced, the end included; where
            scales differ in it, it is a setting of theirs instead.
        smallest: The smallest effect that matters in verdicts: a factor where less of the metric is
            better, else points. 1.005 or 0.3 if not given; 1.25 suits a loss without noise.
    """

    name: str
    title: str
    source: str
    metric: str
    goal: Literal["min", "max"]
    build: Builder
    scales: Mapping[str, Settings]
    data: Sequence[str] = ()
    protocols: Sequence[str] = ("standard",)
    published: Mapping[str, float] = field(default_factory=dict)
    published_from: str = ""
    stream: bool = False
    evaluations: int = 10
    smallest: float | None = None


def family(package: str, **usual: Any) -> Callable[..., Task]:
    """Return what makes the tasks of a family, given what they usually are.

    It takes a name, a title, the "module.function" that builds the task (if not the function of its
    name in `problems`), what that takes before the settings, and the other attributes. A module is
    imported as its function is called: a list of tasks needs no torch.
    """

    def task(name: str, title: str, builder: str = "problems", *given: Any, **about: Any) -> Task:
        module, _, function = builder.partition(".")

        def build(settings: Settings, seed: int, protocol: str) -> Problem:
            made = getattr(import_module(f"{package}.{module}"), function or name)
            return made(*given, settings, seed, protocol)

        return Task(
            name, title, build=build, **{"source": "extra", "goal": "min", **usual, **about}
        )

    return task
