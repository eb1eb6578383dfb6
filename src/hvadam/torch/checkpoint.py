"""Loading a state dict: what does not fit is refused first, and the state keeps its dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hvadam.core.scalars import INITIAL
from hvadam.torch import groups

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam

TENSORS = ("exp_avg", "hidden", "exp_avg_var")


def load(
    optimizer: HVAdam, state_dict: dict[str, Any], load_plain: Callable[[dict[str, Any]], None]
) -> None:
    """Load through torch's own method, which casts state to the parameter's dtype.

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
    """The groups to load, with this optimizer's own kernel; or the reason why not."""
    loaded = [dict(group) for group in incoming["param_groups"]]
    ours = optimizer.param_groups
    if [len(g["params"]) for g in loaded] != [len(g["params"]) for g in ours]:
        return loaded  # torch refuses that in its own words
    custom = optimizer.defaults["hidden_gain"]
    for mine, group in zip(ours, loaded, strict=True):
        missing = [name for name in groups.OPTIONS if name not in group]
        if missing:
            raise ValueError(
                f"HVAdam: this is not the state of an HVAdam, its groups lack {missing[0]!r}."
            )
        group["kernel"] = mine["kernel"]
        for name in ("scope", "restart_rule"):
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
        groups.check_options({**group, "hidden_gain": gain})
        if group["scope"] != "tensor":
            _check_scalars(group.get("scalars"))
            if group["scope"] == "global":
                groups.require_agreement(loaded[0], group)
                if not torch.equal(group["scalars"].cpu(), loaded[0]["scalars"].cpu()):
                    raise ValueError(
                        'HVAdam: under scope="global" all groups carry the same scalars, but those '
                        "of this state dict differ: it is corrupt or pieced together."
                    )
        for index, p in zip(group["params"], mine["params"], strict=True):
            _check_state(p, incoming["state"].get(index), group["scope"] == "tensor")
    return loaded


def _check_state(p: Tensor, state: dict[str, Any] | None, per_tensor: bool) -> None:
    if not state:  # never stepped
        return
    names = {"step", *TENSORS, *(["scalars"] if per_tensor else [])}
    if set(state) != names:
        raise ValueError(
            "HVAdam: this is not the state of an HVAdam, a parameter's state must hold "
            f"{sorted(names)}, got {sorted(map(str, state))}."
        )
    for name in TENSORS:
        if state[name].shape != p.shape:
            raise ValueError(
                f"HVAdam: {name} of shape {tuple(state[name].shape)} does not fit a parameter of "
                f"shape {tuple(p.shape)}."
            )
        if state[name].is_complex() != p.is_complex():
            raise ValueError(
                f"HVAdam: {name} of {state[name].dtype} does not fit a parameter of {p.dtype}."
            )
    if per_tensor:
        _check_scalars(state["scalars"])


def _check_scalars(scalars: Any) -> None:
    if not isinstance(scalars, Tensor) or scalars.shape != (len(INITIAL),):
        raise ValueError(
            f"HVAdam: scalars must be a tensor of {len(INITIAL)} numbers, got {scalars!r}."
        )


def _restore_state(
    optimizer: HVAdam, loaded: dict[Any, dict[str, Any]], loaded_groups: list[dict[str, Any]]
) -> None:
    """Every tensor of the state in its own dtype, on its parameter's device."""
    for group, loaded_group in zip(optimizer.param_groups, loaded_groups, strict=True):
        for index, p in zip(loaded_group["params"], group["params"], strict=True):
            if not loaded.get(index):
                continue
            state = optimizer.state[p]
            for name in TENSORS:
                state[name] = loaded[index][name].to(p.device, groups.state_dtype(p))
            state["step"] = torch.as_tensor(
                loaded[index]["step"], dtype=torch.float32, device=p.device
            )
            if "scalars" in state:
                state["scalars"] = loaded[index]["scalars"].to(p.device, torch.float64)
        if "scalars" in group and group["params"]:
            group["scalars"] = group["scalars"].to(group["params"][0].device, torch.float64)
