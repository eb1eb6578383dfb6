"""Who races, on which functions and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hvadam_bench.contenders import TRIAL, get, names
from hvadam_bench.registry import instead, own_hint
from hvadam_bench.studies.valley.functions import FUNCTIONS, HUGE, Problem
from hvadam_bench.studies.valley.result import PAPER_FOUR

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
    """What is run.

    Attributes:
        problems: The functions.
        contenders: Who races, the paper's four among them.
        steps: The budget of a run.
        turned: The dimensions in which f2 is turned from one axis to the diagonal.
        start: Where paths begin that are drawn instead of a race; empty for a race.
        quadratics: The valleys of growing condition numbers, if they are run.
    """

    problems: tuple[Problem, ...]
    contenders: tuple[str, ...]
    steps: int
    turned: tuple[int, ...] = ()
    start: tuple[float, ...] = ()
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
    known = [name for name in names() if not get(name).closure]
    _refuse_unknown("function", functions, [*FUNCTIONS])
    _refuse_unknown("contender", contenders, known, own_hint("contender"))
    racers = {*PAPER_FOUR, *contenders} if not all else {*known} - {TRIAL}
    problems = tuple(Problem(name) for name in functions)
    turned = (2, MANY_DIMENSIONS) if all else (2,)
    return Plan(
        problems,
        tuple(name for name in known if name in racers),
        steps,
        turned if "f2" in functions else (),
        _read_start(start, problems) if start is not None else (),
    )


def _refuse_unknown(what: str, given: tuple[str, ...], known: list[str], hint: str = "") -> None:
    for name in given:
        if name not in known:
            raise ValueError(
                f"valley: there is no {what} {name!r}; {instead(name, known)} {hint}".rstrip()
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
