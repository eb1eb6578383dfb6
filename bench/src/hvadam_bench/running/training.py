"""One training: how it is set up, its step, its evaluation, and all that it has to remember."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import PurePath
from time import perf_counter
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.utils import clip_grad_norm_

from hvadam_bench import contenders, tasks
from hvadam_bench.registry import RefusedError, is_name
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.machine import Company
from hvadam_bench.running.options import decay_of, options_of, require_same_loss, settings_of
from hvadam_bench.running.records import Point
from hvadam_bench.tasks import Problem, Split

# A loss beyond this many times the network's first one, or times 1 if that was smaller, will not
# come back: a learning rate ten times too large passes it within a few dozen steps.
BOUND = 1e6
# Batches of training data for batch-norm statistics: a thousand examples and more, while an epoch
# may be 400 batches.
BATCHES = 64
# What a checkpoint carries of a training as it is.
CARRIED = ("step", "artifacts", "gradient_evaluations", "train_seconds", "evaluation_seconds")
# What a point of the curve keeps of HVAdam's diagnostics.
WATCHED = ("hidden_gain", "hidden_share", "alignment", "restarts")


class DivergedError(Exception):
    """A loss or a measure left all bounds."""


class Training:
    """A task and a contender, somewhere between the first step and the last.

    Contenders that evaluate the loss themselves have a budget of as many evaluations as others
    have batches, line searches included, and are evaluated after as many.

    Raises:
        ValueError: the configuration names what there is not, or values out of range; or the data
            that the task reads is not there.
        TypeError: the contender has no such option.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.task = tasks.get(config.task)
        self.spec = contenders.get(config.contender)
        settings = settings_of(self.task, config)
        self.problem: Problem = self.task.build(settings, config.seed, config.protocol)
        if self.problem.steps < 1:
            raise ValueError(
                f"{config.task} must train for at least 1 step, "
                f"got {self.problem.steps} of these settings: {settings}."
            )
        if self.spec.closure:
            require_same_loss(config, self.problem)
        networks = self.problem.networks
        options = options_of(self.spec, config, self.problem)
        self.optimizers = {
            name: contenders.create(config.contender, network, **options)
            for name, network in networks.items()
        }
        # The share of the run that the schedule is for: line searches have their own rate.
        self._scheduled = options.get("switch", 0.0) if self.spec.closure else 1.0
        self.decay = {name: decay_of(self.spec, o) for name, o in self.optimizers.items()}
        count = settings.get("evaluations", self.task.evaluations)
        # The steps to evaluate at, 0 and the last one among them.
        self.points = frozenset(round(i * self.problem.steps / count) for i in range(count + 1))
        self.step = 0  # batches seen, or evaluations of the loss
        self.curve: list[Point] = []
        self.artifacts: dict[str, bytes] = {}  # files made at evaluations, by name
        self.test_parts: tuple[float, ...] = ()  # the metric over parts of the test split
        self.gradient_evaluations = 0  # backward passes of all losses
        self.train_seconds = 0.0  # in steps: the batch, both passes, clipping, the optimizer
        self.evaluation_seconds = 0.0

        self._company = Company()
        self._alone_before: bool | None = True  # in the sessions before this one
        self._parameters = {name: list(network.parameters()) for name, network in networks.items()}
        self._rates = [
            (group, group["lr"]) for o in self.optimizers.values() for group in o.param_groups
        ]
        self._first: dict[str, float] = {}  # each network's first loss
        self._losses = (0.0, 0)  # sum and count since the last point
        self._train_mode()

    @property
    def alone(self) -> bool | None:
        """Return whether the training has had the machine to itself; None if that is not known."""
        now = self._company.is_absent()
        return None if None in (now, self._alone_before) else bool(now and self._alone_before)

    def advance(self) -> float:
        """Take the steps of one batch, or of one closure; returns the mean of their losses.

        Raises:
            DivergedError: a loss is not finite, or beyond `BOUND`.
        """
        started = perf_counter()
        self._schedule()
        total, count = self._search() if self.spec.closure else self._descend()
        self._losses = self._losses[0] + total, self._losses[1] + count
        self.train_seconds += perf_counter() - started
        return total / max(count, 1)

    def _descend(self) -> tuple[float, int]:
        """Take a step on each loss of a batch; returns their sum and how many they are."""
        problem = self.problem
        # Heads of Lookaround see the same batches under different augmentations.
        variant = getattr(next(iter(self.optimizers.values())), "head", 0)
        total, count = 0.0, 0
        for loss, name in problem.updates(problem.batch(self.step, variant)):
            total += self._checked(loss.item(), name)
            count += 1
            optimizer = self.optimizers[name]
            optimizer.zero_grad()
            loss.backward()
            self.gradient_evaluations += 1
            if problem.max_grad_norm is not None:
                clip_grad_norm_(self._parameters[name], problem.max_grad_norm)
            optimizer.step()
        self.step += 1
        return total, count

    def _search(self) -> tuple[float, int]:
        """Let the optimizer evaluate the loss, no further than to the next point of the curve.

        Returns:
            The loss where it began, and 1.
        """
        [(name, optimizer)] = self.optimizers.items()
        room = min(point for point in self.points if point > self.step) - self.step
        for group in optimizer.param_groups:
            group["max_eval"] = room
        batch, losses = self.problem.batch(self.step), []

        def closure() -> Any:
            optimizer.zero_grad()
            [update] = self.problem.updates(batch)
            update.loss.backward()
            losses.append(update.loss.item())
            # A trial may be far off, but no line search comes back from what is not a number.
            if len(losses) == 1 or not math.isfinite(losses[-1]):
                self._checked(losses[-1], name)
            return update.loss

        try:
            optimizer.step(closure)
        finally:
            self.gradient_evaluations += len(losses)
        assert 1 <= len(losses) <= room, f"{self.config.contender} took {len(losses)} of {room}"
        self.step += len(losses)
        return losses[0], 1

    def evaluate(self) -> Point:
        """Add a point to the curve.

        Raises:
            DivergedError: a measure is not finite.
        """
        started = perf_counter()
        with self._shown():
            valid = self._measured("valid")
            for name, content in self.problem.artifacts().items():
                path = PurePath(name)
                full = f"{path.stem}-{self.step:07d}{path.suffix}"
                if not is_name(full):
                    raise RefusedError(f"{self.task.name}: {name!r} cannot be an artifact's name.")
                self.artifacts[full] = content
        total, count = self._losses
        self._losses = (0.0, 0)
        point = Point(
            step=self.step,
            examples=self.step * self.problem.batch_size,
            seconds=self.train_seconds,
            train_loss=total / count if count else None,
            valid=valid,
            diagnostics=diagnostics(self.optimizers),
        )
        self.curve.append(point)
        self.evaluation_seconds += perf_counter() - started
        return point

    def test(self) -> dict[str, float]:
        """Measure the test split, at the end.

        Raises:
            DivergedError: one of them is not finite.
        """
        started = perf_counter()
        with self._shown():
            measures = self._measured("test")
            self.test_parts = self.problem.test_parts()
        self.evaluation_seconds += perf_counter() - started
        return measures

    def state_dict(self) -> dict[str, Any]:
        """Return all that the rest of the training depends on, random generators included."""
        return {
            "networks": {name: net.state_dict() for name, net in self.problem.networks.items()},
            "optimizers": {name: o.state_dict() for name, o in self.optimizers.items()},
            "problem": self.problem.state_dict(),
            "random": checkpoints.random_state(),
            "first": dict(self._first),
            "losses": self._losses,
            "curve": [asdict(point) for point in self.curve],
            **{name: copy.copy(getattr(self, name)) for name in CARRIED},
            "alone": self.alone,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, to the last bit."""
        for name, network in self.problem.networks.items():
            network.load_state_dict(state["networks"][name])
            self.optimizers[name].load_state_dict(state["optimizers"][name])
        # Loading replaces the groups.
        groups = [group for o in self.optimizers.values() for group in o.param_groups]
        self._rates = [(g, lr) for g, (_, lr) in zip(groups, self._rates, strict=True)]
        self.problem.load_state_dict(state["problem"])
        self._first = dict(state["first"])
        self._losses = state["losses"]
        self.curve = [Point(**point) for point in state["curve"]]
        for name in CARRIED:
            setattr(self, name, copy.copy(state[name]))
        self._alone_before = state["alone"]
        checkpoints.set_random_state(state["random"])

    def _schedule(self) -> None:
        """Set the learning rates; a schedule for a share of the run is gone through within it."""
        steps = self.problem.steps
        over = self.step >= self._scheduled * steps
        at = steps if over else min(round(self.step / self._scheduled), steps - 1)
        for group, lr in self._rates:
            group["lr"] = lr if over else self.problem.rate(at, lr)

    def _checked(self, loss: float, network: str) -> float:
        first = self._first.setdefault(network, loss)
        if not abs(loss) <= BOUND * max(1.0, abs(first)):  # so that a NaN fails
            raise DivergedError(
                f"the loss was {loss:g} at step {self.step}, where it began at {first:g}."
            )
        return loss

    def _measured(self, split: Split) -> dict[str, float]:
        try:
            glances = split == "valid" and self.step < self.problem.steps
            measures = self.problem.glance() if glances else self.problem.evaluate(split)
        except OverflowError as error:  # such as the perplexity of a loss of 1000
            raise DivergedError(f"a {split} measure overflows at step {self.step}.") from error
        found = self._as_numbers(measures, split)
        for name, value in found.items():
            if not math.isfinite(value):
                raise DivergedError(f"the {split} {name} was {value:g} at step {self.step}.")
        return found

    def _as_numbers(self, measures: Any, split: Split) -> dict[str, float]:
        """Return measures as floats; refuse those that nobody could judge a run by."""
        who, metric = f"{self.task.name}: evaluate({split!r})", self.task.metric
        if not isinstance(measures, Mapping) or metric not in measures:
            got = ", ".join(map(str, measures)) if isinstance(measures, Mapping) else measures
            raise RefusedError(f"{who} must return the task's metric, {metric!r}, got {got}.")
        try:
            return {str(name): float(value) for name, value in measures.items()}
        except (TypeError, ValueError) as error:
            raise RefusedError(f"{who} must return numbers, got {dict(measures)!r}.") from error

    @contextmanager
    def _shown(self) -> Iterator[None]:
        """Enter a context to evaluate in: the weights to show, and no trace after it."""
        with checkpoints.isolated(self.config.seed), ExitStack() as stack:
            for optimizer in self.optimizers.values():
                stack.enter_context(self.spec.evaluation(optimizer))
            if self.spec.averages:
                stack.enter_context(reestimated(self.problem))
            yield
        self._train_mode()

    def _train_mode(self) -> None:
        for network in self.problem.networks.values():
            network.train()


@torch.no_grad()
def diagnostics(of: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return what HVAdam's hidden vectors do in each network: means, and all restarts.

    Empty for other contenders, and before the first step.
    """
    found: dict[str, dict[str, float]] = {}
    for name, optimizer in of.items():
        if not hasattr(optimizer, "diagnostics"):
            continue
        scopes = list(optimizer.diagnostics().values())
        values = {key: [float(scope[key]) for scope in scopes if key in scope] for key in WATCHED}
        summary = {
            key: sum(v) if key == "restarts" else sum(v) / len(v) for key, v in values.items() if v
        }
        found[name] = {key: value for key, value in summary.items() if math.isfinite(value)}
    return found


@contextmanager
def reestimated(problem: Problem) -> Iterator[None]:
    """Enter a context whose running statistics are those of the weights as they are now.

    They are plain means over the first `BATCHES` batches of training. On leaving, all buffers are
    what they were. Without such layers nothing happens.
    """
    norms = [
        module
        for network in problem.networks.values()
        for module in network.modules()
        if isinstance(module, _NormBase) and module.running_mean is not None
    ]
    if not norms:
        yield
        return
    buffers = [b for network in problem.networks.values() for b in network.buffers()]
    kept = [buffer.clone() for buffer in buffers]
    try:
        _estimate(problem, norms)
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, kept, strict=True):
                buffer.copy_(value)


def _estimate(problem: Problem, norms: list[_NormBase]) -> None:
    state = copy.deepcopy(problem.state_dict())
    momenta = [norm.momentum for norm in norms]
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # all batches weigh the same
        for network in problem.networks.values():
            network.train()
        for step in range(min(BATCHES, problem.steps)):
            for _ in problem.updates(problem.batch(step)):
                pass  # the forward pass is all that is wanted; nothing steps
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        problem.load_state_dict(state)
