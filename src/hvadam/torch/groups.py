"""Param groups: who owns which option, what a group may override, and the scalars it carries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Hyperparams, one_of
from hvadam.torch import kernels, parameters

OPTIMIZER_WIDE = (
    *("scope", "restart_rule", "max_grad_norm"),
    *("state_dtype", "rounding_seed", "hidden_step", "kernel"),
)
OPTIONS = (*(field.name for field in fields(Hyperparams)), "kernel")
# What torch's optimizers choose their implementation with; here that is one option.
ELSEWHERE = ("foreach", "fused", "capturable", "differentiable")
CUSTOM = "custom"  # stands in a group for the callable gain that lives in the defaults


def initial_scalars() -> Tensor:
    """Return the scalars of a hidden vector that has not started."""
    return torch.tensor(policy.INITIAL, dtype=torch.float64, device="cpu")


def checked(
    group: dict[str, Any], defaults: dict[str, Any], existing: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a group that may join: a copy, so that a refusal changes nothing of the caller's.

    Raises:
        TypeError, ValueError: an option out of its range, one that is not the group's to set, or
            one that disagrees with the groups that share its hidden vector.
    """
    group = dict(group)
    for name in OPTIMIZER_WIDE:
        ours = (existing[0] if existing else defaults)[name]
        if group.setdefault(name, ours) != ours:
            raise ValueError(
                f"HVAdam: {name} is set for the whole optimizer, here to {ours!r}; a param group "
                f"cannot override it, got {group[name]!r}."
            )
    gain = group.get("hidden_gain", defaults["hidden_gain"])
    if gain == CUSTOM and callable(defaults["hidden_gain"]):
        gain = defaults["hidden_gain"]
    elif callable(gain) and gain is not defaults["hidden_gain"]:
        raise ValueError(
            "HVAdam: a callable hidden_gain is given once, to the optimizer; a param group may "
            f"only name another, got {gain!r}."
        )
    check_options({**defaults, **group, "hidden_gain": gain})
    group["hidden_gain"] = CUSTOM if callable(gain) else gain
    if isinstance(group.get("params"), Tensor):
        group["params"] = [group["params"]]
    if "params" in group and not isinstance(group["params"], set):  # torch refuses those
        group["params"] = list(group["params"])
        for p in group["params"]:
            parameters.check(p[1] if isinstance(p, tuple) else p, defaults["state_dtype"])
    if defaults["scope"] == "global" and existing:
        require_agreement(existing[0], {**defaults, **group})
    return group


def check_options(options: dict[str, Any]) -> None:
    """Refuse a value out of its range, naming it."""
    one_of("kernel", options["kernel"], kernels.NAMES)
    kernels.require(options["kernel"])
    lr = options["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"HVAdam: Tensor lr must be 1-element, got shape {tuple(lr.shape)}.")
    Hyperparams(**{name: options[name] for name in OPTIONS if name != "kernel"})
    gain = options["hidden_gain"]
    if callable(gain):
        delta = torch.linspace(0, 1, 3, dtype=torch.float64, device="cpu")
        values = gain(delta)
        if not isinstance(values, Tensor) or values.shape != delta.shape:
            raise TypeError(
                "HVAdam: a callable hidden_gain must map a tensor of alignments to a tensor of "
                f"the same shape, got {values!r}."
            )


def warn_of_retired(options: dict[str, Any]) -> None:
    """Warn of what the next release refuses, with the reason and what to write instead."""
    if callable(options["hidden_gain"]):
        warnings.warn(
            "HVAdam: a callable hidden_gain will be refused from the next release on: no gain but "
            "the paper's has been ahead anywhere, and it costs a copy of m and s at every step. "
            'Write "exponential" or "linear", with hidden_scale for more or less of it.',
            FutureWarning,
            stacklevel=3,
        )


def refuse_unexpected(names: Iterable[str]) -> None:
    """Refuse arguments that HVAdam does not have, naming what stands in their place."""
    for name in names:
        if name in ELSEWHERE:
            raise TypeError(
                f"HVAdam: {name} is an option of torch's optimizers; here kernel= chooses how a "
                f"step is computed, one of {', '.join(map(repr, kernels.NAMES))}. Leave {name} out."
            )
        close = get_close_matches(name, (*OPTIONS, "shard_group"), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"HVAdam: got an unexpected keyword argument {name!r}{hint}")


def require_agreement(first: dict[str, Any], other: dict[str, Any]) -> None:
    """Refuse groups that share a hidden vector but not the options that move it."""
    for (name, ours), (_, theirs) in zip(policy_options(first), policy_options(other), strict=True):
        if ours != theirs:
            raise ValueError(
                f'HVAdam: {name} must be equal in all param groups under scope="global", got '
                f'{ours!r} and {theirs!r}; scope="group" lets groups differ.'
            )


def policy_options(group: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the options that move a hidden vector, by name: who shares one agrees on them."""
    names = ("restart_threshold", "hidden_gain")
    return [("betas[1]", group["betas"][1]), *((name, group[name]) for name in names)]


def places(group: dict[str, Any], params: Sequence[Tensor], first: int) -> Sequence[int]:
    """Return the places of some of a group's parameters, its first one's being given."""
    if len(params) == len(group["params"]):
        return range(first, first + len(params))
    place = {p: first + i for i, p in enumerate(group["params"])}
    return [place[p] for p in params]


def placed(param_groups: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Return the groups, each with the place of its first parameter among those of all."""
    found: list[tuple[dict[str, Any], int]] = []
    first = 0
    for group in param_groups:
        found.append((group, first))
        first += len(group["params"])
    return found
