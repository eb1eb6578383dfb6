"""``docs/findings.md`` out of ``results/evidence.json``: numbers read, verdicts computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam.bench import stats
from hvadam.bench.findings import prose, sections
from hvadam.bench.findings.claims import MISSING, UNTESTED
from hvadam.bench.findings.maps import CLEAR
from hvadam.bench.findings.measures import ADAMW
from hvadam.bench.findings.words import (
    counted,
    duel,
    label,
    listed,
    percent,
    rate,
    table,
    title,
    units_of,
    value,
    wrapped,
)
from hvadam.bench.report.looks import OURS, REFERENCE
from hvadam.bench.report.tables import escape
from hvadam.bench.search import EXTENSIONS

Content = Mapping[str, Any]
# The name that a claim has for its figure -> the heading under which it stands.
ANCHORS = {
    "against Adam": "hvadam-beside-adam",
    "curves": "on-the-way",
    "ablation": "the-parts-of-the-method",
    "generators": "generators",
}


def render(content: Content) -> str:
    """The whole page, as Markdown beside a folder ``figures``."""
    parts = [_opening(content), _claims(content)]
    if content["tasks"]:
        parts += [prose.BESIDE, _beside(content["tasks"]), where_it_helps(content["tasks"])]
        parts += [prose.CURVES.format(evaluations=_evaluations(content)), sections.sooner(content)]
        parts.append(sections.awakening(content))
        parts += [prose.SENSITIVITY, sections.sensitivity(content)]
    if content["ablation"]:
        parts += [prose.ABLATION, sections.ablation(content)]
    parts.append("## Which options" if not content["maps"] else prose.MAPS.format(clear=CLEAR))
    parts += [sections.options(content), sections.rates(content)]
    if content["generative"]:
        seeds, trials = (
            max(board[key] for board in content["generative"]) for key in ("seeds", "trials")
        )
        parts.append(prose.GENERATORS.format(seeds=seeds, trials=trials, extensions=EXTENSIONS))
        parts += [every_entry(board) for board in content["generative"]]
    parts += [sections.cost(content), sections.elsewhere(content)]
    if content["tasks"]:
        parts += ["## Every task", *map(every_entry, content["tasks"])]
    parts += [prose.CARE, _unfinished(content)]
    return wrapped("\n\n".join(part.strip() for part in parts if part.strip())) + "\n"


def headline(content: Content) -> str:
    """The answer in a few sentences."""
    counts = content["headline"]
    if not content["tasks"]:
        return "No task is finished yet, so there is no answer yet."
    said = [
        f"With all optimizers tuned alike, on small tasks: against Adam, HVAdam "
        f"{counted(counts['adam'])}."
    ]
    if any(counts["adamw"].values()):
        said.append(f"Against AdamW, it {counted(counts['adamw'])}.")
    said.append(
        f"Against the best other contender of each task, it {counted(counts['best other'])}."
    )
    if any(counts["no hidden step"].values()):
        said.append(
            f"Against itself without the hidden step, it {counted(counts['no hidden step'])}."
        )
    return " ".join(said)


def where_it_helps(boards: Sequence[Content]) -> str:
    """Where HVAdam is ahead of Adam, by how much, and where it is behind."""
    groups: dict[str, list[str]] = {"ahead": [], "behind": [], "unsettled": [], "tie": []}
    for board in boards:
        found = board["duels"].get(REFERENCE)
        if found:
            amount = "" if found["standing"] == "tie" else f" ({percent(found)})"
            groups[found["standing"]].append(f"{title(board)}{amount}")
    heads = {
        "ahead": "Where HVAdam is ahead of Adam",
        "behind": "Where it is behind",
        "unsettled": "Where it is unsettled",
        "tie": "Where they tie",
    }
    return "\n".join(
        f"- **{head}**: {'; '.join(groups[key]) or 'nowhere'}."
        for key, head in heads.items()
        if groups[key] or key in ("ahead", "behind")
    )


def every_entry(board: Content) -> str:
    """One task with everyone on it."""
    units = units_of(board)
    better = "less" if board["goal"] == "min" else "more"
    settles = 2 / 2 ** board["seeds"] <= stats.SETTLED
    rows: list[list[str]] = []
    for name, entry in board["entries"].items():
        text = value(entry, units)
        against = entry["against_adam"]
        beside = duel(board, against, name, REFERENCE) if against else ""
        lr = rate(entry["options"]["lr"]) if "lr" in entry["options"] else "–"
        rows.append(
            [
                label(name),
                f"**{text}**" if entry["tied"] and settles else text,
                "reference" if name == REFERENCE else beside,
                str(entry["n"]),
                lr + (" (edge)" if entry["at_edge"] else ""),
            ]
        )
    marked = "Bold: the best, and all that are not settled to be worse."
    if not settles:
        marked = f"None is bold: {board['seeds']} seeds settle nothing."
    elif not any(entry["tied"] for entry in board["entries"].values()):
        marked = "None is bold: it is not settled that anyone is worse."
    heads = ["", f"test {units.name}", "against Adam", "n", "lr chosen"]
    return (
        f"### {title(board)}\n\n`{board['task']}` ({escape(board['title'])}), "
        f"{board['steps']:,} steps; {better} is better. "
        f"Median and 95% interval over n seeds. {marked}\n\n{table(heads, rows)}"
    )


def _opening(content: Content) -> str:
    boards = [*content["tasks"], *content["generative"], *content["ablation"]]
    steps = sorted(board["steps"] for board in boards) or [0]
    main = content["tasks"] or boards
    return prose.OPENING.format(
        headline=headline(content),
        steps=f"{steps[0]:,} to {steps[-1]:,}" if steps[0] < steps[-1] else f"{steps[0]:,}",
        trials=_range(board["trials"] for board in main),
        seeds=_range(board["seeds"] for board in main),
        defaults=_defaults(content["defaults"]),
        provenance=(
            f"Behind it are {content['runs']:,} runs, {content['hours']:g} hours of training "
            f"({listed(content['machines'])}; torch {listed(content['versions']['torch'])}). The "
            f"numbers are in [results/evidence.json](../results/evidence.json). "
            + _cut(content["unfinished"])
        ).strip(),
    )


def _cut(unfinished: Sequence[Content]) -> str:
    if not unfinished:
        return "All that was planned is finished."
    return (
        f"**Not finished, and in no count: {len(unfinished)} "
        f"stud{'ies' if len(unfinished) > 1 else 'y'}**, listed [below](#not-finished)."
    )


def _defaults(found: Mapping[str, Sequence[float]]) -> str:
    said = [
        f"{name} {' or '.join(f'{v:g}' for v in values)}"
        for name, values in found.items()
        if values
    ]
    text = listed(said)
    if any(len(values) > 1 for values in found.values()):
        text += " (the defaults changed between runs)"
    return text


def _claims(content: Content) -> str:
    rows = [
        [one["claim"], one["where"], f"**{one['verdict']}**", _link(one, content)]
        for one in content["claims"]
    ]
    reasons = [f"- **{one['claim']}**: {one['why']}." for one in content["claims"] if one["why"]]
    return "\n\n".join(
        [
            prose.CLAIMS.strip(),
            table(["claim", "in the paper", "here", ""], rows),
            "Why:\n\n" + "\n".join(reasons),
            "The toy functions and the theorems have pages of their own: "
            "[the valley](valley.md), [the theorems](theory.md).",
        ]
    )


def _link(claim: Content, content: Content) -> str:
    drawn = {
        "against Adam": content["tasks"],
        "curves": content["tasks"],
        "ablation": content["ablation"],
        "generators": content["generative"],
    }
    told = claim["verdict"] not in (MISSING, UNTESTED) and drawn[claim["figure"]]
    return f"[figure](#{ANCHORS[claim['figure']]})" if told else ""


def _beside(boards: Sequence[Content]) -> str:
    """HVAdam, Adam, AdamW and the best of the others, with what is between them."""
    rows: list[list[str]] = []
    for board in boards:
        units, entries = units_of(board), board["entries"]
        best = board["best_other"]
        rows.append(
            [
                f"{title(board)}<br>{units.name}, {'↓' if board['goal'] == 'min' else '↑'}",
                *(value(entries[n], units) if n in entries else "–" for n in (OURS, REFERENCE)),
                *(_duel(board, name) for name in (REFERENCE, ADAMW)),
                f"{label(best)}: {_duel(board, best)}" if best else "–",
                str(entries[OURS]["n"]) if OURS in entries else "–",
            ]
        )
    heads = ["", "HVAdam", "Adam", "HVAdam − Adam", "HVAdam − AdamW", "HVAdam − best other", "n"]
    return table(heads, rows)


def _duel(board: Content, name: str) -> str:
    return duel(board, board["duels"].get(name), OURS, name)


def _unfinished(content: Content) -> str:
    if not content["unfinished"]:
        return ""
    rows = [
        [
            one["part"],
            f"`{one['task']}`{', ' + one['about'] if one['about'] else ''}",
            f"{one['entries']} of {one['of']}",
            f"{one['runs']:,}",
        ]
        for one in content["unfinished"]
    ]
    return (
        "## Not finished\n\nThese studies are cut: an entry's tuning is not done, or it has fewer "
        "seeds than planned. They are in no table, figure or count above. `make evidence` goes on "
        f"with them.\n\n{table(['part', 'task', 'entries finished', 'runs recorded'], rows)}"
    )


def _evaluations(content: Content) -> str:
    return _range(board["evaluations"] for board in content["tasks"])


def _range(counts: Iterable[int]) -> str:
    found = sorted(set(counts)) or [0]
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
