"""The code that a record was made with: a user's task or contender changes between runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hvadam_bench import contenders, tasks
from hvadam_bench.registry import Source
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Contents, Record


def sources_of(config: RunConfig) -> dict[str, Source]:
    """Return where the task and the contender of a run come from, as far as they are a user's."""
    found = {"task": tasks.source(config.task), "contender": contenders.source(config.contender)}
    return {what: source for what, source in found.items() if source is not None}


def recorded_code(record: Record) -> dict[str, str]:
    """Return the hashes of the code that a record was made with, of what is a user's."""
    code = record.basis.get("code")
    return {what: str(own) for what, own in code.items()} if isinstance(code, dict) else {}


def changed_files(record: Record) -> list[str]:
    """Return the files that have changed since a record was made, by their names."""
    before = recorded_code(record)
    now = sources_of(record.config)
    files = [Path(own.where).name for what, own in now.items() if before.get(what) != own.code]
    return list(dict.fromkeys(files))


def current(contents: Contents) -> tuple[list[Record], list[str]]:
    """Return the records to show of a store, and in words what is not shown or not alike.

    Records of a user's task or contender whose file is another today are left out, and so are
    those that do not measure what most records of their task do. Where the file is not known here,
    records of several versions of it are shown, and said to be.
    """
    said = [str(one) for one in contents.unreadable]
    shown: list[Record] = []
    old: Counter[tuple[str, str]] = Counter()
    versions: dict[tuple[str, str], Counter[str]] = {}
    metrics: dict[str, Counter[str]] = {}
    for record in contents.records:
        metrics.setdefault(record.config.task, Counter())[record.metric] += 1
    for record in contents.records:
        task = record.config.task
        usual = metrics[task].most_common(1)[0][0]
        if files := changed_files(record):
            old[task, f"made by another version of {' and '.join(files)}"] += 1
            continue
        if record.metric != usual:
            old[task, f"judged by {record.metric!r}, where most are by {usual!r}"] += 1
            continue
        shown.append(record)
        for what, code in recorded_code(record).items():
            name = getattr(record.config, what, "")
            versions.setdefault((what, name), Counter())[code] += 1
    for (task, why), n in old.items():
        said.append(f"{told(n, task)} {why}: left out; sweep to make them again.")
    for (what, name), counts in versions.items():
        if len(counts) > 1:
            parts = ", ".join(str(n) for n in sorted(counts.values(), reverse=True))
            said.append(
                f"the records of the {what} {name} are of {len(counts)} versions of its code "
                f"({parts}): name its folder with --plugins to see those of today's alone."
            )
    return shown, said


def told(n: int, task: str) -> str:
    """Return how many records of a task, with their verb.

    Example:
        >>> told(1, "sines"), told(3, "sines")
        ('1 record of sines was', '3 records of sines were')
    """
    return f"{n:,} record of {task} was" if n == 1 else f"{n:,} records of {task} were"
