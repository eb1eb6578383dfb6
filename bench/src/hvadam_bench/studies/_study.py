"""What a study is: one question, everything about which lies in one folder.

`plan.py` turns the command's options into what is to be done, `measure.py` does it, `page.py` and
`page.md.j2` make pages and figures of the results alone; `__init__.py` ends with the `STUDY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hvadam_bench.studies._results import load, save

if TYPE_CHECKING:
    from hvadam_bench.sweeping.sweep import Sweep

# Called with what is being done, and with the share of all the work done since the last call.
OnProgress = Callable[[str, float], None]
# A study's results by the stems of their files in ``results/``.
Results = Mapping[str, Any]


def ignore_progress(doing: str, share: float) -> None:
    """Ignore how far a study is."""


def refuse_sweeps(sweeps: Sequence[Sweep]) -> bool:
    """Refuse to run sweeps, as most studies need none."""
    raise ValueError(f"Place: sweep must be given to run {len(sweeps)} sweeps, got none.")


@dataclass(frozen=True)
class Place:
    """Where a study works, and how it reports how far it is; it prints nothing itself.

    Attributes:
        out: Where ``results/`` and ``docs/`` lie, which are read and written.
        runs: Where runs lie that are not packed yet, study by study; a second call resumes them.
        on_progress: Called as the work goes on.
        sweep: Runs sweeps one after the other, packs the records where there is a folder for them,
            and returns whether all of them ran to their end.
    """

    out: Path
    runs: Path
    on_progress: OnProgress = ignore_progress
    sweep: Callable[[Sequence[Sweep]], bool] = refuse_sweeps

    @property
    def results(self) -> Path:
        """Return where typed results and packed records lie."""
        return self.out / "results"


@dataclass(frozen=True)
class Study:
    """One question: how it is answered, and the page that says what was found.

    Attributes:
        name: As `hvadam study NAME` has it.
        about: One sentence, which begins with a verb.
        plan: Returns what is to be done. Its keyword arguments are the command's options: their
            types and defaults are those of its signature, their help is in its docstring. One of
            them is `smoke`, for work of seconds that shows that everything works. It raises
            ValueError for what cannot be done.
        measure: Does what is planned, at a place; returns results by the stems of their files, of
            which there may be fewer than the study has.
        render: Writes pages and figures below a folder, from those results that there are; returns
            the files.
        kinds: The class of each result, by the stem of its file.
        tables: Returns what to print of new results: tables and lines.
        folder: A folder of its own to work in, which keeps its runs too, in `runs`. Without one,
            results go to `NAME-results`, and runs to where those of all studies lie.
    """

    name: str
    about: str
    plan: Callable[..., Any]
    measure: Callable[[Any, Place], Results]
    render: Callable[[Results, Path], list[Path]]
    kinds: Mapping[str, type]
    tables: Callable[[Results], Iterable[Any]] = lambda results: ()
    folder: str = ""

    def read(self, out: Path) -> dict[str, Any]:
        """Return the results that there are below a folder, by the stems of their files."""
        paths = {stem: out / "results" / f"{stem}.json" for stem in self.kinds}
        return {stem: load(self.kinds[stem], path) for stem, path in paths.items() if path.exists()}

    def write(self, results: Results, out: Path) -> list[Path]:
        """Write results below a folder, and every page that they change; return the files."""
        written: list[Path] = []
        for stem, result in results.items():
            written.append(out / "results" / f"{stem}.json")
            save(result, written[-1])
        return written + self.render({**self.read(out), **results}, out)
