"""What a run is built with: its settings and options in full, refused if they cannot run."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import torch

from hvadam_bench import contenders, tasks
from hvadam_bench.registry import instead, is_name
from hvadam_bench.running.checking import is_count
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Decay
from hvadam_bench.running.sources import sources_of
from hvadam_bench.tasks import Problem, Task

# What an option or a setting may be, in words; a truth is a number too, so it comes first.
KINDS: dict[Any, str] = {
    bool: "True or False",
    int | float: "a number",
    str: "a word",
    list | tuple: "a list",
}


def check(config: RunConfig) -> None:
    """Refuse what cannot run, without building anything large; the data is not looked at.

    Raises:
        ValueError: the configuration names what there is not, or values out of range.
        TypeError: the contender has no such option.
    """
    settings_of(tasks.get(config.task), config)
    given = _as_options(config.options)
    _require_kinds(config.contender, given, contenders.get(config.contender).defaults)
    contenders.create(config.contender, [torch.nn.Parameter(torch.zeros(1))], **given)


def basis_of(config: RunConfig) -> dict[str, Any]:
    """Return all settings and options of a run, defaults included: others are another run.

    Of a user's task or contender, the code too.

    Example:
        >>> basis_of(RunConfig("digits_mlp", "sgd", "smoke", options={"lr": 1.0}))["options"]
        {'lr': 1.0, 'momentum': 0.9, 'weight_decay': 0.0}
    """
    basis: dict[str, Any] = {
        "settings": settings_of(tasks.get(config.task), config),
        "options": {**contenders.get(config.contender).defaults, **config.options},
    }
    if sources := sources_of(config):
        basis["code"] = {what: source.code for what, source in sources.items()}
    return json.loads(json.dumps(basis))


def settings_of(task: Task, config: RunConfig) -> dict[str, Any]:
    """Return a task's settings at the scale of a run, with the run's changes.

    Raises:
        ValueError: the task has no such scale, protocol or setting, or not of that value.
    """
    _require(config.scale, task.scales, f"{task.name} has no scale")
    _require(config.protocol, task.protocols, f"{task.name} has no protocol")
    if not is_name(config.scale):
        raise ValueError(f"{task.name}: a scale must have a plain name, got {config.scale!r}.")
    settings = dict(task.scales[config.scale])
    for name in config.settings:
        _require(name, settings, f"{task.name} has no setting")
    _require_kinds(task.name, config.settings, settings)
    _require_counts(task, config.settings)
    return {**settings, **config.settings}


def options_of(
    spec: contenders.OptimizerSpec, config: RunConfig, problem: Problem
) -> dict[str, Any]:
    """Return what a contender is built with: the run's options before the task's before its own."""
    options: dict[str, Any] = {}
    if "weight_decay" in spec.defaults:
        options["weight_decay"] = problem.weight_decay
    if "horizon" in spec.defaults:  # of AdEMAMix's and SWA's schedules: the whole run
        options["horizon"] = problem.steps
    return {**options, **_as_options(config.options)}


def decay_of(spec: contenders.OptimizerSpec, optimizer: torch.optim.Optimizer) -> Decay:
    """Return the weight decay that a contender's optimizer works with."""
    # The runner gives each network one set of options, so that any group tells all.
    options = optimizer.param_groups[0]
    value = options.get("weight_decay", 0.0)
    if not value:
        return Decay("none", 0.0)
    return Decay(options.get("weight_decay_mode", spec.decay), value)


def require_same_loss(config: RunConfig, problem: Problem) -> None:
    """Refuse a task whose loss a line search cannot evaluate again."""
    if not problem.same_loss:
        raise ValueError(
            f"{config.contender} evaluates a loss several times in a step, so it must be the same "
            f"at every step, and {config.task} draws batches or trains several networks; take a "
            "task of one full batch, or another contender."
        )


def _as_options(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as contenders take them: tuples where JSON has lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}


def _require_kinds(who: str, given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuse a word or a pair for a number, before it fails deep inside without a name."""
    for name, value in given.items():
        inner = value if isinstance(value, list | tuple) else [value]
        if not all(math.isfinite(one) for one in inner if isinstance(one, int | float)):
            raise ValueError(f"{who}: {name} must be finite, got {value!r}.")
        for kind, words in KINDS.items():
            if isinstance(usual.get(name), kind):
                if not isinstance(value, kind):
                    such = f"must be {words}, such as {usual[name]!r}"
                    raise ValueError(f"{who}: {name} {such}, got {value!r}.")
                break


def _require_counts(task: Task, given: Mapping[str, Any]) -> None:
    """Refuse what is no count where the task itself has counts at all its scales.

    A run of no epochs, or of batches of nothing, would be recorded as done.
    """
    for name, value in given.items():
        own = [scale.get(name) for scale in task.scales.values()]
        numbers = [one for one in own if one is not None]  # None stands for all there are
        if value is None and None in own:
            continue
        if numbers and all(map(is_count, numbers)) and not is_count(value):
            raise ValueError(
                f"{task.name}: {name} must be a whole number of at least 1, got {value!r}."
            )


def _require(word: str, known: Collection[str], complaint: str) -> None:
    if word in known:
        return
    raise ValueError(f"{complaint} {word!r}; {instead(word, list(known))}")
