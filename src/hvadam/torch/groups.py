"""Param groups: who owns which option, what a group may override, and the scalars it carries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from typing import Any

import torch
from torch import Tensor

from hvadam.core import hyperparams
from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Hyperparams, one_of
from hvadam.torch import kernels, parameters

OPTIMIZER_WIDE = (
    *("scope", "restart_rule", "max_grad_norm", "state_dtype", "rounding_seed", "kernel"),
)
OPTIONS = (*(field.name for field in fields(Hyperparams)), "kernel")
# What torch's optimizers choose their implementation with; here that is one option.
ELSEWHERE = ("foreach", "fused", "capturable", "differentiable")
# Options that there are not, and why.
MISSING = {
    "amsgrad": "is an option of torch's Adam and AdamW, and nothing stands in its place here",
    "hidden_step": "is no option any more: every step is the one that was called exact",
}
# What options are called in other optimizers, and in hvadam.jax.
RENAMED = {
    **{"learning_rate": "lr", "epsilon": "eps", "decoupled_weight_decay": "weight_decay_mode"},
    **dict.fromkeys(("b1", "b2", "beta1", "beta2"), "betas"),
}


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
    for name in group:
        meant = _misspelt(name) if isinstance(name, str) else None
        if meant:
            raise ValueError(f"HVAdam: a param group has {name!r}; did you mean {meant!r}?")
    for name in OPTIMIZER_WIDE:
        ours = (existing[0] if existing else defaults)[name]
        if group.setdefault(name, ours) != ours:
            raise ValueError(
                f"HVAdam: {name} is set for the whole optimizer, here to {ours!r}; a param group "
                f"cannot override it, got {group[name]!r}."
            )
    check_options({**defaults, **group})
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


def warn_of_large_eps(param_groups: Iterable[dict[str, Any]]) -> None:
    """Warn once of groups whose eps is Adam's; beside Adam's second moment it means the same."""
    large = [group for group in param_groups if group["preconditioner"] != "adam"]
    if large:
        group = max(large, key=lambda group: group["eps"])
        hyperparams.warn_of_large_eps(group["eps"], group["betas"][1])


def refuse_unexpected(names: Iterable[str]) -> None:
    """Refuse arguments that HVAdam does not have, naming what stands in their place."""
    for name in names:
        if name in MISSING:
            raise TypeError(f"HVAdam: {name} {MISSING[name]}. Leave {name} out.")
        if name in RENAMED:
            raise TypeError(
                f"HVAdam: got an unexpected keyword argument {name!r}; here it is "
                f"{RENAMED[name]!r}."
            )
        if name in ELSEWHERE:
            raise TypeError(
                f"HVAdam: {name} is an option of torch's optimizers; here kernel= chooses how a "
                f"step is computed, one of {', '.join(map(repr, kernels.NAMES))}. Leave {name} out."
            )
        close = get_close_matches(name, (*OPTIONS, "shard_group"), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"HVAdam: got an unexpected keyword argument {name!r}{hint}")


@cache
def _misspelt(name: str) -> str | None:
    """Return the option that a group's key was meant to be, if it looks like one.

    Groups also carry keys of their users', as "name", "lr_scale" or "no_weight_decay": one that has
    an option's name within its own, as words, is no slip.
    """
    if name in OPTIONS or name == "decoupled_weight_decay":  # AdamW's groups have that
        return None
    if name in RENAMED:
        return RENAMED[name]
    close = get_close_matches(name.lower(), OPTIONS, n=1, cutoff=0.85)
    return close[0] if close and f"_{close[0]}_" not in f"_{name}_" else None


def require_agreement(first: dict[str, Any], other: dict[str, Any]) -> None:
    """Refuse groups that share a hidden vector but not the options that move it."""
    for (name, ours), (_, theirs) in zip(policy_options(first), policy_options(other), strict=True):
        if torch.compiler.is_compiling() and (
            isinstance(ours, Tensor) or isinstance(theirs, Tensor)
        ):
            continue  # a trace cannot look at tensors
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
