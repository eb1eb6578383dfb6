"""Adam with a momentum that follows the zigzag, with a switch for each idea.

The meter's arithmetic is the library's. All parameters are one flat vector during a step; a scope
is the part of it that has one hidden vector and one reading: all of it, or a tensor.

Legend: g gradient, m its average, s preconditioner, v hidden vector, z zigzag, all flat; weight is
what bias correction divides m by, 1 - β₁^t if β₁ does not move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hvadam.core import meter
from hvadam.core.scalars import Floats
from hvadam_bench.contenders._implementations._base import Baseline
from hvadam_bench.contenders._options import (
    between,
    one_of,
    positive,
    require,
    require_betas,
    whole,
)

Numbers = NDArray[np.float64]

CHOICES = {
    "moves": ("nu", "beta1"),
    "follows": ("zigzag", "steps"),
    "scope": ("all", "tensor"),
    "preconditioner": ("adam", "hidden"),
}
OWN = ("lr", "weight_decay")  # what groups may differ in
VECTORS = ("exp_avg", "hidden", "exp_avg_var")
# A scope keeps the meter's scalars, the sum of zigzags that the average is made of, what is held,
# and the shares of the way that the momentum and the hidden step have gone.
FIELDS = (*meter.FIELDS, "zigzag_total", "held", "share", "hidden_share")
INITIAL = (*meter.INITIAL, 0.0, 0.0, 0.0, 0.0)
READINGS, ZIGZAG = meter.FIELDS.index("readings"), meter.FIELDS.index("zigzag")


class Zigzag(Baseline):
    """Adam that believes its momentum as far as gradients zigzag.

    The hidden vector v splits the momentum, m̂ = v + z. A gradient's zigzag is cos²(g, z) where it
    points against z, before it enters m. Its average, less 1/d of d elements, which noise alone
    reaches in few dimensions, is held: it rises at once and falls by `hold` a step at most. The
    share r rises from 0 to 1 as what is held goes through `between`, r' through `hidden_between`.

        n = ν m̂ + (1 - ν) g + c r' v        θ ← θ - lr·n / (√ŝ + ε)

    Args:
        params: Parameters or groups of them, which may differ in lr and weight_decay.
        lr: Learning rate.
        betas: β₁ and β₂.
        eps: ε. With the paper's preconditioner it joins s at every step.
        gamma: γ of that one.
        weight_decay: Decoupled.
        moves: What follows: "nu" (ν, with β₁ as it is) or "beta1" (β₁, with ν at 1).
        span: Its values at r = 0 and at r = 1.
        follows: Whether r is of the zigzag, or of the "steps": linear up to the horizon.
        horizon: Steps of that rise.
        scope: One v, one reading and one r for "all" parameters, or for each "tensor".
        between: Where r begins, and where it is 1.
        average: Steps that the average remembers.
        hold: What stays of the held zigzag at a step; 0 holds nothing.
        hidden_scale: c; 0 for no step along v.
        hidden_between: Where r' begins, and where it is 1.
        preconditioner: s of "adam", or the paper's of v and m, "hidden".

    References:
        HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025, for the hidden vector.
    """

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "gamma", "weight_decay", "hidden_scale"):
            require(self.who, name, group[name])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "average", group["average"], 1.0)
        require(self.who, "hold", group["hold"], 0.0, 1.0)
        whole(self.who, "horizon", group["horizon"], 1)
        for name, choices in CHOICES.items():
            one_of(self.who, name, group[name], choices)
        for name in ("span", "between", "hidden_between"):
            if not isinstance(group[name], (tuple, list)) or len(group[name]) != 2:
                raise ValueError(
                    f"{self.who}: {name} must be a pair of numbers, got {group[name]!r}."
                )
            for i, value in enumerate(group[name]):
                if name == "span" and group["moves"] == "beta1":
                    require(self.who, f"{name}[{i}]", value, 0.0, 1.0)
                else:
                    between(self.who, f"{name}[{i}]", value, 0.0, 1.0)
            if name != "span" and not group[name][0] < group[name][1]:
                raise ValueError(f"{self.who}: {name} must rise, got {group[name]!r}.")
        for other in self.param_groups[:1]:
            for name in self.defaults:
                if name not in OWN and group[name] != other[name]:
                    raise ValueError(
                        f"{self.who}: {name} must be the same in all groups, as one momentum "
                        f"spans them; got {other[name]!r} and {group[name]!r}."
                    )

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return the held zigzag and the shares of each scope; empty before the first step."""
        everyone = [*self.param_groups[:1], *self.state.values()]
        return {
            str(i): dict(zip(FIELDS[-3:], one["zigzag"][-3:], strict=True))
            for i, one in enumerate(everyone)
            if "zigzag" in one
        }

    def advance(self) -> None:
        every = [(p, group) for group in self.param_groups for p in group["params"]]
        moving = [(p, group) for p, group in every if p.grad is not None and p.numel()]
        if not moving:
            return
        states = [self._state_of(p) for p, _ in moving]
        sizes = [p.numel() for p, _ in moving]
        rule = self.param_groups[0]
        beta1, beta2 = rule["betas"]

        g = _flat([p.grad for p, _ in moving if p.grad is not None])
        m, v, s = (_flat([state[name] for state in states]) for name in VECTORS)
        weights = np.array([state["weight"] for state in states])
        keepers = states if rule["scope"] == "tensor" else [rule]
        v, shares = self._read(keepers, g, m / _spread(np.where(weights, weights, 1), sizes, g), v)

        moved = rule["span"][0] + shares["share"] * (rule["span"][1] - rule["span"][0])
        of_beta = rule["moves"] == "beta1"
        beta, nu = (moved, np.ones(1)) if of_beta else (np.full(1, beta1), moved)
        kept = _spread(beta, sizes, g)
        m.mul_(kept).add_(g * (1 - kept))
        weights = beta * weights + 1 - beta
        bias2 = np.array([1 - beta2 ** state["step"] for state in states])
        _accumulate(s, g, m, v, rule)
        root = (s / _spread(bias2, sizes, g)).sqrt_().add_(rule["eps"])

        n = m * _spread(nu / weights, sizes, g)
        if not of_beta:
            n += g * (1 - _spread(nu, sizes, g))
        if shares["hidden_share"].any():
            n += v * _spread(rule["hidden_scale"] * shares["hidden_share"], sizes, g)
        n.div_(root).mul_(_spread(np.array([float(one["lr"]) for _, one in moving]), sizes, g))

        for name, flat in zip(VECTORS, (m, v, s), strict=True):
            for state, piece in zip(states, flat.split(sizes), strict=True):
                state[name].copy_(piece.view_as(state[name]))
        for state, weight in zip(states, weights.tolist(), strict=True):
            state["weight"] = weight
        for (p, group), piece in zip(moving, n.split(sizes), strict=True):
            if group["weight_decay"]:
                p.mul_(1 - float(group["lr"]) * group["weight_decay"])
            p.sub_(piece.view_as(p))

    def _state_of(self, p: Tensor) -> dict[str, Any]:
        """Return a parameter's state with its step counted."""
        state = self.state[p]
        if not state:
            state.update(step=0, weight=0.0, **{name: torch.zeros_like(p) for name in VECTORS})
        state["step"] += 1
        return state

    def _read(
        self, keepers: list[dict[str, Any]], g: Tensor, m_hat: Tensor, v: Tensor
    ) -> tuple[Tensor, dict[str, Numbers]]:
        """Move v, hold the gradient against v and z; return v and the shares, one for each scope.

        A scope's numbers are kept with its tensor, or with the first group.
        """
        rule = self.param_groups[0]
        rows = np.array([one.get("zigzag", INITIAL) for one in keepers]).T
        scopes = [len(g)] if len(keepers) == 1 else [one["exp_avg"].numel() for one in keepers]
        known = dict(zip(FIELDS, rows, strict=True))
        if rule["follows"] == "steps":
            steps = known["step"] = known["step"] + 1
            known["share"] = np.minimum(1.0, steps / rule["horizon"])
        else:
            d = v - m_hat
            dots = _dots(g, m_hat, v, d, scopes)
            rounding = torch.finfo(g.dtype).eps
            mix, known = _advance(known, dots, np.array(scopes), rule, rounding)
            v = m_hat.add_(d.mul_(_spread(mix, scopes, g)))
        kept = np.stack([known[name] for name in FIELDS]).T.tolist()
        for one, own in zip(keepers, kept, strict=True):
            one["zigzag"] = own  # plain numbers, which a checkpoint keeps as they are
        return v, known


def _advance(
    known: dict[str, Numbers], dots: Numbers, sizes: Numbers, rule: dict[str, Any], rounding: float
) -> tuple[Numbers, dict[str, Numbers]]:
    """Return the weights that stay on v, and the next numbers of all scopes."""
    before = [known[name] for name in meter.FIELDS]
    if len(sizes) == 1:  # plain floats take a tenth of the time
        one, after = meter.advance(
            Floats, [float(x[0]) for x in before], dots[:, 0].tolist(), rounding=rounding
        )
        mix, fields = np.array([one]), [np.array([float(x)]) for x in after]
    else:
        with np.errstate(all="ignore"):  # of a gradient that is not finite
            mix, fields = meter.advance(np, before, list(dots), rounding=rounding)
    decay = 1 - 1 / rule["average"]
    zigzag, total = fields[ZIGZAG], known["zigzag_total"]
    total = np.where(np.isnan(zigzag), total, decay * total + (1 - decay) * zigzag)
    weight = 1 - decay ** fields[READINGS]
    average = total / np.where(weight > 0, weight, 1)
    held = np.maximum(np.maximum(average - 1 / sizes, 0), rule["hold"] * known["held"])
    share, hidden = (_ramp(held, *rule[name]) for name in ("between", "hidden_between"))
    after = [*fields, total, held, share, hidden * (rule["hidden_scale"] > 0)]
    return mix, dict(zip(FIELDS, after, strict=True))


def _dots(g: Tensor, m_hat: Tensor, v: Tensor, d: Tensor, scopes: list[int]) -> Numbers:
    """Return the dots that `meter.advance` takes, a row each, a column for each scope."""
    g, m_hat, v, d = (x.double() for x in (g, m_hat, v, d))
    pairs = ((d, d), (d, v), (m_hat, m_hat), (v, v), (g, g), (g, v), (g, d))
    if len(scopes) == 1:
        return torch.stack([a @ b for a, b in pairs]).cpu().numpy()[:, None]
    starts = np.cumsum([0, *scopes[:-1]])
    return np.add.reduceat(torch.stack([a * b for a, b in pairs]).cpu().numpy(), starts, axis=1)


def _accumulate(s: Tensor, g: Tensor, m: Tensor, v: Tensor, rule: dict[str, Any]) -> None:
    """Update the preconditioner, from the new m and the v that the gradient has not moved."""
    beta2, eps = rule["betas"][1], rule["eps"]
    if rule["preconditioner"] == "adam":
        s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        return
    p = (g - v).square_()
    apart = (g - m).square_().add_(p, alpha=rule["gamma"]).add_(eps)
    s.mul_(beta2).add_(p.square_().div_(apart), alpha=1 - beta2).add_(eps)


def _ramp(x: Numbers, begin: float, full: float) -> Numbers:
    return np.clip((x - begin) / (full - begin), 0, 1)


def _flat(tensors: list[Tensor]) -> Tensor:
    """Return tensors as one vector of float32 or wider, in memory of its own."""
    joined = torch.cat([x.reshape(-1) for x in tensors])
    return joined if joined.dtype == torch.float64 else joined.float()


def _spread(values: Numbers, sizes: list[int], like: Tensor) -> float | Tensor:
    """Return a number for each tensor as a factor of the flat vector: one number if all agree."""
    if (values == values[0]).all() or len(values) == 1:
        return float(values[0])
    given = torch.from_numpy(values).to(like.device, like.dtype)
    return given.repeat_interleave(torch.tensor(sizes, device=like.device), output_size=len(like))
