"""The parts of the comparison: what each runs, where its records are, what is finished.

    hvadam evidence

goes on where the records end, however often it is stopped, part by part and task by task, so that
what is cut short is cut at its end. A study is told of only when every entry in it has finished its
tuning and run all its seeds: who is quick to run would else be judged against those who happened to
be there. What is not finished is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.running.records import Store
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.contest_results import ContestResults, read_contest
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Contest
from hvadam_bench.sweeping.sweep import Sweep

PARTS = ("smooth", "noise", "minibatch")
Studies = Mapping[str, Sequence[Contest]]  # part -> its studies, in the order in which they run


@dataclass(frozen=True)
class PartResults(ContestResults):
    """One study of a part, as far as it is recorded."""

    part: str


def recipe_of(part: str) -> str:
    """Return the name of a part's recipe, which names its study and its folders too."""
    return f"evidence_{part}"


def store_of(folder: Path, part: str, results: Path | None = None) -> Store:
    """Return where a part's records are: the parts do not compete, so each has its own folder.

    Args:
        folder: Of the parts' folders to work in.
        part: Which.
        results: Of the parts' packed records, if there are any.
    """
    name = recipe_of(part)
    return Store(folder / name, None if results is None else results / name)


def planned() -> Studies:
    """Return the studies of `hvadam evidence`."""
    return {part: recipes.get(recipe_of(part)).studies for part in PARTS}


def plan(folder: Path, results: Path, parts: Sequence[str]) -> list[Sweep]:
    """Return the sweeps of some parts, a task each, in the order to run them."""
    sweeps: list[Sweep] = []
    for part in parts:
        store, name = store_of(folder, part, results), recipe_of(part)
        costs = Costs(store)
        sweeps += [Sweep([study], store, name, costs) for study in recipes.get(name).studies]
    return sweeps


def read(folder: Path, studies: Studies, results: Path | None = None) -> list[PartResults]:
    """Return every study as far as it is recorded, finished or not.

    Args:
        folder: Of the parts' folders to work in.
        studies: Which.
        results: Of the parts' packed records, if there are any.
    """
    found: list[PartResults] = []
    for part, own in studies.items():
        ledger = Ledger(store_of(folder, part, results))
        found += [PartResults(**vars(read_contest(study, ledger)), part=part) for study in own]
    return found
