"""The page's shorter sections, each a table with the sentence that follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import eq, gt
from statistics import median
from typing import Any

from hvadam import optimizers
from hvadam.bench.findings import prose
from hvadam.bench.findings.summary import TIMED
from hvadam.bench.findings.words import (
    count,
    counted,
    difference,
    label,
    listed,
    rate,
    short,
    standing,
    table,
    title,
    units_of,
    value,
)
from hvadam.bench.report.looks import OURS
from hvadam.bench.report.numbers import Units

Content = Mapping[str, Any]


def sooner(content: Content) -> str:
    """Steps to where Adam ended."""
    found = [(board, board["sooner"]) for board in content["tasks"] if board["sooner"]]
    rows = [
        [title(board), _share(one), standing(one), f"{one['never']} of {one['n']}", str(one["n"])]
        for board, one in found
    ]
    said = f"In steps to Adam's end HVAdam {counted(count(one for _, one in found))}."
    heads = ["", "steps, as a share of Adam's", "", "never got there", "n"]
    return f"{said}\n\n{table(heads, rows)}" if rows else ""


def sensitivity(content: Content) -> str:
    """Decades of learning rates within 1%, by entry, over the tasks that all have in common."""
    decades = decades_by_entry(content["tasks"])
    ordered = sorted(decades, key=lambda name: -median(decades[name].values()))
    rows = []
    for name in ordered:
        own = sorted(decades[name].values())
        rows.append(
            [label(name), f"{median(own):.1f}", f"{own[0]:.1f} to {own[-1]:.1f}", str(len(own))]
        )
    said = ""
    if OURS in decades:
        medians = {name: median(own.values()) for name, own in decades.items()}
        own = medians.pop(OURS)
        wider, same = (sum(op(other, own) for other in medians.values()) for op in (gt, eq))
        said = (
            f"Over the tasks HVAdam's median is {own:.1f} decades; of the {len(medians)} others, "
            f"{wider} {'has' if wider == 1 else 'have'} a wider one and {same} the same."
        )
    return f"{said}\n\n{table(['', 'median decades', 'range', 'tasks'], rows)}" if rows else ""


def decades_by_entry(boards: Sequence[Content]) -> dict[str, dict[str, float]]:
    """Entry -> task -> decades, for the entries that are on every board."""
    if not boards:
        return {}
    common = [n for n in boards[0]["entries"] if all(n in board["entries"] for board in boards)]
    found = {
        name: {
            board["task"]: round(board["entries"][name]["decades"], 1)  # 1 to 3 as 3 to 10
            for board in boards
            if board["entries"][name]["decades"] is not None
        }
        for name in common
    }
    return {name: own for name, own in found.items() if own}


def ablation(content: Content) -> str:
    """The levels side by side, short and long."""
    told: list[str] = []
    for board in content["ablation"]:
        units = units_of(board)
        rows = [
            [
                label(level["name"]),
                value(level, units),
                *(_beside(level[key], units) for key in ("against_previous", "against_first")),
                str(level["n"]),
                rate(level["options"]["lr"]) + (" (edge)" if level["at_edge"] else ""),
            ]
            for level in board["levels"]
        ]
        heads = ["", f"test {units.name}", "against the level before", "against HVAdam⁰", "n", "lr"]
        told.append(f"**{title(board)}, {board['steps']:,} steps**\n\n{table(heads, rows)}")
    return "\n\n".join(told)


def awakening(content: Content) -> str:
    """Whether the hidden step grew large enough to matter, and when."""
    found = [
        (f"{title(board)}, {board['steps']:,} steps", board["hidden"])
        for board in content["tasks"]
        if board["hidden"]
    ]
    found += [
        (f"{title(board)}, {board['steps']:,} steps (ablation)", level["hidden"])
        for board in content["ablation"]
        for level in board["levels"]
        if level["name"] == OURS and level["hidden"]
    ]
    if not found:
        return ""
    runs, woke = (sum(one[key] for _, one in found) for key in ("runs", "woke"))
    rows = [
        [
            about,
            f"{one['gain']:.2g}",
            f"{one['woke']} of {one['runs']}",
            f"{one['step']:,.0f}" if one["step"] is not None else "–",
            f"{one['restarts']:g}",
        ]
        for about, one in found
    ]
    heads = ["", "gain at the end", "runs with a gain of 1", "first seen at step", "restarts"]
    return (
        f"{prose.GAIN.strip()} It was seen there in {woke} of {runs} runs of HVAdam.\n\n"
        f"{table(heads, rows)}\n\nMedians over seeds, at the evaluations."
    )


def options(content: Content) -> str:
    """Which values of gamma, eps and hidden_scale were best, and whether the default is one."""
    told: list[str] = []
    for option, found in content["options"].items():
        tasks, default = found["tasks"], f"{found['default']:g}"
        heads = [f"`{option}`", *(f"`{task}`" for task in tasks), "worst", "best or tied"]
        rows = [
            [
                f"{name} (default)" if name == default else name,
                *(short(one["short"][task]) for task in tasks),
                short(one["worst"]),
                f"{one['tied']} of {len(tasks)}",
            ]
            for name, one in found["values"].items()
        ]
        told.append(f"{on_option(option, found)}\n\n{table(heads, rows)}")
    if told:
        told.insert(0, "How far the best learning rate's run is from the best of its map:")
    usual = content["headline"]["usual"]
    if any(usual.values()):
        told.append(
            "On all tasks, with fresh seeds: the default HVAdam against the one with the usual "
            f"values (gamma 0, eps 1e-16) {counted(usual)}."
        )
    return "\n\n".join(told)


def on_option(option: str, found: Content) -> str:
    """One sentence on an option, by what the maps say.

    Example:
        >>> on_option("gamma", {"default": 0.5, "tasks": ["a"], "everywhere": ["0.5", "1"]})
        '**gamma**: best or tied on all of 1 task: 0.5 and 1. The default, 0.5, is among them.'
    """
    default, total = f"{found['default']:g}", len(found["tasks"])
    tasks = f"{total} task{'s' * (total != 1)}"
    if not found["everywhere"]:
        return f"**{option}**: no value is best or tied on all of {tasks}."
    among = "is among them" if default in found["everywhere"] else "**is not** among them"
    return (
        f"**{option}**: best or tied on all of {tasks}: {listed(found['everywhere'])}. "
        f"The default, {default}, {among}."
    )


def rates(content: Content) -> str:
    """What each learning rate costs HVAdam, over the tasks."""
    found = content["rates"]["by_rate"]
    if not found:
        return ""
    default = f"{optimizers.get(OURS).defaults['lr']:g}"
    rows = [
        [
            rate(float(lr)) + (" (default)" if lr == default else ""),
            f"{one['best']} of {one['tasks']}",
            short(one["median"]),
            short(one["worst"]),
        ]
        for lr, one in found.items()
    ]
    at = found.get(default)
    said = (
        f"**lr**: the default, {rate(float(default))}, was HVAdam's best on {at['best']} of "
        f"{at['tasks']} task{'s' * (at['tasks'] != 1)}; over the tasks it costs "
        f"{short(at['median'])} in the median."
        if at
        else ""
    )
    heads = ["`lr`", "best on", "short of the best: median", "worst"]
    return f"{said}\n\n{table(heads, rows)}"


def cost(content: Content) -> str:
    """Time and memory."""
    measured, parts = content["speed"], []
    if measured:
        shapes = measured["shapes"]
        of = shapes[0]["contenders"]
        sizes = {name: of[name]["bytes"] for name in of}
        parts.append(
            prose.COST.format(
                ours=sizes.get("HVAdam native", 12),
                theirs=sizes.get("Adam fused", 8),
                half=sizes.get("HVAdam native, bf16 state", 6),
                cpu=measured["cpu"],
                threads=measured["threads"],
                plural="s" * (measured["threads"] != 1),
            ).strip()
        )
        rows = [
            [about, *(_ratio(shape["contenders"].get(name)) for shape in shapes)]
            for name, about in TIMED.items()
            if name in of
        ]
        parts.append(table(["", *(shape["title"] for shape in shapes)], rows))
    found = [
        (title(board), board["entries"][OURS]["pace"])
        for board in content["tasks"]
        if OURS in board["entries"] and board["entries"][OURS]["pace"]
    ]
    if found:
        middle = median(pace["median"] for _, pace in found)
        parts.append(
            "**Time of a whole training step** over that of `torch.optim.Adam` as it is by "
            f"default, paired by seed: {middle:.2f} in the median task. The machine was shared "
            "with other work while these ran, so take them as rough."
        )
        rows = [[name, f"{_ratio3(pace)}", str(pace["n"])] for name, pace in found]
        parts.append(table(["", "HVAdam / Adam", "n"], rows))
    head = [] if measured or not parts else ["## What it costs"]
    return "\n\n".join([*head, *parts])


def elsewhere(content: Content) -> str:
    """The toy functions and the theorems, in a line each."""
    lines: list[str] = []
    for claim, words in (content["valley"] or {}).items():
        said = "; ".join(f"{word} on {', '.join(names)}" for word, names in words.items())
        lines.append(
            f"- *HVAdam has the {claim}*: {said}."
            if "lowest" in claim
            else f"- *HVAdam is {claim}*: {said}."
        )
    theory = "".join(f"- {line}.\n" for line in content["theory"] or ())
    parts = ["## Toy functions and theorems"]
    if lines:
        parts.append("From hundreds of starts ([the valley](valley.md)):\n\n" + "\n".join(lines))
    if theory:
        parts.append("Of the cases measured ([the theorems](theory.md)):\n\n" + theory.strip())
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _beside(found: Content | None, units: Units) -> str:
    return f"{difference(found, units)} {standing(found)}" if found else ""


def _share(one: Content) -> str:
    ends = [one["difference"], one["low"], one["high"]]
    middle, low, high = (math.nan if end is None else 1 + float(end) for end in ends)
    if math.isnan(middle):
        return "–"
    return f"{_times(middle)} [{_times(low)}, {_times(high)}]"


def _times(x: float) -> str:
    return "never" if math.isinf(x) else f"{x:.2f}"


def _ratio(one: Content | None) -> str:
    return f"{one['median']:.2f} [{one['q1']:.2f}, {one['q3']:.2f}]" if one else "–"


def _ratio3(one: Content) -> str:
    return f"{one['median']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"
