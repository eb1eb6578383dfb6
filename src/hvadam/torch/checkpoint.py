"""Loading a state dict: what does not fit is refused first, and the state keeps its dtypes.

A state kept in another ``state_dtype`` is converted: decoded exactly, then rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

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
    """Load a state dict through torch's own method, which casts state to the parameter's dtype.

    Two hooks around it mend that: the last one before sees the state dict as the user's hooks left
    it, checks it and keeps it; the first one after puts the uncast tensors in place.
    """
    kept: dict[str, Any] = {}

    def check(_: Any, incoming: dict[str, Any]) -> dict[str, Any]:
        kept.update(state=incoming["state"], groups=incoming["param_groups"])
        return {**incoming, "param_groups": _checked_groups(optimizer, incoming)}

    def restore(_: Any) -> None:
        _restore_state(optimizer, kept["state"], kept["groups"])

    before = optimizer.register_load_state_dict_pre_hook(check)
    after = optimizer.register_load_state_dict_post_hook(restore, prepend=True)
    try:
        load_plain(state_dict)
    finally:
        before.remove()
        after.remove()


def _checked_groups(optimizer: HVAdam, incoming: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups to load, with this optimizer's own kernel, or refuse them."""
    loaded = [dict(group) for group in incoming["param_groups"]]
    ours = optimizer.param_groups
    if [len(g["params"]) for g in loaded] != [len(g["params"]) for g in ours]:
        return loaded  # torch refuses that in its own words
    custom = optimizer.defaults["hidden_gain"]
    for mine, group in zip(ours, loaded, strict=True):
        missing = [name for name in groups.OPTIONS if name not in group]
        if missing:
            raise ValueError(
                f"HVAdam: this is not the state of an HVAdam, its groups lack {missing[0]!r}; if "
                "it is that of an Adam or AdamW, go on from it with hvadam.warm_start(optimizer, "
                "state_dict)."
            )
        for name in ("scope", "restart_rule", "hidden_step"):
            if group[name] != mine[name]:
                raise ValueError(
                    f"HVAdam: the state was made with {name}={group[name]!r}, this optimizer has "
                    f"{mine[name]!r}; build it with {name}={group[name]!r} to load it."
                )
        gain = group["hidden_gain"]
        if gain == groups.CUSTOM and not callable(custom):
            raise ValueError(
                "HVAdam: the state was made with a callable hidden_gain, which a state dict does "
                "not hold; build the optimizer with it to load this."
            )
        gain = custom if gain == groups.CUSTOM else gain
        groups.check_options({**group, "hidden_gain": gain, "kernel": mine["kernel"]})
        if group["scope"] != "tensor":
            _check_scalars(group.get("scalars"))
            if group["scope"] == "global":
                groups.require_agreement(loaded[0], group)
                if not _same_scalars(group["scalars"], loaded[0]["scalars"]):
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
    names |= {"pending"} if group["hidden_step"] == "late" else set()
    names |= set(storage.SCALES.values()) if low_bit == "int8" else set()
    if set(state) != names:
        raise ValueError(
            "HVAdam: this is not the state of an HVAdam, a parameter's state must hold "
            f"{sorted(names)}, got {sorted(map(str, state))}."
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
    if "pending" in names and state["pending"].shape != (2,):
        raise ValueError(f"HVAdam: pending must be two numbers, got {state['pending']!r}.")


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


def _same_scalars(a: Tensor, b: Tensor) -> bool:
    """Return whether two groups carry the same scalars; a gain of the user's may have been NaN."""
    return torch.allclose(a.cpu(), b.cpu(), rtol=0.0, atol=0.0, equal_nan=True)


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
            if "pending" in loaded[index]:
                state["pending"] = loaded[index]["pending"].to(p.device, devices.widest(p.device))
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
