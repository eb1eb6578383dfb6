"""The page on what HVAdam costs on many ranks."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.tables import Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.scaling.measure import (
    BANDWIDTH,
    MATRIX_RATE,
    MODELS,
    OPTIMIZERS,
    RANKS,
    WIDTH,
    WORKED,
    Scaling,
    model_traffic,
)

TEMPLATE = Path(__file__).with_name("page.md.j2")


def render(results: Results, out: Path) -> list[Path]:
    """Write the page below a folder; return its path."""
    page = out / "docs" / "scaling.md"
    if "scaling" in results:
        write_atomically(page, render_page(results["scaling"]).encode())
    return [page]


def render_page(found: Scaling) -> str:
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
    checks = [
        [s.optimizer, str(s.ranks), str(s.collectives), f"{s.bytes} B"] for s in found.simulated
    ]
    return render_template(
        TEMPLATE,
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
