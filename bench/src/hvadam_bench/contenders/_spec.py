"""What the project knows of a contender: how to build it, and how to tell that it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

Array = np.ndarray
Arrays = list[Array]
Path = Iterable[Array]
Options = Mapping[str, Any]
# (initial parameters, gradients of each step, all options) -> parameters after each step, float64.
Oracle = Callable[[Arrays, Sequence[Arrays], Options], list[Arrays]]
# (model or None, param groups, all options) -> an optimizer.
Build = Callable[["nn.Module | None", list[dict[str, Any]], dict[str, Any]], "Optimizer"]
# (places so far and the gradients there, each one vector, all options) -> where the next step goes.
Direction = Callable[[Sequence[Array], Sequence[Array], Options], Array]


class Case(NamedTuple):
    """Options under which a contender must match its oracle."""

    options: Mapping[str, Any]


def tensor_by_tensor(path: Callable[[Array, Sequence[Array], Options], Path]) -> Oracle:
    """Return the oracle of tensors that move each by itself, from the path of one of them."""

    @wraps(path)
    def oracle(params: Arrays, grads: Sequence[Arrays], options: Options) -> list[Arrays]:
        own = zip(*grads, strict=True)
        paths = [path(np.array(p), g, options) for p, g in zip(params, own, strict=True)]
        return [list(step) for step in zip(*paths, strict=True)]

    return oracle


def both(
    steps: Callable[..., Iterable[tuple[Arrays, Arrays]]],
) -> tuple[Callable[..., list[Arrays]], Callable[..., list[Arrays]]]:
    """Return the oracles of what trains and of what is evaluated, from both after each step."""

    def part(which: int) -> Callable[..., list[Arrays]]:
        return lambda *given: [step[which] for step in steps(*given)]

    return part(0), part(1)


def builder(module: str, optimizer: str, **fixed: Any) -> Build:
    """Return what builds an optimizer of a module, which is loaded then and not before."""

    def build(model: nn.Module | None, groups: list[dict[str, Any]], options: Any) -> Optimizer:
        return getattr(import_module(module), optimizer)(groups, **fixed, **options)

    return build


def ours(module: str, optimizer: str) -> Build:
    """Return what builds an optimizer of our own, from its module in `_implementations`."""
    return builder(f"hvadam_bench.contenders._implementations.{module}", optimizer)


class Rule(NamedTuple):
    """How an optimizer moves whose file has no more than the update of a tensor.

    Attributes:
        who: Its name in messages.
        update: (parameter, gradient, its state, its group, lr) -> None, in place and by methods of
            the tensors; `state["step"]` counts from 1. If together, it takes all that moves, each
            as such a tuple.
        state: Names of what it keeps of each parameter, which are zeros before the first step.
        decay: Whether the weight decay is in the gradient that it gets.
        shown: (parameter, its state, its group) -> the values to evaluate; None for the parameter.
        together: Whether it moves all parameters at once.
        checks: Of the options that are not checked as usual, by name.
    """

    who: str
    update: Callable[..., None]
    state: tuple[str, ...]
    decay: Literal["coupled", "decoupled"]
    shown: Callable[..., Any] | None
    together: bool
    checks: Mapping[str, Callable[[str, str, Any], None]]


def stepping(
    who: str,
    update: Callable[..., None],
    *state: str,
    decay: Literal["coupled", "decoupled"] = "coupled",
    shown: Callable[..., Any] | None = None,
    together: bool = False,
    **checks: Callable[[str, str, Any], None],
) -> Build:
    """Return what builds an optimizer from its update; see `Rule`."""
    rule = Rule(who, update, state, decay, shown, together, checks)

    def build(model: nn.Module | None, groups: list[dict[str, Any]], options: Any) -> Optimizer:
        from hvadam_bench.contenders._implementations._base import Stepper

        return Stepper(rule, groups, options)

    return build


@dataclass(frozen=True)
class OptimizerSpec:
    """A contender: how to build it, what to tune, and how to tell that it is right.

    Attributes:
        name: As `names()` lists it.
        label: Its name for people, the same in every table, chart and page.
        paper: Where the algorithm is published.
        source: Whose code runs, and why that one.
        build: (model or None, param groups, options) -> a real `torch.optim.Optimizer`. Only
            contenders that need a module's structure or buffers look at the model.
        defaults: The options that `create` starts from; the keys are all that it accepts.
        search: Options to tune, each with the values to try; a sweep tries every combination of
            them, and everyone in it gets as many trials. Without "lr" among them it tries learning
            rates around the default in steps of about 3, beyond the edges too, as for everyone.
        first_rate: Where those begin, if not at the default.
        oracle: The paper's update in NumPy float64, line by line, sharing no code with `build`; the
            tests hold every contender of this package to one.
        cases: Options to hold against the oracle; the defaults always are.
        decay: Whether its weight decay joins the gradient or shrinks the weights beside the step;
            an option `weight_decay_mode`, where there is one, goes before.
        elementwise: Whether each coordinate moves by its own gradients alone, so that many
            problems may share one tensor.
        evaluation: A context in which the parameters are the ones to evaluate, for contenders
            that average: the runner evaluates inside it, and training goes on unchanged after.
        averages: Whether `evaluation` swaps parameters in that the model's batch-norm statistics
            do not belong to, so that those must be estimated anew.
        evaluated: The oracle of what `evaluation` shows after each step, where that differs from
            the parameters in training.
        closure: Whether its step evaluates the loss itself, as often as it likes: `step` takes a
            closure, and keeps to the param groups' option `max_eval`. Budgets count evaluations.
            With an option `switch`, it is another optimizer for that share of them, which follows
            the task's schedule in it and `oracle`; else there is no schedule and no `oracle`.
        direction: The oracle of a closure contender's line searches.
        tolerance: How far from the oracle float64 may be, relative to the largest parameter.
    """

    name: str
    label: str
    paper: str
    source: str
    build: Build
    defaults: Mapping[str, Any]
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    first_rate: float | None = None
    oracle: Oracle | None = None
    cases: Sequence[Case] = ()
    decay: Literal["coupled", "decoupled"] = "coupled"
    elementwise: bool = True
    evaluation: Callable[[Any], AbstractContextManager[None]] = lambda _: nullcontext()
    averages: bool = False
    evaluated: Oracle | None = None
    closure: bool = False
    direction: Direction | None = None
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        """Refuse a search that could not be made."""
        for option, values in self.search.items():
            if option not in self.defaults:
                raise ValueError(f"{self.name}: search names {option!r}, which defaults does not.")
            if isinstance(values, str) or not list(values):
                raise ValueError(
                    f"{self.name}: search must list values of {option}, got {values!r}."
                )
