"""The plan of the race and the race: every contender on every function, and on f2 as it turns.

A *heat* is one contender on one problem: its learning rate is chosen on starts of their own, then
it runs from the reported starts twice, with the paper's common rate and with the chosen one. Every
run is kept in a file, so that a race that was stopped goes on.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from hvadam._version import __version__
from hvadam_bench import contenders as racers
from hvadam_bench.contenders import TRIAL
from hvadam_bench.registry import instead, own_hint
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.valley.functions import ACROSS, ALONG, FIELDS, FUNCTIONS, HUGE, Problem
from hvadam_bench.studies.valley.result import (
    PAPER_FOUR,
    Comparison,
    Heat,
    Regime,
    summarize,
    turn,
)
from hvadam_bench.sweeping.search import ladder

if TYPE_CHECKING:
    from hvadam_bench.studies.valley.race import Outcome

LATE = 3  # the horizon, in budgets
# The angles of f2's valley to the axes. The starts turn with it, so that only these change: a
# method that treats all directions alike draws a level line.
ANGLES = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0)

# Learning rates 1e-4, 3e-4, ..., 1e-1 for everyone, by their rung on the ladder from 1. When the
# best is at an end the grid grows there, up to the limits, for everyone alike.
_GRID = range(-8, -1)
_LIMITS = range(-16, 9)

MANY_DIMENSIONS = 10  # of the angle study versus the plane, when everyone races


@dataclass(frozen=True)
class Quadratics:
    """Valleys of growing condition numbers, and how far racers may go down them."""

    conditions: tuple[float, ...] = tuple(10.0**k for k in range(1, 7))
    dimensions: tuple[int, ...] = (10, 100)
    most: int = 100_000  # steps
    noisy_steps: int = 2000


@dataclass(frozen=True)
class Plan:
    """What is run: a race, or the paths from one start, or quadratics."""

    problems: tuple[Problem, ...]
    contenders: tuple[str, ...]  # the paper's four among them
    steps: int  # the budget of a run
    turned: tuple[int, ...] = ()  # the dimensions in which f2 turns from an axis to the diagonal
    start: tuple[float, ...] = ()  # where paths begin that are drawn instead of a race
    quadratics: Quadratics | None = None


def plan(
    *,
    functions: tuple[str, ...] = tuple(FUNCTIONS),
    contenders: tuple[str, ...] = (),
    all: bool = False,
    start: str | None = None,
    steps: int = 1500,
    condition: bool = False,
    smoke: bool = False,
) -> Plan:
    """Return what is run.

    Args:
        functions: Race on these of the paper's functions; commas between them.
        contenders: Race these against the paper's four; commas between them.
        all: Race every contender, and turn f2 in ten dimensions, too.
        start: Only draw the paths from X,Y, without a race.
        steps: The budget of a run.
        condition: Race down quadratics of growing condition numbers instead; some minutes.
        smoke: Take a few steps on f2 and down small quadratics.

    Raises:
        ValueError: A name that does not exist, or a start that is none.
    """
    if all and contenders:
        raise ValueError("valley: choose either --contenders or --all.")
    if smoke:
        small = Quadratics((10.0, 100.0), (3,), 300, 5)
        return Plan((Problem("f2"),), PAPER_FOUR, 10, (2,), quadratics=small)
    if condition:
        return Plan((), (), steps, quadratics=Quadratics())
    # Races are of single steps, and many starts at once: there is no line to search along.
    known = [name for name in racers.names() if not racers.get(name).closure]
    hint = f" {own_hint('contender')}"
    choices = ("function", functions, [*FUNCTIONS], ""), ("contender", contenders, known, hint)
    for what, given, there, more in choices:
        for name in [name for name in given if name not in there]:
            said = f"valley: there is no {what} {name!r}; {instead(name, there)}{more}"
            raise ValueError(said)
    chosen = {*PAPER_FOUR, *contenders} if not all else {*known} - {TRIAL}
    problems = tuple(Problem(name) for name in functions)
    turned = (2, MANY_DIMENSIONS) if all else (2,)
    return Plan(
        problems,
        tuple(name for name in known if name in chosen),
        steps,
        turned if "f2" in functions else (),
        _read_start(start, problems) if start is not None else (),
    )


def _read_start(text: str, problems: tuple[Problem, ...]) -> tuple[float, ...]:
    """Return a start, a point of the plane that is not so high that a run would end there."""
    try:
        start = np.array([float(x) for x in text.split(",")])
    except ValueError:
        start = np.empty(0)
    if start.shape != (2,) or not np.isfinite(start).all():
        raise ValueError(f"valley: a start must be two finite numbers, X,Y; got {text}.")
    for problem in problems:
        if not problem.evaluate(start[None])[0][0] <= HUGE:
            raise ValueError(f"valley: {problem.label} is above {HUGE:g} at the start {text}.")
    return tuple(start.tolist())


def measure(plan: Plan, place: Place) -> dict[str, Any]:
    """Race, and draw the paths of each problem; or only draw them from the start that is given."""
    from hvadam_bench.studies.valley import paths, race

    found: dict[str, Any] = {}
    if plan.problems and not plan.start:
        found["valley"] = compare(plan, place)
    for problem in plan.problems:
        path = paths.draw(problem, plan.contenders, plan.steps, place.out, plan.start)
        place.on_progress(f"drew {path}", 1 / len(plan.problems) if plan.start else 0.0)
    if plan.quadratics:
        found["condition"] = race.race_quadratics(plan.quadratics, place.on_progress)
    return found


def compare(plan: Plan, place: Place) -> Comparison:
    """Run what is not kept yet, and return what all runs say."""
    import torch

    from hvadam_bench.studies.valley.race import COMMON_LR, LAST, TARGET

    folder = place.runs / "valley"
    turned = [Problem("f2", ANGLES, dimension) for dimension in plan.turned]
    kept = sum(1 for _ in folder.rglob("*.npz"))
    place.on_progress(f"resuming: {kept:,} runs are kept in {folder}" if kept else "", 0.0)
    share = 1 / len(plan.contenders) / (len(plan.problems) + len(turned))

    def race(problem: Problem, field: str) -> Iterator[tuple[str, list[Heat]]]:
        for name in plan.contenders:
            place.on_progress(f"{name} on {problem.name}", 0.0)
            yield name, run_heat(problem, name, field, plan.steps, folder)
            place.on_progress("", share)

    return Comparison(
        versions={
            "hvadam": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
        steps=plan.steps,
        horizon=LATE * plan.steps,
        target=TARGET,
        last=LAST,
        common_lr=COMMON_LR,
        grid=(ACROSS, ALONG),
        sample=FIELDS["sample"][0],
        tuning_starts=FIELDS["tuning"][0],
        functions={
            one.name: summarize(one, {name: heat for name, [heat] in race(one, "grid")})
            for one in plan.problems
        },
        angle={
            str(one.dimension): {name: turn(heats) for name, heats in race(one, "sample")}
            for one in turned
        },
    )


def run_heat(problem: Problem, contender: str, field: str, steps: int, folder: Path) -> list[Heat]:
    """Choose the learning rate at each angle, then run from the starts of a field."""
    from hvadam_bench.studies.valley.race import COMMON_LR, Outcome

    def run(lr: float, field: str, horizon: int) -> list[Outcome]:
        whole = run_or_read(folder, problem, contender, lr, field, steps, horizon)
        columns = [np.split(column, len(problem.angles)) for column in whole]
        return [Outcome(*part) for part in zip(*columns, strict=True)]

    tried: dict[float, list[float]] = {}
    best: list[float] = []
    wanted = {*_GRID}
    while wanted:
        for k in wanted:
            lr = ladder(1.0, k)
            tried[lr] = [float(np.median(part.loss)) for part in run(lr, "tuning", steps)]
        places = range(len(problem.angles))
        best = [min(tried, key=lambda lr: (tried[lr][i], lr)) for i in places]
        around = {k + side for k in _LIMITS if ladder(1.0, k) in best for side in (-1, 1)}
        wanted = {k for k in around if k in _LIMITS and ladder(1.0, k) not in tried}
    heats: list[Heat] = []
    for i, (angle, chosen) in enumerate(zip(problem.angles, best, strict=True)):
        lrs: dict[Regime, float] = {"common": COMMON_LR, "tuned": chosen}
        outcomes: dict[Regime, Outcome] = {
            regime: run(lr, field, LATE * steps)[i] for regime, lr in lrs.items()
        }
        heats.append(Heat(angle, {lr: tried[lr][i] for lr in sorted(tried)}, lrs, outcomes))
    return heats


def run_or_read(
    folder: Path,
    problem: Problem,
    contender: str,
    lr: float,
    field: str,
    steps: int,
    horizon: int,
) -> Outcome:
    """Run from all starts of a field, unless a file holds what came of a run just like it."""
    import torch

    from hvadam_bench.studies.valley import race

    starts = problem.starts(field)
    options = {**racers.get(contender).defaults, **race.options_of(contender, steps)}
    made_with = (__version__, torch.__version__, racers.source(contender))
    settings = repr((problem, options, made_with, lr, steps, horizon, race.LAST))
    digest = crc32(settings.encode() + starts.tobytes())
    path = folder / f"{problem.name}-{problem.dimension}d" / contender
    path = path / f"{field}-{lr:g}-{digest:08x}.npz"
    if path.exists():
        with np.load(path) as kept:
            return race.Outcome(**kept)
    found = race.run(problem, contender, lr, starts, steps, horizon)
    content = BytesIO()
    np.savez(content, **found._asdict())
    write_atomically(path, content.getvalue())
    return found
