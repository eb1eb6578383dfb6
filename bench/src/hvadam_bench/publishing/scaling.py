"""The page on what HVAdam costs on many ranks."""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.publishing import pages
from hvadam_bench.publishing.tables import Table
from hvadam_bench.studies.scaling import (
    BANDWIDTH,
    MATRIX_RATE,
    MODELS,
    OPTIMIZERS,
    RANKS,
    WIDTH,
    WORKED,
    Simulated,
    model_traffic,
)


def render(simulated: Sequence[Simulated]) -> str:
    """Return the page: tables by the formulas, and what simulated steps say of them."""
    sizes = [(name, n, ranks) for name, n in MODELS.items() for ranks in RANKS]
    adamw, hvadam, clipping, bfloat16 = OPTIMIZERS
    memory = [
        [name, str(ranks), *(_size(o.memory(n, ranks)) for o in (adamw, hvadam, bfloat16))]
        for name, n, ranks in sizes
    ]
    traffic = [
        [
            name,
            str(ranks),
            _size(model_traffic(n, ranks)),
            f"{hvadam.sent(ranks):.0f} B",
            f"{clipping.sent(ranks):.0f} B",
            f"{hvadam.sent(ranks) / model_traffic(n, ranks):.0e}",
        ]
        for name, n, ranks in sizes
    ]
    checks = [[s.optimizer, str(s.ranks), str(s.collectives), f"{s.bytes} B"] for s in simulated]
    return pages.render(
        "scaling.md.j2",
        memory=Table(["model", "ranks", "AdamW", "HVAdam", "HVAdam, bfloat16 state"], memory),
        traffic=Table(
            ["model", "ranks", "the model's own", "HVAdam adds", "with clipping inside", "share"],
            traffic,
        ),
        worked=_worked(),
        worked_ranks=RANKS[0],
        bandwidth=BANDWIDTH / 1e12,
        products=MATRIX_RATE / 1e12,
        width=WIDTH,
        simulated=Table(["", "ranks", "collectives a step", "bytes"], checks),
    )


def _worked() -> Table:
    """Return the example: a 7B model on 8 GPUs, optimizer by optimizer."""
    own = MODELS["7B"] / RANKS[0]
    rows = [
        [
            one.name,
            f"{one.state:.3g}",
            _size(own * one.state),
            f"{one.moved():.3g}",
            f"{1e3 * one.seconds(own):.3g} ms",
        ]
        for one in WORKED
    ]
    heads = ["", "state, bytes a parameter", "state on a GPU", "bytes moved", "a step, reckoned"]
    return Table(heads, rows, right=range(1, len(heads)))


def _size(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"
