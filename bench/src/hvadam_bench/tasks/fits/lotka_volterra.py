"""Predators and prey: the parameters of an equation fitted through the integrator that solves it.

    x' = a x - b x y,    y' = d x y - c y

In the logarithms u = ln x and v = ln y, which keep both positive, u' = a - b eᵛ and v' = d eᵘ - c.
Classical Runge-Kutta steps of a fixed length, differentiated as they are; the samples are made by
the same steps, so that the loss can be 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# a, b, c, d; an orbit near (1, 1/2) has a period of about 7.7.
RATES = (2 / 3, 4 / 3, 1.0, 1.0)
# x and y at the start: a small orbit and a wide one.
STARTS = ((0.9, 1.8), (0.9, 1.8))


class Equation(nn.Module):
    """The logarithms of the rates a, b, c and d, and of where the orbits start.

    Args:
        spread: How far from the true logarithms they may begin.
    """

    def __init__(self, spread: float) -> None:
        super().__init__()
        self.rates, self.starts = (
            nn.Parameter(true + spread * (2 * torch.rand(true.shape, dtype=true.dtype) - 1))
            for true in truth()
        )

    def forward(self, length: float, count: int) -> Tensor:
        """Return ln x and ln y before the first and after each of so many steps."""
        return integrate(self.rates, self.starts, length, count)

    def error(self) -> float:
        """Return how far the rates are from the truth, relative to it, the worst of them."""
        return (self.rates - truth()[0]).expm1().abs().max().item()


def truth() -> tuple[Tensor, Tensor]:
    """Return the logarithms of the true rates, and of x and y at the starts, (2, starts)."""
    rates, starts = (torch.tensor(true, dtype=torch.float64).log() for true in (RATES, STARTS))
    return rates, starts


def integrate(rates: Tensor, starts: Tensor, length: float, count: int) -> Tensor:
    """Return ln x and ln y at the start and after Runge-Kutta steps, (1 + steps, 2, starts).

    Args:
        rates: The logarithms of a, b, c and d.
        starts: ln x and ln y to begin with, (2, starts).
        length: Of a step.
        count: Of steps.
    """
    a, b, c, d = rates.exp()
    none = torch.zeros_like(a)
    own = torch.stack([a, -c])[:, None]
    mutual = torch.stack([none, -b, d, none]).reshape(2, 2)
    path = [starts]
    for _ in range(count):
        at = path[-1]
        first = torch.addmm(own, mutual, at.exp())
        second = torch.addmm(own, mutual, torch.add(at, first, alpha=length / 2).exp())
        third = torch.addmm(own, mutual, torch.add(at, second, alpha=length / 2).exp())
        fourth = torch.addmm(own, mutual, torch.add(at, third, alpha=length).exp())
        slope = torch.add(first + fourth, second + third, alpha=2)
        path.append(torch.add(at, slope, alpha=length / 6))
    return torch.stack(path)
