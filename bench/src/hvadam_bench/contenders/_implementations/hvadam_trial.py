"""Steps that could be taken along the hidden vector, as one optimizer with a switch for each idea.

The library has the paper's update, fast and on every device; here candidates for another one are
compared on small problems. All parameters are one flat vector during a step.

Legend: theta parameters, g gradient, m its average, s preconditioner, v hidden vector, all flat; t
steps of a tensor, t2 steps since v (re)started, delta the running cosine of v and m_hat.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hvadam.core.scalars import ROUNDINGS
from hvadam_bench.contenders._implementations._base import Baseline
from hvadam_bench.contenders._options import one_of, positive, require, require_betas

CHOICES = {
    "hidden_path": ("direct", "adaptive"),
    "hidden_gain": ("exponential", "constant", "gate"),
    "momentum": ("average", "nesterov", "gated"),
    "projection": ("line", "segment"),
    "metric": ("plain", "preconditioned"),
    "preconditioner": ("hidden", "adam", "belief"),
}
OWN = ("lr", "weight_decay")  # what groups may differ in
# Averaged alignment up to which gradients count as noise, and from which as one trend.
NOISE, TREND = 0.5, 0.8


class Scope(NamedTuple):
    """The scalars of the hidden vector, kept with the first group.

    Attributes:
        t2: Steps since it (re)started, -1 before.
        delta: Average alignment, biased.
        alignment: Average alignment, unbiased, the last one known; 0 before.
        gain: Multiplier of the step along it.
        restarts: How often it lost the trend.
    """

    t2: int = -1
    delta: float = 0.0
    alignment: float = 0.0
    gain: float = 0.0
    restarts: int = 0


class HVAdamTrial(Baseline):
    """Adam with a hidden vector, and several ways to step along it.

    m, m̂ and v are the paper's: m ← β₁m + (1-β₁)g over all parameters, v ← v - k(v - m̂). Then n is
    m̂, or with look-ahead β₁m̂ + (1-β₁)g / (1-β₁^t). With c = `hidden_scale` and b the gain,

        hidden_path="adaptive"    θ ← θ - lr·(n + c·b·v) / (√ŝ + ε)
        hidden_path="direct"      θ ← θ - lr·n / (√ŝ + ε) - lr·c·b·v

    Args:
        params: Parameters or groups of them, which may differ in lr and weight_decay.
        lr: Learning rate.
        betas: β₁ and β₂.
        eps: ε. Unless the preconditioner is Adam's it joins s at every step, as in the paper.
        gamma: γ of the paper's preconditioner.
        weight_decay: Decoupled.
        hidden_path: Whether the step along v is divided by √ŝ too.
        hidden_scale: c; 0 for no step along v.
        hidden_gain: b: the paper's 10^(6δ-3) of the biased average δ, or 1, or `gate`.
        momentum: n: without look-ahead, with it, or with a share 1 - `gate` of it.
        projection: k makes v the point nearest to 0 of the line through v and m̂, as in the paper,
            or of the segment between them: parallel vectors then keep the shorter one, where the
            line gives 0.
        metric: Of lengths and angles: plain, or with each coordinate divided by √ŝ + ε.
        preconditioner: s from v and m as in the paper, from g² as in Adam, or from (g - m)².
        restart_threshold: v starts anew from m̂ when the unbiased alignment is below; 0 for never.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("hvadam_trial", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.2)
        True

    References:
        HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025; Dozat, Incorporating Nesterov
        Momentum into Adam, 2016.
    """

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "gamma", "weight_decay", "hidden_scale"):
            require(self.who, name, group[name])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "restart_threshold", group["restart_threshold"], 0.0, 1.0)
        for name, choices in CHOICES.items():
            one_of(self.who, name, group[name], choices)
        for other in self.param_groups[:1]:
            for name in self.defaults:
                if name not in OWN and group[name] != other[name]:
                    raise ValueError(
                        f"{self.who}: {name} must be the same in all groups, as one hidden vector "
                        f"spans them; got {other[name]!r} and {group[name]!r}."
                    )

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return the gain, the alignment and the restarts so far; empty before the first step."""
        if "scope" not in self.param_groups[0]:
            return {}
        scope = Scope(*self.param_groups[0]["scope"])
        return {
            "global": {
                "hidden_gain": scope.gain,
                "alignment": scope.alignment,
                "restarts": float(scope.restarts),
            }
        }

    def advance(self) -> None:
        moving = [(p, group) for group in self.param_groups for p in group["params"]]
        moving = [(p, group) for p, group in moving if p.grad is not None]
        if not moving:
            return
        params = [p for p, _ in moving]
        states = [self.state[p] for p in params]
        for p, state in zip(params, states, strict=True):
            if not state:
                names = ("exp_avg", "hidden", "exp_avg_var")
                state.update(step=0, **{name: torch.zeros_like(p) for name in names})
            state["step"] += 1
        sizes = [p.numel() for p in params]
        rule = self.param_groups[0]
        beta1, beta2 = rule["betas"]
        eps = rule["eps"]

        g = _flat([p.grad for p in params if p.grad is not None])
        m, v, s = (
            _flat([state[name] for state in states])
            for name in ("exp_avg", "hidden", "exp_avg_var")
        )
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        _accumulate(s, g, m, v, rule)
        bias1, bias2 = (
            _spread([1 - beta ** state["step"] for state in states], sizes, g)
            for beta in (beta1, beta2)
        )
        m_hat = m / bias1
        root = (s / bias2).sqrt_().add_(eps)

        rounding = torch.finfo(params[0].dtype).eps
        scope = Scope(*rule.get("scope", ()))
        v, scope = _follow(scope, v, m_hat, 1 / root if _weighs(rule) else None, rule, rounding)
        rule["scope"] = tuple(scope)  # plain numbers, which a checkpoint keeps as they are

        n = _numerator(m_hat, g, bias1, scope, rule)
        along = rule["hidden_scale"] * scope.gain
        if rule["hidden_path"] == "adaptive":
            update = n.add_(v, alpha=along).div_(root)
        else:
            update = n.div_(root).add_(v, alpha=along)
        update *= _spread([float(group["lr"]) for _, group in moving], sizes, g)

        for name, flat in (("exp_avg", m), ("hidden", v), ("exp_avg_var", s)):
            for state, piece in zip(states, flat.split(sizes), strict=True):
                state[name].copy_(piece.view_as(state[name]))
        for (p, group), piece in zip(moving, update.split(sizes), strict=True):
            if group["weight_decay"]:
                p.mul_(1 - float(group["lr"]) * group["weight_decay"])
            p.sub_(piece.view_as(p))


def gate(alignment: float) -> float:
    """Return how much averaged alignment tells of a trend: 0 up to NOISE, 1 from TREND on.

    Between them it is the cubic that starts and ends level.

    Example:
        >>> gate(0.2), round(gate((NOISE + TREND) / 2), 9), gate(0.9)
        (0.0, 0.5, 1.0)
    """
    x = min(1.0, max(0.0, (alignment - NOISE) / (TREND - NOISE)))
    return x * x * (3 - 2 * x)


def _accumulate(s: Tensor, g: Tensor, m: Tensor, v: Tensor, rule: dict[str, Any]) -> None:
    """Update the preconditioner, from the new m and the old v."""
    beta2, eps = rule["betas"][1], rule["eps"]
    kind = rule["preconditioner"]
    if kind == "adam":
        s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        return
    apart = (g - m).square_()
    if kind == "hidden":
        p = (g - v).square_()
        apart = p * p / apart.add_(p, alpha=rule["gamma"]).add_(eps)
    s.mul_(beta2).add_(apart, alpha=1 - beta2).add_(eps)


def _numerator(
    m_hat: Tensor, g: Tensor, bias1: float | Tensor, scope: Scope, rule: dict[str, Any]
) -> Tensor:
    """Return the momentum to step along, in memory that may be written to."""
    share = {"average": 0.0, "nesterov": 1.0}.get(rule["momentum"])
    if share is None:
        share = 1 - gate(scope.alignment)
    if share == 0:
        return m_hat.clone()
    return m_hat + share * (1 - rule["betas"][0]) * (g / bias1 - m_hat)


def _weighs(rule: dict[str, Any]) -> bool:
    return rule["metric"] == "preconditioned"


def _follow(
    scope: Scope,
    v: Tensor,
    m_hat: Tensor,
    weights: Tensor | None,
    rule: dict[str, Any],
    rounding: float,
) -> tuple[Tensor, Scope]:
    """Return the next v and its scalars: a start, an update, a restart, or all as it was."""
    d = v - m_hat
    wide = [x.double() for x in (d, v, m_hat)]
    weighed = wide if weights is None else [x * weights for x in wide]
    dots = ((0, 0), (0, 1), (2, 2), (1, 1))
    dd, dv, mm, vv = torch.stack([weighed[i] @ wide[j] for i, j in dots]).tolist()
    if not all(map(math.isfinite, (dd, dv, mm, vv))) or (scope.t2 < 0 and mm == 0):
        return v, scope._replace(gain=0.0)
    if scope.t2 < 0:
        return m_hat.clone(), scope._replace(t2=0, delta=0.0, gain=0.0)

    equal = math.sqrt(dd) <= ROUNDINGS * rounding * math.sqrt(vv)
    k = 0.0 if equal else dv / dd
    if rule["projection"] == "segment":
        k = min(1.0, max(0.0, k))
    foot = v - k * d
    if mm == 0 or vv == 0:
        cosine = 0.0
    elif equal or (k == 1 and dv > dd):
        cosine = 1.0
    elif k == 0 and dv < 0:
        cosine = (vv - dv) / math.sqrt(vv) / math.sqrt(mm)
    else:  # perpendicular to d, so that its length tells its cosine
        long = foot.double()
        cosine = math.sqrt(((long if weights is None else long * weights) @ long).item() / mm)
    beta2 = rule["betas"][1]
    t2 = scope.t2 + 1
    delta = beta2 * scope.delta + (1 - beta2) * min(1.0, cosine)
    alignment = delta / (1 - beta2**t2)
    if alignment < rule["restart_threshold"]:
        return foot, Scope(-1, delta, alignment, 0.0, scope.restarts + 1)
    gains = {"exponential": 10.0 ** (6 * delta - 3), "constant": 1.0, "gate": gate(alignment)}
    return foot, Scope(t2, delta, alignment, gains[rule["hidden_gain"]], scope.restarts)


def _flat(tensors: list[Tensor]) -> Tensor:
    """Return tensors as one vector of float32 or wider, in memory of its own."""
    joined = torch.cat([x.reshape(-1) for x in tensors])
    return joined if joined.dtype == torch.float64 else joined.float()


def _spread(values: list[float], sizes: list[int], like: Tensor) -> float | Tensor:
    """Return a number for each tensor as a factor of the flat vector: one number if all agree."""
    if min(values) == max(values):
        return values[0]
    repeats = torch.tensor(sizes)
    return torch.tensor(values, dtype=like.dtype).repeat_interleave(repeats)
