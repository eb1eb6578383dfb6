"""A judge that holds one step to the float64 reference, from the same state and gradient.

Trajectories are chaotic, so kernels are compared teacher-forced: the reference starts from the
optimizer's own state before every step. The tolerance follows from the arithmetic: every rounding
to the state's dtype is a relative perturbation of a few eps, and what a difference or a projection
makes of it is bounded below, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hvadam import HVAdam
from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam.core.scalars import FIELDS
from hvadam.torch.groups import OPTIONS

ROUNDINGS = 16.0  # what a kernel may be off, in units of the dtype's eps, before amplification


@dataclass
class Member:
    """A parameter, the reference's copy of it, and its gradient, clipped."""

    p: Tensor
    slot: Slot
    grad: np.ndarray | None


@dataclass
class Before:
    """The parameters and the state that a step starts from."""

    theta: np.ndarray
    m: np.ndarray
    v: np.ndarray
    s: np.ndarray
    t: int


def judged_step(optimizer: HVAdam) -> None:
    """Step the optimizer and the reference from the same state; assert that they agree."""
    scopes = snapshot(optimizer)
    optimizer.step()
    for scope, members in scopes:
        before = [Before(m.slot.theta, m.slot.m, m.slot.v, m.slot.s, m.slot.t) for m in members]
        t2, holds = scope.t2, scope.holds
        rounding = max(_state_eps(m.p) for m in members)
        with np.errstate(all="ignore"):
            step(scope, [m.slot for m in members], [m.grad for m in members], rounding=rounding)
            _compare(optimizer, scope, t2, scope.holds > holds, members, before, rounding)


def snapshot(optimizer: HVAdam) -> list[tuple[ScopeState, list[Member]]]:
    """Return the optimizer's hidden vectors in the reference's form."""
    scopes: list[tuple[ScopeState, list[Member]]] = []
    factor = _clip_factor(optimizer)
    for group in optimizer.param_groups:
        options = {name: group[name] for name in OPTIONS if name != "kernel"}
        options["lr"] = float(options["lr"])
        hyper = Hyperparams(**options)
        members = [_member(optimizer, p, hyper, factor) for p in group["params"]]
        if group["scope"] == "tensor":
            scopes += [
                (
                    _scope(optimizer.state[m.p].get("scalars") if m.p in optimizer.state else None),
                    [m],
                )
                for m in members
            ]
        elif group["scope"] == "global" and scopes:
            scopes[0][1].extend(members)
        else:
            scopes.append((_scope(group["scalars"]), members))
    return scopes


def as_array(x: Tensor) -> np.ndarray:
    """Return a float64 copy of a tensor; complex numbers as pairs."""
    x = x.detach()
    return (torch.view_as_real(x) if x.is_complex() else x).double().numpy().copy()


def _clip_factor(optimizer: HVAdam) -> float:
    most = optimizer.param_groups[0]["max_grad_norm"]
    if most is None:
        return 1.0
    grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
    norm = _norm([as_array(g) for g in grads if g is not None])
    return min(1.0, most / (norm + 1e-6))


def _member(optimizer: HVAdam, p: Tensor, hyper: Hyperparams, factor: float) -> Member:
    slot = Slot(as_array(p), hyper)
    state = optimizer.state.get(p)
    if state:
        slot.m, slot.v, slot.s = (as_array(state[k]) for k in ("exp_avg", "hidden", "exp_avg_var"))
        slot.t = int(state["step"])
    return Member(p, slot, None if p.grad is None else factor * as_array(p.grad))


def _scope(scalars: Tensor | None) -> ScopeState:
    if scalars is None:
        return ScopeState()
    x = dict(zip(FIELDS, scalars.tolist(), strict=True))
    return ScopeState(
        t=int(x["step"]),
        t2=int(x["steps_since_restart"]),
        delta=x["alignment_ema"],
        cosine=x["alignment"],
        mix=x["mix"],
        gain=x["hidden_gain"],
        restarts=int(x["restarts"]),
        holds=int(x["holds"]),
    )


def _state_eps(p: Tensor) -> float:
    return torch.finfo(
        torch.float64 if p.dtype in (torch.float64, torch.complex128) else torch.float32
    ).eps


def _largest(p: Tensor) -> float:
    wide = p.dtype in (torch.float64, torch.complex128)
    return torch.finfo(torch.float64 if wide else torch.float32).max


def _compare(
    optimizer: HVAdam,
    scope: ScopeState,
    t2: int,
    held: bool,
    members: list[Member],
    before: list[Before],
    rounding: float,
) -> None:
    moved = [(m, b) for m, b in zip(members, before, strict=True) if m.grad is not None]
    if not moved:
        return
    eps = ROUNDINGS * rounding
    m_hats = [m.slot.m / (1 - m.slot.hyper.betas[0] ** m.slot.t) for m, _ in moved]
    vs = [b.v for _, b in moved]
    m_norm = _norm(m_hats)
    norm = np.hypot(m_norm, _norm(vs))
    gap = _norm([v - m_hat for v, m_hat in zip(vs, m_hats, strict=True)])
    # A relative error of eps in v or m_hat turns the line through them by norm/gap times as much.
    turn = eps * (1 + norm / gap) if gap > 0 else eps
    if t2 < 0:
        turn = eps  # a start copies m_hat
    if held:
        turn, norm, m_norm = eps, 0.0, 1.0  # v is kept, and the norms need not be finite

    actual = _actual_scalars(optimizer, moved[0][0])
    v_slack = turn * norm if t2 >= 0 else 0.0  # 0 where v holds
    if turn < 0.5:  # else the projection is pure rounding, and any point of the line will do
        # From the dots only cos² is known to float64, so a cosine near 0 is known to its root.
        slack = turn * norm / max(m_norm, 1e-300) + 1e-14 / max(scope.cosine, 1e-7)
        _close("alignment", actual["alignment"], scope.cosine, slack)
        _close("alignment_ema", actual["alignment_ema"], scope.delta, slack)
        counts = {"step": scope.t, "holds": scope.holds}
        h = moved[0][0].slot.hyper
        average = scope.delta / (1 - h.betas[1] ** (t2 + 1)) if t2 >= 0 else 1.0
        if t2 >= 0 and not held and abs(average - h.restart_threshold) <= slack:
            v_slack = 2 * norm  # rounding decides whether v restarts, and so which v is kept
        else:
            counts |= {"steps_since_restart": scope.t2, "restarts": scope.restarts}
        for name, value in counts.items():
            assert actual[name] == value, (name, actual[name], value)
    for (member, b), m_hat in zip(moved, m_hats, strict=True):
        _compare_member(optimizer, member, b, m_hat, eps, v_slack, actual)


def _compare_member(
    optimizer: HVAdam,
    member: Member,
    before: Before,
    m_hat: np.ndarray,
    eps: float,
    v_slack: Any,
    scalars: dict[str, float],
) -> None:
    p, slot, h = member.p, member.slot, member.slot.hyper
    theta, m, v, s = before.theta, before.m, before.v, before.s
    state = optimizer.state[p]
    assert int(state["step"]) == slot.t
    beta1, beta2 = h.betas

    actual_v = as_array(state["hidden"])
    hidden = h.lr * h.hidden_scale * scalars["hidden_gain"] * actual_v

    assert member.grad is not None
    g = -member.grad if h.maximize else member.grad
    g_slack = eps * abs(g) if h.max_grad_norm is not None else np.zeros_like(g)
    if h.weight_decay_mode == "coupled":
        g_slack = g_slack + eps * (abs(g) + h.weight_decay * (abs(theta) + abs(hidden)))
        g = g + h.weight_decay * theta

    m_slack = eps * (beta1 * abs(m) + abs(g)) + g_slack
    _close("exp_avg", as_array(state["exp_avg"]), slot.m, m_slack)

    if h.preconditioner == "adam":
        low, high = ((np.maximum(abs(g) + sign * g_slack, 0)) ** 2 for sign in (-1, 1))
    else:
        p_low, p_high = (
            np.maximum(abs(g - v) + sign * (g_slack + eps * abs(g - v)), 0) ** 2 for sign in (-1, 1)
        )
        q_low, q_high = (
            np.maximum(abs(g - slot.m) + sign * (g_slack + m_slack), 0) ** 2 for sign in (-1, 1)
        )
        low = np.where(p_low < np.inf, p_low * (p_low / (q_high + h.gamma * p_low + h.eps)), np.inf)
        high = p_high * (p_high / (q_low + h.gamma * p_high + h.eps))
        high = np.where(p_high < _largest(p), high, np.inf)
    # A square or a product that overflows makes s infinite, though their average might not be.
    high = np.where(high < _largest(p), high, np.inf)
    base = beta2 * s + (h.eps if h.preconditioner == "hidden" else 0.0)
    s_low, s_high = (base + (1 - beta2) * low) * (1 - eps), (base + (1 - beta2) * high) * (1 + eps)
    s_high = np.where(s_high < _largest(p), s_high, np.inf)
    actual_s = as_array(state["exp_avg_var"])
    spoilt = np.isnan(slot.s)
    assert (np.isnan(actual_s) == spoilt).all(), ("exp_avg_var", actual_s, slot.s)
    tiny = torch.finfo(torch.float32).tiny
    assert (spoilt | (actual_s >= s_low - tiny)).all(), ("exp_avg_var", (s_low - actual_s).max())
    assert (spoilt | (actual_s <= s_high + tiny)).all(), ("exp_avg_var", (actual_s - s_high).max())

    v_slack = v_slack + eps * (abs(slot.v) + abs(v) + abs(m_hat)) + m_slack
    _close("hidden", actual_v, slot.v, v_slack)

    bias1, bias2 = 1 - beta1**slot.t, 1 - beta2**slot.t
    s_hats = s_low / bias2, s_high / bias2
    s_hats = s_hats[0], np.where(s_hats[1] < _largest(p), s_hats[1], np.inf)  # may overflow too
    steps = [abs(m_hat) / (np.sqrt(x) + h.eps) for x in s_hats]
    relative = eps * steps[0] + m_slack / bias1 / (np.sqrt(s_low / bias2) + h.eps)
    # The kernel's own v and gain enter, so that their slack is not counted twice.
    decay = 1 - h.lr * h.weight_decay if h.weight_decay_mode == "decoupled" else 1.0
    expected = theta * decay - h.lr * m_hat / (np.sqrt(slot.s / bias2) + h.eps)
    expected = expected - hidden
    slack = eps * (abs(theta) + abs(hidden)) + h.lr * (steps[0] - steps[1] + relative)
    if h.bounds is not None and h.lr != 0:
        expected = np.clip(expected, *h.bounds)
    _close("theta", as_array(p), expected, slack + torch.finfo(p.dtype).eps * abs(expected))


def _actual_scalars(optimizer: HVAdam, member: Member) -> dict[str, float]:
    for group in optimizer.param_groups:
        if any(member.p is p for p in group["params"]):
            scalars = group.get("scalars", optimizer.state[member.p].get("scalars"))
            return dict(zip(FIELDS, scalars.tolist(), strict=True))
    raise AssertionError


def _norm(arrays: list[np.ndarray]) -> float:
    return float(np.sqrt(sum(np.sum(a * a) for a in arrays)))


def _close(name: str, actual: Any, expected: Any, slack: Any) -> None:
    """Assert that numbers are close; what is spoilt may be so in any way, NaN or infinite."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    difference, allowed = abs(actual - expected), np.asarray(slack) + 1e-300
    spoilt = ~np.isfinite(actual) & ~np.isfinite(expected)
    worst = np.max(np.where(spoilt, 0.0, difference / allowed), initial=0.0)
    assert worst <= 1, f"{name} is off by {worst:.3g} times the tolerance"
