"""Solve convection by a physics-informed network with HVAdam, finish with L-BFGS, draw what came.

    python examples/train_pinn.py
    python examples/train_pinn.py --speed 20 --steps 10000 --picture convection.png

u_t + speed * u_x = 0 on x in [0, 2 pi] and t in [0, 1], periodic, u(x, 0) = sin x; so that
u = sin(x - speed * t). The faster the wave, the harder: a network may end near u = 0 instead, which
meets the equation everywhere and the start nowhere. Takes a minute on one core. The picture needs
matplotlib.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from hvadam import HVAdam

Loss = Callable[[], Tensor]


def build(width: int) -> nn.Sequential:
    """Return three tanh layers from (x, t) to u; Xavier's normal weights, zero biases."""
    layers: list[nn.Module] = []
    for inner, outer in ((2, width), (width, width), (width, width), (width, 1)):
        linear = nn.Linear(inner, outer)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers[:-1]).double()  # losses get small


def solution(points: Tensor, speed: float) -> Tensor:
    """Return the exact u at points (x, t), one a row."""
    return torch.sin(points[:, :1] - speed * points[:, 1:])


def make_loss(model: nn.Module, speed: float) -> Loss:
    """Return the loss, always over the same points: of the equation, the start and the ends."""
    inside = torch.rand(300, 2).double() * torch.tensor([2 * math.pi, 1.0]).double()
    inside.requires_grad_()
    x, t = torch.linspace(0, 2 * math.pi, 65).double(), torch.linspace(0, 1, 51).double()
    start = torch.stack([x, 0 * x], 1)
    low, high = torch.stack([0 * t, t], 1), torch.stack([0 * t + 2 * math.pi, t], 1)
    begun = solution(start, speed)

    def loss() -> Tensor:
        [slopes] = torch.autograd.grad(model(inside).sum(), inside, create_graph=True)
        equation = slopes[:, 1] + speed * slopes[:, 0]
        terms = equation, model(start) - begun, model(low) - model(high)
        return torch.stack([term.square().mean() for term in terms]).sum()

    return loss


def train(model: nn.Module, loss: Loss, steps: int, lr: float) -> None:
    """Train with HVAdam: a short warm-up, then half a cosine down to 0."""
    optimizer = HVAdam(model.parameters(), lr=lr)
    warm = max(1, steps // 50)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm, (1 + math.cos(math.pi * step / steps)) / 2),
    )
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        schedule.step()
        if step == 1 or step % (steps // 5) == 0:
            print(f"step {step}: loss {value.item():.2e}")


def finish(model: nn.Module, loss: Loss, evaluations: int) -> None:
    """Go on with L-BFGS: near a solution curvature is worth what it costs."""
    optimizer = torch.optim.LBFGS(
        model.parameters(),
        max_iter=evaluations,
        max_eval=evaluations,
        history_size=100,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value.item()

    optimizer.step(closure)
    print(f"after L-BFGS: loss {loss().item():.2e}")


def evaluate(model: nn.Module, speed: float) -> tuple[Tensor, Tensor]:
    """Return what was found and the exact solution, on a grid of x by t."""
    x, t = torch.linspace(0, 2 * math.pi, 257).double(), torch.linspace(0, 1, 101).double()
    points = torch.stack(torch.meshgrid(x, t, indexing="ij"), 2)
    flat = points.reshape(-1, 2)
    with torch.no_grad():
        return model(flat).reshape(257, 101), solution(flat, speed).reshape(257, 101)


def draw(found: Tensor, exact: Tensor, path: Path) -> None:
    """Draw the solution that was found beside its error, which has a scale of its own."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
    error = (found - exact).abs()
    shown = (
        (found, "u, as the network has it", {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}),
        (error, "its distance from the exact u", {"cmap": "magma_r", "vmin": 0}),
    )
    for axis, (values, title, colours) in zip(axes, shown, strict=True):
        image = axis.imshow(
            values.numpy(), origin="lower", aspect="auto", extent=(0, 1, 0, 2 * math.pi), **colours
        )
        axis.set(title=title, xlabel="t")
        figure.colorbar(image, ax=axis)
    axes[0].set_ylabel("x")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve convection by a physics-informed network.")
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument(
        "--finish", type=int, default=500, help="evaluations for L-BFGS; 0 for none"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, help="file to draw the solution to")
    given = parser.parse_args()

    torch.manual_seed(given.seed)
    model = build(given.width)
    loss = make_loss(model, given.speed)
    train(model, loss, given.steps, given.lr)
    if given.finish:
        finish(model, loss, given.finish)
    found, exact = evaluate(model, given.speed)
    print(f"relative error {((found - exact).norm() / exact.norm()).item():.4f}")
    if given.picture:
        draw(found, exact, given.picture)


if __name__ == "__main__":
    main()
