"""The page of the race on the toy functions: its tables; its sentences are in the template."""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.contenders import OURS
from hvadam_bench.pages.formatting import number, quartiles, rate, share
from hvadam_bench.pages.markdown import Markdown
from hvadam_bench.pages.palette import label
from hvadam_bench.pages.rendering import render as render_page
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies.toy_functions import triangle
from hvadam_bench.studies.toy_functions.functions import FUNCTIONS
from hvadam_bench.studies.toy_functions.result import (
    PAPER_FOUR,
    REGIMES,
    Comparison,
    Criterion,
    Turn,
    Verdict,
    compare_ends,
    key,
)

CLAIMS: dict[Criterion, str] = {"lowest": "lowest at the end", "first": "first to arrive"}


def render(found: Comparison) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    functions = found.functions
    ours = all(OURS in function.racers for function in functions.values())
    everyone = any(function.wins_of_all for function in functions.values())
    return render_page(
        "valley.md.j2",
        found=found,
        claims=CLAIMS,
        regimes=REGIMES,
        four=PAPER_FOUR,
        compare_ends=compare_ends,
        strong=strong,
        loss=loss,
        functions=tabulate_functions(found),
        verdicts=tabulate_verdicts(found) if ours else None,
        wins=tabulate_wins(found),
        losses=tabulate_losses(found),
        turns={dimension: tabulate_turn(turn) for dimension, turn in found.angle.items()},
        ahead=tabulate_ahead(found) if ours and everyone else None,
        diverged=[
            (name, contender, own.common.diverged)
            for name, function in functions.items()
            for contender, own in function.contenders.items()
            if own.common.diverged
        ],
        flat=[name for name, function in functions.items() if function.dimension == 2],
        triangle=tabulate_triangle(),
    )


def tabulate_functions(found: Comparison) -> Table:
    """Return the functions with their formulas."""
    rows = [
        [name, FUNCTIONS[name.split("-")[0]].formula, f"{one.angle:g}°", str(one.dimension)]
        for name, one in found.functions.items()
    ]
    return Table(["function", "", "angle", "dimension"], rows)


def tabulate_verdicts(found: Comparison) -> Table:
    """Return how HVAdam stands by each claim on each function, and how often it wins."""
    rows = [
        [name, claim, *(_verdict(function.verdict(regime, criterion)) for regime in REGIMES)]
        for criterion, claim in CLAIMS.items()
        for name, function in found.functions.items()
    ]
    return Table(["", "HVAdam is", *REGIMES.values()], rows)


def tabulate_wins(found: Comparison) -> Table:
    """Return the win rates of the racers, by function and criterion."""
    names: dict[Criterion, str] = {
        "lowest": f"lowest after {found.steps}",
        "late": f"lowest after {found.horizon}",
        "first": f"first to {found.target:g}",
    }
    racers = next(iter(found.functions.values())).racers
    rows = [
        [name, what, words, *(share(wins[racer]) for racer in racers)]
        for name, function in found.functions.items()
        for criterion, what in names.items()
        for regime, words in REGIMES.items()
        for wins in [function.wins[key(regime, criterion)]]
    ]
    return Table(["", "", "rate", *map(label, racers)], rows)


def tabulate_losses(found: Comparison) -> Table:
    """Return medians, quartiles, arrivals and divergences of the racers."""
    heads = [
        *("", "", "rate", "lr", f"loss after {found.steps}: median (quartiles)"),
        *("arrived", "median steps", "diverged"),
    ]
    rows: list[list[Cell | str]] = []
    for name, function in found.functions.items():
        for racer in function.racers:
            for regime, words in REGIMES.items():
                own = function.contenders[racer].under(regime)
                low, median, high = own.loss
                rows.append(
                    [
                        *(name, Cell.of(racer), words, rate(own.lr)),
                        quartiles(median, low, high, loss),
                        *(str(own.reached), short(own.steps), str(own.diverged)),
                    ]
                )
    return Table(heads, rows)


def tabulate_turn(turn: Turn) -> Table:
    """Return the median loss of everyone at every angle, and how it grows from end to end."""
    angles = [row.angle for row in next(iter(turn.values())).common]
    rows: list[list[Cell | str]] = []
    for name, own in turn.items():
        for regime, words in REGIMES.items():
            medians = [row.median for row in own.under(regime)]
            rows.append([Cell.of(name), words, *map(loss, medians), short(_growth(medians))])
    return Table(["", "rate", *(f"{x:g}°" for x in angles), "last/first"], rows)


def tabulate_ahead(found: Comparison) -> Table:
    """Return whom HVAdam does not beat from half of the starts."""
    rows = [
        [
            name,
            words,
            ", ".join(f"{label(n)} ({share(s)})" for n, s in function.ahead_of_ours(regime))
            or "none",
        ]
        for name, function in found.functions.items()
        for regime, words in REGIMES.items()
    ]
    return Table(["", "rate", "lower than HVAdam"], rows)


def tabulate_triangle() -> Table:
    """Return Fig. 3's table."""
    rows = [
        [str(t), *(f"({_plain(x)}, {_plain(y)})" for x, y in step)]
        for t, step in enumerate(triangle.steps(), 1)
    ]
    return Table(["step", "gradient", "m̂", "v"], rows)


def short(x: float | None) -> str:
    """Return a number of two digits, or whole if it is large.

    Example:
        >>> short(0.01234), short(1887.3), short(None)
        ('0.012', '1887', 'none')
    """
    if x is None:
        return "none"
    return number(x, 2) if abs(x) < 100 else f"{x:.0f}"


def loss(x: float | None) -> str:
    """Return a loss; there is none where most runs diverged."""
    return "diverged" if x is None else short(x)


def strong(word: str) -> str:
    """Return a verdict, in bold if it tells HVAdam and a rival apart."""
    return f"**{word}**" if word in ("ahead", "behind") else word


def _verdict(found: Verdict) -> Markdown:
    """Return the verdict, and of each duel the share and what is not a lead."""
    told = [
        f"{label(name)} {share(won)}" + (f" ({word})" if word != "ahead" else "")
        for name, (won, word) in found.duels.items()
    ]
    return Markdown(f"{strong(found.word)}: {', '.join(told)}")


def _growth(medians: Sequence[float | None]) -> float | None:
    first, last = medians[0], medians[-1]
    return None if not first or last is None else last / first


def _plain(x: float) -> str:
    return f"{round(x, 4):g}".replace("-", "−")
