"""The whole comparison, part by part and task by task, so that what is cut short is cut at its end.

    hvadam evidence

goes on where the records end, however often it is stopped.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from hvadam.bench import recipes
from hvadam.bench.costs import Costs
from hvadam.bench.engines import make_engine
from hvadam.bench.records import Store
from hvadam.bench.standings import run_and_show
from hvadam.bench.sweep import Sweep

# Each is a recipe "evidence_<part>" and a folder of records.
PARTS = ("tasks", "ablation", "sensitivity", "generative")


def store_of(folder: Path, part: str) -> Store:
    """Where a part's records are: the parts do not compete, so each has a folder of its own."""
    return Store(folder / part)


def gather(folder: Path, parts: tuple[str, ...], workers: int | None, console: Console) -> bool:
    """Run what is not recorded yet; whether all of it got to its end.

    Args:
        folder: Of the parts' folders.
        parts: Which, in their order.
        workers: Runs at a time; None for as many as there are cores.
        console: Where progress and tables go.
    """
    sweeps: list[tuple[str, Sweep]] = []
    for part in parts:
        store = store_of(folder, part)
        costs = Costs(store)
        studies = recipes.get(f"evidence_{part}").studies
        sweeps += [(part, Sweep([study], store, costs)) for study in studies]

    finished = True
    for place, (part, sweep) in enumerate(sweeps, 1):
        engine = make_engine("local", store_of(folder, part), workers)
        later = sum(one.progress(engine.slots).seconds_left for _, one in sweeps[place:])
        about = f"{part}, {place} of {len(sweeps)}"
        finished &= run_and_show(sweep, engine, console, about, later)
    return finished
