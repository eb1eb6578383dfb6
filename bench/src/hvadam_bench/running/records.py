"""What a run left behind: one line of JSON with a checksum, alone in a file or packed with others.

Only this module knows where the records lie. A store is a folder to work in, in which files of
several machines are merged by copying,

    <store>/<task>-<scale>/<contender>/<key>.json       the record
    <store>/<task>-<scale>/<contender>/<key>/*.png      what it made to look at
    <store>/<task>-<scale>/<contender>/<key>.checkpoint while it is under way
    <store>/<task>-<scale>/reference.txt                whom the last sweep compared with

and, where there is one, a folder of packed records to go on from:

    <packed>/<task>.jsonl.gz                            a record a line, in the order of their keys
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hvadam._version import __version__
from hvadam_bench.registry import RefusedError
from hvadam_bench.running.checking import Count, Name, parse, read, to_line
from hvadam_bench.running.config import RunConfig, key_of
from hvadam_bench.running.files import read_packed, write_atomically, write_packed

# done: ran to the end. collapsed: so did this, with samples that are all alike. diverged: the loss
# left all bounds. pruned: stopped early as hopeless. failed, out_of_memory, disk_full: did not get
# there, for the reason given; run again by a resume.
Status = Literal["done", "collapsed", "diverged", "pruned", "failed", "out_of_memory", "disk_full"]
FINAL: tuple[Status, ...] = ("done", "collapsed", "diverged", "pruned")
# Those with something to show for it: all steps taken and the test measured.
MEASURED: tuple[Status, ...] = ("done", "collapsed")
# tuning: made to choose options. judged: made to judge them.
Role = Literal["tuning", "judged"]
PACKED = ".jsonl.gz"
REFERENCE_NOTE = "reference.txt"
BROKEN = "line"  # in place of the key of what is damaged


@dataclass(frozen=True)
class Point:
    """One evaluation on the way."""

    step: Count  # batches seen, or evaluations of the loss by line searches; 0 is before training
    examples: Count
    seconds: float  # in training, without evaluations
    train_loss: float | None  # mean over the batches since the last point
    valid: Mapping[str, float]  # what the task measured on the validation split
    # HVAdam's gain, the hidden part's share of the step, alignment and restarts, by network.
    diagnostics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Decay:
    """The weight decay that a network was trained with, and its strength."""

    # "coupled" joins the gradient, "decoupled" shrinks the weights apart from the step.
    kind: Literal["decoupled", "coupled", "none"]
    value: float


@dataclass(frozen=True)
class Record:
    """One run, with what of its task a reader needs: reports load no task and no framework."""

    config: RunConfig
    status: Status
    reason: str  # why it did not end as "done", or ""
    curve: tuple[Point, ...]
    test: Mapping[str, float]  # measured once, at the end; empty if it did not get there
    train_seconds: float
    evaluation_seconds: float
    environment: Mapping[str, Any]  # versions, hardware, commit and whether it was dirty
    artifacts: tuple[Name, ...] = ()  # of files beside the record
    title: str = ""  # the task's, for people
    metric: str = "loss"  # the measure that counts, a key of `test` and of each point's `valid`
    goal: Literal["min", "max"] = "min"  # whether less or more of it is better
    published: float | None = None  # the paper's number, where the protocol is the same
    published_from: str = ""  # where such numbers are from
    # The task's settings and the contender's options in full, as they were when it ran.
    basis: Mapping[str, Any] = field(default_factory=dict)
    study: str = ""  # the recipe or command that it was made for; "" for a single `hvadam run`
    role: Role = "judged"
    decay: Mapping[str, Decay] = field(default_factory=dict)  # by network, as it was really used
    test_parts: tuple[float, ...] = ()  # the metric over equal parts of the test split, if known
    gradient_evaluations: Count = 0  # backward passes of losses, all networks together
    # Whether it had the machine to itself, so that its seconds can be compared; None if unknown.
    alone: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without those fields of later versions that say nothing."""
        plain = {**asdict(self), "config": self.config.to_json()}
        for name, unknown in (("alone", None), ("test_parts", ()), ("published_from", "")):
            if plain[name] == unknown:
                del plain[name]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Record:
        """Return the record of which `to_json` gave the plain values.

        What a newer version added is left out, what an older one did not know is as by default.

        Raises:
            ValueError: a value is not what it must be.
        """
        record: Record = read(cls, plain)
        unknown = sorted(set(plain["config"]) - {one.name for one in fields(RunConfig)})
        if unknown:
            raise ValueError(f"config has {', '.join(map(repr, unknown))}, which is not known here")
        if any(record.metric not in point.valid for point in record.curve):
            raise ValueError(f"curve has a point without {record.metric!r}, its metric")
        if record.status in MEASURED and not record.curve:
            raise ValueError(f"curve is empty, and its status is {record.status!r}")
        if record.status in MEASURED and record.metric not in record.test:
            raise ValueError(f"test has no {record.metric!r}, its metric")
        return record

    def to_line(self) -> str:
        """Return the record as one line of JSON, with a checksum in it."""
        return to_line(self.to_json())

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Return the record that `to_line` wrote.

        Raises:
            ValueError: the line is none, or not as it was written.
        """
        return cls.from_json(parse(line))


class UnreadableError(RefusedError):
    """A file, or a line of one, holds no record that can be used.

    Attributes:
        fault: Which, and why not, in words without a full stop.
    """

    def __init__(self, fault: str, way_out: str) -> None:
        super().__init__(f"{fault}; {way_out}.")
        self.fault = fault


class Contents(NamedTuple):
    """What can be read of a store, and what cannot."""

    records: list[Record]
    unreadable: list[UnreadableError]


class Store:
    """Records in a folder, with packed ones behind them.

    Args:
        folder: Where new records go.
        packed: Whose records count for what has no record in the folder, if given.
    """

    def __init__(self, folder: Path, packed: Path | None = None) -> None:
        self.folder = folder
        self.packed = packed

    def path(self, config: RunConfig) -> Path:
        """Return where the record of a run lies, or would."""
        return (
            self.folder / f"{config.task}-{config.scale}" / config.contender / f"{config.key}.json"
        )

    def checkpoint_path(self, config: RunConfig) -> Path:
        """Return where a run under way keeps what it needs to go on after a crash."""
        return self.path(config).with_suffix(".checkpoint")

    def artifacts_path(self, config: RunConfig) -> Path:
        """Return the folder of what a run made to look at, if it made any."""
        return self.path(config).with_suffix("")

    def samples(self, record: Record) -> dict[int, Path]:
        """Return the pictures that a run made and that are there, by step."""
        folder = self.artifacts_path(record.config)
        named = [re.fullmatch(r"samples-(\d+)\.png", name) for name in record.artifacts]
        found = {int(match[1]): folder / match[0] for match in named if match}
        return {step: path for step, path in found.items() if path.is_file()}

    def where(self, config: RunConfig) -> str:
        """Return where the record of a run is found, for people: a file, or a file and a key."""
        path = self.path(config)
        if self.packed is None or path.exists():
            return str(path.relative_to(self.folder))
        return f"{self.packed.name}/{config.task}{PACKED}, {config.key}"

    def reference(self, task: str, scale: str) -> str:
        """Return whom the last sweep of a task compared with; "" if none says so."""
        path = self.folder / f"{task}-{scale}" / REFERENCE_NOTE
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    def note_reference(self, task: str, scale: str, reference: str) -> None:
        """Keep whom a sweep of a task compares with, for reports."""
        path = self.folder / f"{task}-{scale}" / REFERENCE_NOTE
        write_atomically(path, f"{reference}\n".encode())

    def get(self, config: RunConfig) -> Record | None:
        """Return the record of a run, if there is one.

        Raises:
            UnreadableError: what should be the record cannot be read.
            RefusedError: the packed file that may hold it is damaged.
        """
        path = self.path(config)
        if path.exists():
            found = _read(path)
        else:
            packed = self._unpack(config.task)
            found = packed.get(config.key)
            for key, broken in packed.items():
                if found is None and key.startswith(BROKEN):  # it may be what is damaged
                    raise RefusedError(str(broken))
        if isinstance(found, UnreadableError):
            raise found.with_traceback(None)  # it may be kept, and raised again
        return found

    def put(self, record: Record, artifacts: Mapping[str, bytes] | None = None) -> None:
        """Keep a record: readers see the old one or the new one, never half of one.

        One that came to an end is kept in place of one that did not, whoever writes last. What
        lies in its place and cannot be read is moved aside.
        """
        path = self.path(record.config)
        try:
            known = self.get(record.config)
        except UnreadableError:
            known = None
            if path.exists():
                path.replace(path.with_name(f"{path.name}.unreadable"))
        if known is not None and _is_less(record, known):
            return
        for name, content in (artifacts or {}).items():
            write_atomically(self.artifacts_path(record.config) / name, content)
        write_atomically(path, record.to_line().encode())

    def __iter__(self) -> Iterator[Record]:
        """Give all records: those of the folder by their paths, then packed ones by task and key.

        Raises:
            UnreadableError: one of them cannot be read.
        """
        records, unreadable = self.contents()
        for fault in unreadable:
            raise fault.with_traceback(None)  # it may be kept, and raised again
        yield from records

    def contents(self, tasks: Collection[str] | None = None) -> Contents:
        """Return all records that can be read, in the order of `iter`, and what else there is.

        Args:
            tasks: Which ones' records; all if None.
        """
        found = Contents([], [])
        for one in self._all(tasks):
            (found.unreadable if isinstance(one, UnreadableError) else found.records).append(one)  # pyright: ignore
        return found

    def pack(self) -> list[Path]:
        """Pack all records, a file for each task; returns the files.

        A crash at any moment leaves each of them as it was or as it is to be. Lines stay as they
        are, with what a newer version added. Files that cannot be read stay where they are.

        Raises:
            UnreadableError: a packed file is damaged.
        """
        if self.packed is None:
            raise ValueError(f"{self.folder} has nowhere to pack to.")
        lines: dict[str, dict[str, str]] = {}
        for path in sorted(self.packed.glob(f"*{PACKED}")):
            own = lines[path.name.removesuffix(PACKED)] = {}
            for key, plain in _lines_of(path).items():
                if isinstance(plain, UnreadableError):
                    raise plain
                own[key] = to_line(plain)
        for path in sorted(self.folder.glob("*/*/*.json")):
            if isinstance(record := _read(path), Record):
                text = to_line(parse(path.read_text(encoding="utf-8")))
                lines.setdefault(record.config.task, {})[path.stem] = text
        paths = {task: self.packed / f"{task}{PACKED}" for task in sorted(lines)}
        for task, path in paths.items():
            write_packed(path, [line for _, line in sorted(lines[task].items())])
        return list(paths.values())

    def _all(self, tasks: Collection[str] | None = None) -> Iterator[Record | UnreadableError]:
        seen: set[str] = set()
        folders = ["*"] if tasks is None else [f"{glob.escape(task)}-*" for task in tasks]
        for path in sorted(one for own in folders for one in self.folder.glob(f"{own}/*/*.json")):
            seen.add(path.stem)
            yield _read(path)
        files = sorted(self.packed.glob(f"*{PACKED}")) if self.packed else []
        for task in (path.name.removesuffix(PACKED) for path in files):
            packed = self._unpack(task) if tasks is None or task in tasks else {}
            yield from (found for key, found in packed.items() if key not in seen)

    def _unpack(self, task: str) -> Mapping[str, Record | UnreadableError]:
        path = self.packed / f"{task}{PACKED}" if self.packed else None
        if path is None or not path.exists():
            return {}
        about = path.stat()
        return _unpacked(path, (about.st_ino, about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=64)
def _unpacked(path: Path, version: tuple[int, ...]) -> Mapping[str, Record | UnreadableError]:
    """Return the records of a packed file by their keys; read again once the file has changed."""
    return {
        key: one if isinstance(one, UnreadableError) else _record(f"{path}, {key},", one)
        for key, one in _lines_of(path).items()
    }


def _lines_of(path: Path) -> dict[str, dict[str, Any] | UnreadableError]:
    """Return the plain values of a packed file by their keys.

    What is damaged, and so has no key, stands under `BROKEN` and its line.
    """
    try:
        lines = read_packed(path)
    except ValueError as error:
        return {BROKEN: _damaged(path, str(error))}
    found: dict[str, dict[str, Any] | UnreadableError] = {}
    for number, line in enumerate(lines, 1):
        try:
            plain = parse(line)
            found[key_of(plain["config"])] = plain
        except (ValueError, TypeError, KeyError) as error:
            found[f"{BROKEN} {number}"] = _damaged(path, f"line {number}: {error}")
    return found


def _read(path: Path) -> Record | UnreadableError:
    try:
        plain = parse(path.read_text(encoding="utf-8"))
        key = key_of(plain["config"])
    except (ValueError, TypeError, KeyError) as error:
        return _damaged(path, str(error))
    except OSError as error:  # a folder of that name, or somebody else's file
        raise RefusedError(f"{path} is no record ({error.strerror}); move it away.") from error
    if key != path.stem:
        return _damaged(path, f"it is the record of {key}")
    return _record(str(path), plain)


def _record(where: str, plain: Mapping[str, Any]) -> Record | UnreadableError:
    """Return the record of plain values that are as they were written, or why there is none."""
    try:
        return Record.from_json(plain)
    except ValueError as error:
        try:
            theirs = str(plain["environment"]["versions"]["hvadam"])
        except (KeyError, TypeError):
            theirs = "of an unknown version"
        reader = "" if theirs == __version__ else f" by {__version__}"
        fault = f"{where} was made by hvadam {theirs} and cannot be read{reader}: {error}"
        return UnreadableError(fault, "it is kept as it is")


def _damaged(path: Path, why: str) -> UnreadableError:
    way_out = (
        "restore it (git checkout) or delete it and run again"
        if path.name.endswith(PACKED)
        else "delete it and run again"
    )
    return UnreadableError(f"{path} is damaged ({why})", way_out)


def _is_less(record: Record, known: Record) -> bool:
    """Tell whether a record says less of a run than a known one, and must not replace it."""
    if known.status not in FINAL or record.status not in FINAL:
        return known.status in FINAL
    return record.status == "pruned" != known.status and record.basis == known.basis
