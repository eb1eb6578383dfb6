"""Loading a state dict: what does not fit is refused first, and the state keeps its dtypes.

A state kept in another ``state_dtype`` is converted: decoded exactly, then rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hvadam.core.hyperparams import warn
from hvadam.core.scalars import INITIAL
from hvadam.torch import devices, groups, sharding, storage

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam

TENSORS = ("exp_avg", "hidden", "exp_avg_var")
# What a state dict does not decide: how the arithmetic is done, and how its results are kept.
OWN = ("kernel", "state_dtype")


def load(
    optimizer: HVAdam, state_dict: dict[str, Any], load_plain: Callable[[dict[str, Any]], None]
) -> None:
    """Load a state dict through torch's own method, but for the state of parameters.

    That would be cast to the parameter's dtype, and every tensor looked for in all groups. So two
    hooks stand around it: the last one before sees the state dict as the user's hooks left it,
    checks it and keeps the state back; the first one after puts it in place.
    """
    _require(Mapping, "a state dict", state_dict)  # a user's hook may mend what it holds
    kept: dict[str, Any] = {}

    def check(_: Any, incoming: dict[str, Any]) -> dict[str, Any]:
        _check_form(incoming)
        incoming = _without_late_step(incoming)
        kept.update(state=incoming["state"], groups=incoming["param_groups"])
        loaded = _checked_groups(optimizer, incoming)
        indices = {index for group in loaded for index in group["params"]}
        rest = {key: x for key, x in incoming["state"].items() if key not in indices}
        return {**incoming, "state": rest, "param_groups": loaded}

    def restore(_: Any) -> None:
        _restore_state(optimizer, kept["state"], kept["groups"])

    built_with = [dict(group) for group in optimizer.param_groups]
    before = optimizer.register_load_state_dict_pre_hook(check)
    after = optimizer.register_load_state_dict_post_hook(restore, prepend=True)
    try:
        load_plain(state_dict)
    finally:
        before.remove()
        after.remove()
    _warn_of_changes(built_with, optimizer.param_groups)


def _check_form(incoming: Any) -> None:
    """Refuse what has not the form of an optimizer's state dict: lists and dicts where they belong.

    Raises:
        TypeError: Something of another kind.
        ValueError: It has no state or no groups.
    """
    _require(Mapping, "a state dict", incoming)
    if not {"state", "param_groups"} <= incoming.keys():
        inner = [key for key, value in incoming.items() if _is_state_dict(value)]
        hint = f"; load its {inner[0]!r}" if inner else ""
        raise ValueError(
            "HVAdam: a state dict must hold 'state' and 'param_groups', got one with "
            f"{sorted(map(str, incoming))}{hint}."
        )
    _require(Mapping, "'state' of a state dict", incoming["state"])
    for values in incoming["state"].values():
        _require(Mapping, "a parameter's state", values)
    _require(list, "'param_groups' of a state dict", incoming["param_groups"])
    for group in incoming["param_groups"]:
        _require(Mapping, "a param group of a state dict", group)
        _require(list, "'params' of a param group", group.get("params"))


def _without_late_step(incoming: dict[str, Any]) -> dict[str, Any]:
    """Return a state dict without what ``hidden_step``, an option no more, has left in it.

    Raises:
        ValueError: A step along v is still to be taken: no state can hold it any more, and the
            parameters, which may be loaded after this, are not to be moved here.
    """
    found = incoming["param_groups"]
    if not any("hidden_step" in group for group in found):
        return incoming
    states = incoming["state"]
    if any(bool(torch.as_tensor(state.get("pending", 0)).any()) for state in states.values()):
        raise ValueError(
            "HVAdam: this state was made with hidden_step='late', which is gone, and its last step "
            "along the hidden vector is still to be taken. Load it with the hvadam that made it, "
            "call optimizer.flush(), and save the model and the optimizer again."
        )
    return {
        **incoming,
        "state": {
            key: {name: x for name, x in state.items() if name != "pending"}
            for key, state in states.items()
        },
        "param_groups": [
            {name: x for name, x in group.items() if name != "hidden_step"} for group in found
        ],
    }


def _is_state_dict(value: Any) -> bool:
    """Return whether a value may be the state dict of an optimizer."""
    return isinstance(value, Mapping) and {"state", "param_groups"} <= value.keys()


def _require(kind: type[Any], what: str, value: Any) -> None:
    """Refuse a value of another kind."""
    if not isinstance(value, kind):
        raise TypeError(
            f"HVAdam: {what} must be a {'list' if kind is list else 'dict'}, got "
            f"{type(value).__name__}; give load_state_dict what state_dict() returned."
        )


def _warn_of_changes(ours: list[dict[str, Any]], loaded: list[dict[str, Any]]) -> None:
    """Warn once of the options that a checkpoint changed, each with its value before and after.

    lr is left out, and betas[0] where a schedule cycles it: they go on from where they were.
    """
    changes: dict[str, list[int]] = {}
    for i, (mine, group) in enumerate(zip(ours, loaded, strict=True)):
        for name in groups.OPTIONS:
            before, after = (
                tuple(x) if isinstance(x, list) else x for x in (mine[name], group[name])
            )
            cycled = name == "betas" and "max_momentum" in {*mine, *group}
            if before != after and name != "lr" and not (cycled and before[1] == after[1]):
                changes.setdefault(f"{name} from {before!r} to {after!r}", []).append(i)
    if not changes:
        return
    places = {
        change: "" if len(where) == len(ours) else f" in group {', '.join(map(str, where))}"
        for change, where in changes.items()
    }
    warn(
        "HVAdam: the checkpoint changed options that this optimizer was built with: "
        f"{'; '.join(map(''.join, places.items()))}. To keep your own, set them in "
        "optimizer.param_groups after loading."
    )


def _checked_groups(optimizer: HVAdam, incoming: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups to load, with this optimizer's own kernel, or refuse them."""
    loaded = [dict(group) for group in incoming["param_groups"]]
    ours = optimizer.param_groups
    if [len(g["params"]) for g in loaded] != [len(g["params"]) for g in ours]:
        return loaded  # torch refuses that in its own words
    for mine, group in zip(ours, loaded, strict=True):
        missing = [name for name in groups.OPTIONS if name not in group]
        if missing:
            raise ValueError(
                f"HVAdam: this is not the state of an HVAdam, its groups lack {missing[0]!r}; if "
                "it is that of an Adam or AdamW, go on from it with hvadam.warm_start(optimizer, "
                "state_dict)."
            )
        for name in ("scope", "restart_rule"):
            if group[name] != mine[name]:
                raise ValueError(
                    f"HVAdam: the state was made with {name}={group[name]!r}, this optimizer has "
                    f"{mine[name]!r}; build it with {name}={group[name]!r} to load it."
                )
        groups.check_options({**group, "kernel": mine["kernel"]})
        if group["scope"] != "tensor":
            _check_scalars(group.get("scalars"))
            if group["scope"] == "global":
                groups.require_agreement(loaded[0], group)
                if group["scalars"].tolist() != loaded[0]["scalars"].tolist():
                    raise ValueError(
                        'HVAdam: under scope="global" all groups carry the same scalars, but those '
                        "of this state dict differ: it is corrupt or pieced together."
                    )
        for index, p in zip(group["params"], mine["params"], strict=True):
            _check_state(p, incoming["state"].get(index), group)
        group.update({name: mine[name] for name in OWN})
    return loaded


def _check_state(p: Tensor, state: dict[str, Any] | None, group: dict[str, Any]) -> None:
    """Refuse a parameter's state that does not fit it."""
    if not state:  # never stepped
        return
    low_bit, per_tensor = group["state_dtype"], group["scope"] == "tensor"
    names = {"step", *TENSORS}
    names |= {"scalars"} if per_tensor else set()
    names |= set(storage.SCALES.values()) if low_bit == "int8" else set()
    if set(state) != names:
        raise ValueError(
            "HVAdam: this is not the state of an HVAdam, a parameter's state must hold "
            f"{sorted(names)}, got {sorted(map(str, state))}."
        )
    for name in sorted(names):
        number = name == "step" and isinstance(state[name], (int, float))
        if not isinstance(state[name], Tensor) and not number:
            raise TypeError(
                f"HVAdam: {name} of a parameter's state must be a tensor, got "
                f"{type(state[name]).__name__}; this state is corrupt, load another checkpoint."
            )
    dtypes = storage.DTYPES.get(low_bit)
    for name in TENSORS:
        tensor = state[name]
        if tensor.shape != p.shape:
            raise ValueError(
                f"HVAdam: {name} of shape {tuple(tensor.shape)} does not fit a parameter of shape "
                f"{tuple(p.shape)}."
            )
        check_shards(name, tensor, p)
        expected = dtypes and dtypes[name == "exp_avg_var"]
        if (expected and tensor.dtype != expected) or tensor.is_complex() != p.is_complex():
            raise ValueError(
                f"HVAdam: {name} of {tensor.dtype} does not fit a parameter of {p.dtype} with "
                f"state_dtype={low_bit!r}."
            )
        if low_bit == "int8":
            _check_scales(name, state[storage.SCALES[name]], tensor.numel())
    if per_tensor:
        _check_scalars(state["scalars"])


def check_shards(name: str, tensor: Any, p: Any) -> None:
    """Refuse a tensor that is not laid out on the ranks as its parameter is."""
    if sharding.is_dtensor(p) != sharding.is_dtensor(tensor) or (
        sharding.is_dtensor(p) and p.placements != tensor.placements
    ):
        ours, theirs = (
            f"{x.placements}" if sharding.is_dtensor(x) else "whole" for x in (p, tensor)
        )
        raise ValueError(
            f"HVAdam: {name} is laid out as {theirs} and its parameter as {ours}; load it through "
            "torch.distributed.checkpoint.state_dict.set_optimizer_state_dict, which reshards."
        )


def _check_scales(name: str, scales: Tensor, size: int) -> None:
    """Refuse scales of low-bit state that are too many, too few or no positive numbers."""
    blocks = -(-size // storage.BLOCK)
    if scales.shape != (blocks,) or not bool((scales.isfinite() & (scales > 0)).all()):
        raise ValueError(
            f"HVAdam: the scales of {name} must be {blocks} finite numbers above 0; this state is "
            "corrupt, load another checkpoint."
        )


def _check_scalars(scalars: Any) -> None:
    """Refuse what cannot be the scalars of a hidden vector."""
    if not isinstance(scalars, Tensor) or scalars.shape != (len(INITIAL),):
        raise ValueError(
            f"HVAdam: scalars must be a tensor of {len(INITIAL)} numbers, got {scalars!r}."
        )


def _restore_state(
    optimizer: HVAdam, loaded: dict[Any, dict[str, Any]], loaded_groups: list[dict[str, Any]]
) -> None:
    """Put every tensor of the state in place, in its own dtype, on its parameter's device."""
    for group, loaded_group in zip(optimizer.param_groups, loaded_groups, strict=True):
        for index, p in zip(loaded_group["params"], group["params"], strict=True):
            if not loaded.get(index):
                continue
            state: dict[str, Any] = {
                "step": torch.as_tensor(
                    loaded[index]["step"], dtype=torch.float32, device=p.device
                ),
                **_converted(p, loaded[index], loaded_group["state_dtype"], group["state_dtype"]),
            }
            if "scalars" in loaded[index]:
                home = devices.home(p.device)
                state["scalars"] = loaded[index]["scalars"].to(home, torch.float64)
            optimizer.state[p] = state
        if "scalars" in group and group["params"]:
            group["scalars"] = group["scalars"].to(
                devices.home(group["params"][0].device), torch.float64
            )


def _converted(p: Tensor, state: dict[str, Any], source: str, target: str) -> dict[str, Any]:
    """Return m, v and s as this optimizer keeps them."""
    made = storage.empty_state(p, target)
    if source == target:
        return {key: state[key].to(p.device, tensor.dtype) for key, tensor in made.items()}
    for name in TENSORS:
        scales = state.get(storage.SCALES[name])
        full = state[name].to(p.device)
        if source != "float32":
            full = storage.decode(full, None if scales is None else scales.to(p.device))
        if target == "float32":
            made[name].copy_(full)
        else:
            own, part = sharding.local_part(made[name]), sharding.local_part(full)
            same_layout = torch.empty_like(own, dtype=torch.float32).copy_(part)
            storage.encode(same_layout, own, made.get(storage.SCALES[name]), None)
    return made
