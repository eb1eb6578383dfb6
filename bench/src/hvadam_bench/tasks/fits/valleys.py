"""Small fits whose loss is a valley: products of matrices, squares of sums, a chain of bends.

Each has a solution with a loss of 0, many dimensions, and curvatures that lie far apart.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._problem import seeded_generator
from hvadam_bench.tasks._spec import Settings


def deep_linear(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build linear maps after each other that learn one map whose singular values fall by powers.

    With "batch" a step sees some of the examples; as one map fits them all, that noise fades.
    """
    width, examples = settings["width"], settings["examples"]
    x, left, right = _normal("deep linear", (examples, width), (width, width), (width, width))
    sizes = settings["condition"] ** -torch.linspace(0, 1, width, dtype=x.dtype)
    y = x @ (torch.linalg.qr(left)[0] * sizes) @ torch.linalg.qr(right)[0]

    def loss(network: nn.Module, chosen: Tensor | None = None) -> Tensor:
        at, wanted = (x, y) if chosen is None else (x[chosen], y[chosen])
        return mse_loss(network(at), wanted)

    return FullBatchProblem(
        lambda: nn.Sequential(
            *(nn.Linear(width, width, bias=False) for _ in range(settings["layers"]))
        ),
        loss,
        examples,
        settings,
        seed,
    )


def rosenbrock_chain(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build Rosenbrock's function of many numbers, each of which bends the valley of the next."""
    size = settings["size"]

    def loss(place: nn.Module) -> Tensor:
        x = place()
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).mean()

    return FullBatchProblem(lambda: Vectors((size,), 0.3), loss, size - 1, settings, seed)


def phase_retrieval(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a signal that is to be found from the squares of some sums of it.

    The sums weigh its parts differently, from 1 down to 1 / "spread".
    """
    size, count = settings["size"], settings["measured"]
    sums, signal = _normal("phases", (count, size), (size,))
    sums = sums * settings["spread"] ** -torch.linspace(0, 1, size, dtype=sums.dtype)
    squares = (sums @ signal).square()
    scale = squares.square().mean()

    def loss(guess: nn.Module) -> Tensor:
        return ((sums @ guess()).square() - squares).square().mean() / scale

    return FullBatchProblem(lambda: Vectors((size,), 1.0), loss, count, settings, seed)


def tensor_decomposition(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build three factors of a cube of numbers, whose true columns are nearly parallel."""
    size, rank, alike = settings["size"], settings["rank"], settings["alike"]
    own, common = _normal("factors", (3, size, rank), (3, size, 1))
    true = (1 - alike) ** 0.5 * own + alike**0.5 * common
    cube = torch.einsum("ir,jr,kr->ijk", *true)
    scale = cube.square().mean()

    def loss(factors: nn.Module) -> Tensor:
        return (torch.einsum("ir,jr,kr->ijk", *factors()) - cube).square().mean() / scale

    return FullBatchProblem(
        lambda: Vectors((3, size, rank), 0.5), loss, cube.numel(), settings, seed
    )


def adding_rnn(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build a recurrent network that adds two marked numbers of each sequence, full batch."""
    count, length, hidden = (settings[name] for name in ("sequences", "length", "hidden"))
    numbers, order = _normal("adding", (count, length), (count, length))
    first = torch.zeros_like(numbers).scatter(1, order.topk(2).indices, 1.0)
    read = torch.stack([numbers, first], 2)
    wanted = (numbers * first).sum(1)
    return FullBatchProblem(
        lambda: Adder(hidden),
        lambda network: mse_loss(network(read), wanted),
        count,
        settings,
        seed,
    )


class Vectors(nn.Module):
    """Numbers of some shape, normal with some spread at the start."""

    def __init__(self, shape: tuple[int, ...], spread: float) -> None:
        super().__init__()
        self.values = nn.Parameter(spread * torch.randn(shape))

    def forward(self) -> Tensor:
        """Return them."""
        return self.values


class Adder(nn.Module):
    """A plain recurrent network that reads pairs of numbers and ends with one."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cell = nn.RNN(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, sequences: Tensor) -> Tensor:
        """Return a number for each sequence, (n, length, 2) -> (n,)."""
        return self.head(self.cell(sequences)[0][:, -1]).squeeze(1)


def _normal(name: str, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return normal numbers of these shapes, the same in every run."""
    generator = seeded_generator(name)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
