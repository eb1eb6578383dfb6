"""The page on what HVAdam costs on many ranks, and its formulas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results

MODELS = {"1B": 1e9, "7B": 7e9, "70B": 70e9}
RANKS = (8, 64, 256, 1024)
SUMS = 5  # of a hidden vector: four dots, and whether anyone had a gradient
GUARDS = 2  # with clipping or a grad scaler: the squared norm, and whether anyone found an inf
DOUBLE = 8
# Of an H100 SXM, as its maker publishes them: bytes a second, and dense bfloat16 products a second.
BANDWIDTH, MATRIX_RATE = 3.35e12, 989e12
WIDTH = 4096  # of a 7B model's layers
# Five rounds of Newton and Schulz, each of three products of square matrices, 2 flops an addend.
ORTHOGONALIZATION = 5 * 3 * 2 * WIDTH
SCALES = 4 / 256  # a float32 for each block of 256


@dataclass(frozen=True)
class Worked:
    """An optimizer in the worked example: what it keeps, moves and computes for a parameter.

    Attributes:
        name: For people.
        state: Bytes a parameter that it keeps.
        passes: How often a step reads or writes all of the state.
        direct: How often it reads or writes the float32 parameter or gradient.
        flops: The flops of matrix products a parameter, in bfloat16.
    """

    name: str
    state: float
    passes: float
    direct: int = 3
    flops: float = 0.0

    def moved(self) -> float:
        """Return the bytes a parameter that a step has to move through memory."""
        return 4 * self.direct + self.passes * self.state

    def seconds(self, parameters: float) -> float:
        """Return the time of a step over so many parameters at the published rates of a GPU."""
        return parameters * (self.moved() / BANDWIDTH + self.flops / MATRIX_RATE)


# State read and written once is 2 passes. HVAdam reads m, v, s twice and writes each once: 9 of 3.
WORKED = (
    Worked("AdamW", 8, 2),
    Worked("HVAdam", 12, 3),
    Worked("HVAdam, bfloat16 state", 6, 3),
    Worked("HVAdam, int8 state", 3 * (1 + SCALES), 3),
    Worked("8-bit Adam", 2 * (1 + SCALES), 2),
    # Its momentum is read and written, and what is made of it written and read once more.
    Worked("Muon", 4, 2, direct=5, flops=ORTHOGONALIZATION),
)


def memory(parameters: float, ranks: int, state: float) -> float:
    """Return bytes a rank: a float32 parameter and gradient with the state, all sharded."""
    return parameters * (4 + 4 + state) / ranks


def sent(ranks: int, doubles: int) -> float:
    """Return the bytes that a rank sends in one step, in a ring, which passes all on twice."""
    return 2 * (ranks - 1) / ranks * doubles * DOUBLE


def model_traffic(parameters: float, ranks: int) -> float:
    """Return the bytes that FSDP2 itself sends a rank and step, whatever the optimizer.

    Parameters are gathered in bfloat16 for forward and again for backward, gradients are
    reduce-scattered in float32: (2 + 2 + 4) bytes a parameter, each passed on by all but one rank.
    """
    return parameters * 8 * (ranks - 1) / ranks


def render(results: Results, out: Path) -> list[Path]:
    """Write the page below a folder; return its path."""
    if "scaling" not in results:
        return []
    page = out / "docs" / "scaling.md"
    text = render_template(
        Path(__file__).with_name("page.md.j2"),
        sizes=[(name, n, ranks) for name, n in MODELS.items() for ranks in RANKS],
        memory=memory,
        sent=sent,
        sums=SUMS,
        guards=GUARDS,
        model_traffic=model_traffic,
        size=_size,
        worked=WORKED,
        worked_ranks=RANKS[0],
        own=MODELS["7B"] / RANKS[0],
        bandwidth=BANDWIDTH / 1e12,
        products=MATRIX_RATE / 1e12,
        width=WIDTH,
        simulated=results["scaling"].simulated,
    )
    write_atomically(page, text.encode())
    return [page]


def _size(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"
