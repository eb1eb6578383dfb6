"""Param groups: who owns which option, what a group may override, and the scalars it carries."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from hvadam.core import scalars as policy
from hvadam.core.hyperparams import Hyperparams, one_of
from hvadam.torch import kernels

OPTIMIZER_WIDE = (
    *("scope", "restart_rule", "max_grad_norm"),
    *("state_dtype", "rounding_seed", "hidden_step", "kernel"),
)
OPTIONS = (*(field.name for field in fields(Hyperparams)), "kernel")
CUSTOM = "custom"  # stands in a group for the callable gain that lives in the defaults


def initial_scalars() -> Tensor:
    """The scalars of a hidden vector that has not started."""
    return torch.tensor(policy.INITIAL, dtype=torch.float64)


def checked(
    group: dict[str, Any], defaults: dict[str, Any], existing: list[dict[str, Any]]
) -> dict[str, Any]:
    """A group that may join: a copy, so that nothing of the caller's changes if we refuse it.

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
            _check_parameter(p[1] if isinstance(p, tuple) else p, defaults["state_dtype"])
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
        delta = torch.linspace(0, 1, 3, dtype=torch.float64)
        values = gain(delta)
        if not isinstance(values, Tensor) or values.shape != delta.shape:
            raise TypeError(
                "HVAdam: a callable hidden_gain must map a tensor of alignments to a tensor of "
                f"the same shape, got {values!r}."
            )


def require_agreement(first: dict[str, Any], other: dict[str, Any]) -> None:
    """Groups that share one hidden vector share the options that move it."""
    for (name, ours), (_, theirs) in zip(policy_options(first), policy_options(other), strict=True):
        if ours != theirs:
            raise ValueError(
                f'HVAdam: {name} must be equal in all param groups under scope="global", got '
                f'{ours!r} and {theirs!r}; scope="group" lets groups differ.'
            )


def policy_options(group: dict[str, Any]) -> list[tuple[str, Any]]:
    """The options that move a hidden vector, by name: who shares one agrees on them."""
    names = ("restart_threshold", "hidden_gain")
    return [("betas[1]", group["betas"][1]), *((name, group[name]) for name in names)]


def gain_of(group: dict[str, Any], custom: Any) -> Any:
    """The gain function of a group."""
    name = group["hidden_gain"]
    return custom if name == CUSTOM else policy.GAINS[name]


def _check_parameter(p: Any, state: str) -> None:
    if not isinstance(p, Tensor):  # torch refuses it
        return
    if not (p.is_floating_point() or p.is_complex()):
        raise TypeError(f"HVAdam: parameters must be floating point or complex, got {p.dtype}.")
    if p.is_conj() or p.is_neg():
        raise ValueError(
            "HVAdam: parameters must not be conjugated or negated lazily; give it "
            "p.resolve_conj().resolve_neg()."
        )
    if state != "float32" and torch.promote_types(p.dtype, torch.float32) != torch.float32:
        raise TypeError(
            f'HVAdam: state_dtype="{state}" is for parameters of float32 or less, got {p.dtype}; '
            'use state_dtype="float32".'
        )
