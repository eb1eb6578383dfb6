"""The tables: what each cell says, and which records it says it of.

A `Table` is plain data, so the page and Markdown show the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from hvadam.bench import stats
from hvadam.bench.records import MEASURED, Record
from hvadam.bench.report.boards import Board, Entry, describe_options, statuses
from hvadam.bench.report.looks import ABLATION, OURS, look
from hvadam.bench.report.numbers import NOT_FID, Units, seconds


@dataclass(frozen=True)
class Cell:
    """What stands in a cell.

    Attributes:
        text: In words and numbers.
        records: What it was computed from.
        mark: Whether it ties with the best.
        comparison: Drawn beside the text, if there is one.
    """

    text: str
    records: Sequence[Record] = ()
    mark: bool = False
    comparison: stats.Comparison | None = None


@dataclass(frozen=True)
class Table:
    """Rows by contender, with lines on how to read them."""

    title: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    reading: str = ""

    def markdown(self) -> str:
        """The table for a README; what ties with the best is bold."""
        lines = [f"**{escape(self.title)}**", ""]
        lines += [_line(self.heads), "|" + "---|" * len(self.heads)]
        for contender, cells in self.rows:
            texts = [escape(cell.text) for cell in cells]
            shown = [
                f"**{text}**" if cell.mark else text
                for text, cell in zip(texts, cells, strict=True)
            ]
            lines.append(_line([escape(look(contender).label), *shown]))
        return "\n".join([*lines, "", escape(self.reading)] if self.reading else lines)


def units_of(board: Board) -> Units:
    """How the board's values are written."""
    metric = board.metric
    entries = board.entries.values()
    values = [[stats.final(run, metric) for run in e.judged] for e in entries]
    return Units(metric, values, board.measured)


def results(board: Board) -> Table:
    """Who ended where, and how it compares with Adam."""
    units, reference = units_of(board), board.reference
    tied = best_and_ties(board, board.race)
    published = any(run.published is not None for entry in board.race for run in entry.judged)
    heads = [
        "",
        f"test {units.name}",
        "against Adam",
        "n",
        "lr chosen",
        "judged runs",
        "tuning runs",
    ]
    if published:
        heads.insert(3, "paper")
    rows: list[tuple[str, list[Cell]]] = []
    for entry in board.race:
        cells = [
            _value(entry, board, units, entry.name in tied),
            _against(entry, reference, board, units),
            Cell(str(len(entry.judged)), entry.judged),
            Cell(_chosen(entry), entry.tuning or entry.judged),
            Cell(statuses([*entry.judged, *entry.rest]), [*entry.judged, *entry.rest]),
            Cell(statuses(entry.tuning), entry.tuning),
        ]
        if published:
            cells.insert(2, _published(entry, units))
        rows.append((entry.name, cells))
    return Table("Results", heads, rows, _reading_of_results(board))


def best_and_ties(board: Board, entries: Iterable[Entry]) -> set[str]:
    """The best median, and all that are not settled to be worse; empty if that is everyone."""
    judged = [entry for entry in entries if entry.judged]
    medians = {entry.name: _summary(entry, board.metric).median for entry in judged}
    finite = {name: value for name, value in medians.items() if math.isfinite(value)}
    if not finite:
        return set()
    pick = min if board.metric.goal == "min" else max
    best = board.entries[pick(finite, key=lambda name: finite[name])]
    found = {name for name in finite if not board.against(board.entries[name], best).settled}
    return found if len(found) < len(judged) else set()


def speed(board: Board) -> Table:
    """Time per step, and how soon each got to where Adam ended."""
    heads = ["", "time per step"]
    goal = target_of(board)
    if goal is not None:
        heads += ["steps to Adam's end", "time to Adam's end", "runs that got there"]
    rows: list[tuple[str, list[Cell]]] = []
    for entry in board.race:
        runs = entry.judged
        paces = [run.train_seconds / run.curve[-1].step for run in runs if _has_steps(run)]
        cells = [Cell(seconds(median(paces)) if paces else "–", runs)]
        if goal is not None:
            steps = median_to_target(entry, board, goal, lambda reached: reached.step)
            time = median_to_target(entry, board, goal, lambda reached: reached.seconds)
            found = [stats.time_to_target(run, board.metric, goal) is not None for run in runs]
            cells += [
                Cell(f"{steps:,.0f}" if math.isfinite(steps) else "not reached", runs),
                Cell(seconds(time) if math.isfinite(time) else "not reached", runs),
                Cell(f"{sum(found)} of {len(found)}", runs),
            ]
        rows.append((entry.name, cells))
    return Table("Speed", heads, rows, _reading_of_speed(board, goal))


def sensitivity(board: Board) -> Table | None:
    """How wide a range of learning rates does, for those that were tuned."""
    rows: list[tuple[str, list[Cell]]] = []
    for entry in board.race:
        tuning = [run for run in entry.tuning if "lr" in run.config.options]
        if not tuning:
            continue
        found = stats.sensitivity(tuning, board.metric)
        spread = f"{found.low:g} to {found.high:g}" if found.high > found.low else f"{found.low:g}"
        cells = [f"{found.best:g}", spread, f"{found.decades:.1f}", str(len(found.values))]
        rows.append((entry.name, [Cell(text, tuning) for text in cells]))
    reading = (
        "The range around the best learning rate in which the validation value stays within 1% of "
        "the best, among the rates tried; wider is easier to tune."
    )
    heads = ["", "best lr", "lrs within 1%", "decades", "lrs tried"]
    return Table("Sensitivity to the learning rate", heads, rows, reading) if rows else None


def ablation(board: Board) -> Table | None:
    """HVAdam as it grows from Adam, if at least one of its steps was run."""
    names = [name for name in (*ABLATION, OURS) if name in board.entries]
    entries = [board.entries[name] for name in names if board.entries[name].judged]
    if len(entries) < 2 or not set(ABLATION) & {entry.name for entry in entries}:
        return None
    units, tied = units_of(board), best_and_ties(board, entries)
    first = entries[0]
    rows: list[tuple[str, list[Cell]]] = []
    for entry in entries:
        cells = [
            Cell(_STEPS[entry.name], entry.judged),
            _value(entry, board, units, entry.name in tied),
            _against(entry, first, board, units),
            Cell(str(len(entry.judged)), entry.judged),
            Cell(describe_options(entry.options), entry.tuning or entry.judged),
        ]
        rows.append((entry.name, cells))
    label = look(first.name).label
    heads = ["", "what it has", f"test {units.name}", f"against {label}", "n", "lr chosen"]
    return Table("Ablation", heads, rows, "What each part of the method adds, from Adam upwards.")


def target_of(board: Board) -> float | None:
    """Where Adam ended on the validation split, if it did."""
    if board.reference is None:
        return None
    goal = stats.target(board.reference.judged, board.metric)
    return goal if math.isfinite(goal) else None


def median_to_target(
    entry: Entry, board: Board, goal: float, measure: Callable[[stats.Reached], float]
) -> float:
    """Over the judged runs; one that never got there took for ever."""
    reached = [stats.time_to_target(run, board.metric, goal) for run in entry.judged]
    costs = [math.inf if one is None else measure(one) for one in reached]
    return stats.summarize(costs).median if costs else math.inf


_STEPS = {
    "hvadam0": "Adam, by HVAdam's kernels",
    "hvadam1": "+ the step along the hidden vector",
    "hvadam2": "+ the preconditioner from it",
    "hvadam": "+ restarts: HVAdam",
}


def _summary(entry: Entry, metric: stats.Metric) -> stats.Summary:
    return stats.summarize(stats.final(run, metric) for run in entry.judged)


def _value(entry: Entry, board: Board, units: Units, mark: bool) -> Cell:
    """Median and interval over seeds."""
    values = [stats.final(run, board.metric) for run in entry.judged]
    if not values:
        return Cell("no judged runs", entry.rest)
    middle = stats.summarize(values).median
    if not math.isfinite(middle):
        return Cell("diverged", entry.judged)
    if len(values) == 1:
        return Cell(units.value(middle), entry.judged, mark)
    interval = units.interval(stats.bootstrap(values))
    return Cell(f"{units.value(middle)} {interval}", entry.judged, mark)


def _against(entry: Entry, reference: Entry | None, board: Board, units: Units) -> Cell:
    """The paired difference and what it amounts to."""
    if reference is None or not entry.judged:
        return Cell("–", entry.judged)
    if entry is reference:
        return Cell("reference", entry.judged)
    found = board.against(entry, reference)
    records = [*entry.judged, *reference.judged]
    if not found.n:
        return Cell("no seed in common", records)
    if not math.isfinite(found.difference):
        lost = found.difference == board.metric.worst
        return Cell("diverged" if lost else f"{look(reference.name).label} diverged", records)
    amount = f"{units.change(found.difference)} {units.interval(found.interval, signed=True)}"
    return Cell(f"{amount} {standing(found)}", records, comparison=found)


def standing(found: stats.Comparison) -> str:
    """One word, or two where the seeds agree but are too few to tell."""
    if found.n < stats.FEWEST_PAIRS:
        return "too few seeds"
    if found.verdict == "tie":
        return "tie"
    word = "ahead" if found.verdict == "better" else "behind"
    return word if found.settled else f"{word}, unsettled"


def _chosen(entry: Entry) -> str:
    """The options; a learning rate at the edge of those tried may not be the best there is."""
    tried = [run.config.options["lr"] for run in entry.tuning if "lr" in run.config.options]
    at_edge = len(set(tried)) > 1 and entry.options.get("lr") in (min(tried), max(tried))
    return describe_options(entry.options) + (" (edge of those tried)" if at_edge else "")


def _published(entry: Entry, units: Units) -> Cell:
    found = {run.published for run in entry.judged if run.published is not None}
    shown = [f"{value * units.factor:.6g}" for value in sorted(found)]
    return Cell(", ".join(shown) or "–", entry.judged)


def _has_steps(run: Record) -> bool:
    return run.status in MEASURED and bool(run.curve) and run.curve[-1].step > 0


def _reading_of_results(board: Board) -> str:
    better = "less" if board.metric.goal == "min" else "more"
    marked = "Marked: the best and all that are not settled to be worse."
    if not best_and_ties(board, board.race):
        marked = "None is marked as best: it is not settled that anyone is worse."
    said = [f"Median over n seeds and its 95% bootstrap interval; {better} is better. {marked}"]
    if board.reference is not None and len(board.race) > 1:
        level = 1 - 0.05 / (len(board.race) - 1)
        said.append(
            "Against Adam: the median difference on the same seeds, with an interval at "
            f"{100 * level:.4g}%, so that all comparisons of this table hold together at 95%. "
            "Unsettled: the seeds agree, but so few do by chance too often."
        )
    if about := _on_the_measure(board):
        said.append(about)
    untuned = [look(e.name).label for e in board.race if e.judged and not e.tuned]
    if untuned:
        said.append(
            f"Not tuned on separate runs: {', '.join(untuned)}; the options are those that did "
            "best on the validation split, among the runs shown."
        )
    return "\n".join(said)


def _on_the_measure(board: Board) -> str:
    """What it is not, and how much of a difference is its own noise."""
    said, units = [], units_of(board)
    if units.measure == NOT_FID:
        said.append(
            "The Fréchet distance is of features of this project, not of Inception: compare it "
            "within this task only, never with a published FID."
        )
    runs = [run for entry in board.race for run in entry.judged]
    noises = [noise for run in runs if (noise := run.test.get(f"{board.metric.name}_sd"))]
    if noises:
        size = float(f"{units.factor * median(noises):.2g}")
        said.append(
            f"The measure's own noise is {size:g}: its standard deviation over other samples of "
            "the same run, median over the judged runs. Do not read smaller differences."
        )
    return " ".join(said)


def _reading_of_speed(board: Board, goal: float | None) -> str:
    said = "Time in training, without evaluations; comparable only between runs of one machine."
    if goal is None:
        return said
    units = units_of(board)
    return (
        f"{said} Adam's end: {units.measure} {units.value(goal)} on the validation split, the "
        "median of its runs. First evaluation at which it was reached, median over seeds."
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """So that a name cannot end a cell or start markup."""
    for sign in "\\|*_`<[":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
