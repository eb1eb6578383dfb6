"""Going on from AdamW: its averages become HVAdam's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from hvadam.core.scalars import FIELDS
from hvadam.torch import checkpoint, sharding, states, storage
from hvadam.torch.optimizer import HVAdam


@torch.no_grad()
def warm_start(optimizer: HVAdam, adamw: Optimizer | dict[str, Any]) -> None:
    r"""Start an HVAdam where an Adam or AdamW stopped.

    ``exp_avg`` and ``step`` are carried over. While v = 0, HVAdam's s averages
    $g^4 / ((g-m)^2 + \gamma g^2 + \epsilon)$, which for a gradient that m does not know yet,
    $(g-m)^2 = \beta_1^2 g^2$, is $g^2 / (\beta_1^2 + \gamma)$; so s starts as
    ``exp_avg_sq`` over $\beta_1^2 + \gamma$. The hidden vector starts with the next step.
    Hyper-parameters stay as they are in ``optimizer``.

    Args:
        optimizer: An HVAdam over the same parameters in the same groups, not yet stepped.
        adamw: A ``torch.optim.Adam`` or ``AdamW``, or its state dict. Under FSDP2 load the state
            dict into an AdamW over the sharded model first and give that.

    Raises:
        TypeError: The arguments are something else, or the wrong way round.
        ValueError: ``adamw`` has not stepped or does not fit; nothing has changed in any case.

    Example:
        >>> import torch, hvadam
        >>> w = torch.nn.Parameter(torch.ones(3))
        >>> adamw = torch.optim.AdamW([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> adamw.step()
        >>> optimizer = hvadam.HVAdam([w], lr=0.1)
        >>> hvadam.warm_start(optimizer, adamw.state_dict())
        >>> optimizer.state[w]["step"].item()
        1.0
    """
    _check_order(optimizer, adamw)
    state_dict = adamw if isinstance(adamw, dict) else adamw.state_dict()
    _check_fit(optimizer, state_dict)
    made: dict[Tensor, dict[str, Any]] = {}
    latest = 0.0
    for group, theirs in zip(optimizer.param_groups, state_dict["param_groups"], strict=True):
        for p, index in zip(group["params"], theirs["params"], strict=True):
            found = state_dict["state"].get(index)
            if found:  # else it has never had a gradient
                made[p] = _state_of(p, group, found)
                latest = max(latest, float(made[p]["step"]))
    optimizer.state.update(made)
    for holder in (*optimizer.param_groups, *optimizer.state.values()):
        if "scalars" in holder:
            own = latest if "params" in holder else float(holder["step"])
            holder["scalars"][FIELDS.index("step")] = own


def _state_of(p: Tensor, group: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter's state, made of what Adam kept of it."""
    state = states.initial(p, group)
    state["step"].copy_(torch.as_tensor(found["step"], device="cpu"))
    full = torch.promote_types(p.dtype, torch.float32)
    s = found["exp_avg_sq"].to(p.device, full) / (group["betas"][0] ** 2 + group["gamma"])
    if group["preconditioner"] == "adam":  # whose s averages g² itself
        s = found["exp_avg_sq"].to(p.device, full)
    for name, value in (("exp_avg", found["exp_avg"]), ("exp_avg_var", s)):
        own, part = (sharding.local_part(x) for x in (state[name], value.to(p.device, full)))
        if group["state_dtype"] == "float32":
            own.copy_(part)
        else:
            same_layout = torch.empty_like(own, dtype=torch.float32).copy_(part)
            storage.encode(same_layout, own, state.get(storage.SCALES[name]), None)
    return state


def _check_order(optimizer: Any, adamw: Any) -> None:
    """Refuse arguments that are not an HVAdam and what another optimizer left, in this order."""
    if not _is_hvadam(optimizer):
        swap = "; they are the wrong way round" if _is_hvadam(adamw) else ""
        raise TypeError(
            "hvadam.warm_start: write warm_start(optimizer, adamw), the HVAdam that is to start "
            "and the AdamW that it goes on from, got "
            f"{type(optimizer).__name__} and {type(adamw).__name__}{swap}."
        )
    if not isinstance(adamw, dict) and not hasattr(adamw, "state_dict"):
        raise TypeError(
            "hvadam.warm_start: adamw must be an optimizer or its state_dict(), got "
            f"{type(adamw).__name__}."
        )
    if _is_hvadam(adamw):
        raise ValueError(
            "hvadam.warm_start: adamw is the state of an HVAdam; give that to "
            "optimizer.load_state_dict."
        )


def _is_hvadam(given: Any) -> bool:
    """Return whether something is an HVAdam, in a trainer's wrapper too, or the state of one."""
    is_dict = isinstance(given, dict)
    found = given.get("param_groups") if is_dict else getattr(given, "param_groups", None)
    return bool(found) and all("restart_rule" in group for group in found)


def _check_fit(optimizer: HVAdam, state_dict: dict[str, Any]) -> None:
    """Refuse what is not an Adam's state over these parameters."""
    if optimizer.state:
        raise ValueError(
            "hvadam.warm_start: the HVAdam has stepped already; warm-start a fresh one."
        )
    if not {"state", "param_groups"} <= state_dict.keys():
        raise ValueError(
            "hvadam.warm_start: adamw must be an optimizer or its state_dict(), got a dict with "
            f"{sorted(map(str, state_dict))}."
        )
    if not any(state_dict["state"].values()):
        raise ValueError(
            "hvadam.warm_start: adamw has no state, because it has not stepped, so there is "
            "nothing to go on from; load its checkpoint into it first."
        )
    ours = [len(group["params"]) for group in optimizer.param_groups]
    theirs = [len(group["params"]) for group in state_dict["param_groups"]]
    if ours != theirs:
        raise ValueError(
            f"hvadam.warm_start: the param groups must hold as many parameters, got {ours} here "
            f"and {theirs} there; build the HVAdam with the same groups."
        )
    for group, other in zip(optimizer.param_groups, state_dict["param_groups"], strict=True):
        for p, index in zip(group["params"], other["params"], strict=True):
            found = state_dict["state"].get(index, {})
            if found and not {"step", "exp_avg", "exp_avg_sq"} <= found.keys():
                raise ValueError(
                    "hvadam.warm_start: a parameter's state must hold step, exp_avg and "
                    f"exp_avg_sq, as Adam's and AdamW's does, got {sorted(map(str, found))}."
                )
            for name in ("exp_avg", "exp_avg_sq") if found else ():
                if found[name].shape != p.shape:
                    raise ValueError(
                        f"hvadam.warm_start: {name} of shape {tuple(found[name].shape)} does not "
                        f"fit a parameter of shape {tuple(p.shape)}."
                    )
                checkpoint.check_shards(name, found[name], p)
