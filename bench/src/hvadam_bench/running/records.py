"""What a run left behind: one line of JSON with a checksum, alone in a file or packed with others.

Only this module knows where the records lie. A store is a folder to work in, in which files of
several machines are merged by copying,

    <store>/<task>-<scale>/<contender>/<key>.json       the record
    <store>/<task>-<scale>/<contender>/<key>/*.png      what it made to look at
    <store>/<task>-<scale>/<contender>/<key>.checkpoint while it is under way

and, where there is one, a folder of packed records to go on from:

    <packed>/<task>.jsonl.gz                            a record a line, in the order of their keys
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hvadam_bench.errors import RefusedError
from hvadam_bench.running.config import RunConfig
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


@dataclass(frozen=True)
class Point:
    """One evaluation on the way.

    Attributes:
        step: Batches seen, or for contenders with line searches evaluations of the loss; 0 is
            before training.
        examples: Examples seen.
        seconds: In training, without evaluations.
        train_loss: Mean over the batches since the last point.
        valid: What the task measured on the validation split.
        diagnostics: HVAdam's gain, the hidden part's share of the step, alignment and restarts,
            network by network; else empty.
    """

    step: int
    examples: int
    seconds: float
    train_loss: float | None
    valid: Mapping[str, float]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Decay:
    """The weight decay that a network was trained with.

    Attributes:
        kind: "coupled" joins the gradient, "decoupled" shrinks the weights beside the step.
        value: Its strength; 0 for "none".
    """

    kind: Literal["decoupled", "coupled", "none"]
    value: float


@dataclass(frozen=True)
class Record:
    """One run, with what of its task a reader needs: reports load no task and no framework."""

    config: RunConfig
    status: Status
    reason: str  # why it did not end as "done"; "" else
    curve: tuple[Point, ...]
    test: Mapping[str, float]  # measured once, at the end; empty if it did not get there
    train_seconds: float
    evaluation_seconds: float
    environment: Mapping[str, Any]  # versions, hardware, commit and whether it was dirty
    artifacts: tuple[str, ...] = ()  # names of files beside the record
    title: str = ""  # the task's, for people
    metric: str = "loss"  # the measure that counts, a key of `test` and of each point's `valid`
    goal: Literal["min", "max"] = "min"  # whether less or more of it is better
    published: float | None = None  # the paper's number, where the protocol is the same
    # The task's settings and the contender's options in full, as they were when it ran.
    basis: Mapping[str, Any] = field(default_factory=dict)
    study: str = ""  # the recipe or command that it was made for; "" for a single `hvadam run`
    role: Role = "judged"
    decay: Mapping[str, Decay] = field(default_factory=dict)  # by network, as it was really used
    test_parts: tuple[float, ...] = ()  # the metric over equal parts of the test split, if known
    gradient_evaluations: int = 0  # backward passes of losses, all networks together
    # Whether it had the machine to itself, so that its seconds can be compared; None if unknown.
    alone: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values; without what is not known, as records of before are written."""
        plain = {**asdict(self), "config": self.config.to_json()}
        for name, unknown in (("alone", None), ("test_parts", ())):
            if plain[name] == unknown:
                del plain[name]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Record:
        """Return the record of which `to_json` gave the plain values."""
        own = {
            "config": RunConfig.from_json(plain["config"]),
            "curve": tuple(Point(**point) for point in plain["curve"]),
            "artifacts": tuple(plain["artifacts"]),
            "test_parts": tuple(plain.get("test_parts", ())),
            "decay": {network: Decay(**decay) for network, decay in plain["decay"].items()},
        }
        return cls(**{**plain, **own})

    def to_line(self) -> str:
        """Return the record as one line of JSON, with a checksum in it."""
        plain = self.to_json()
        plain["checksum"] = _checksum(plain)
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Return the record that `to_line` wrote.

        Raises:
            ValueError: the line is none, or not as it was written.
        """
        try:
            plain = json.loads(line)
            if plain.pop("checksum", None) != _checksum(plain):
                raise ValueError("its checksum is wrong")
            return cls.from_json(plain)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


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

    def beside_checkpoints(self) -> Iterator[Record]:
        """Give the records that have a checkpoint beside them, or a draft of one.

        Raises:
            ValueError: such a record is damaged.
        """
        left = self.folder.glob("*/*/*.checkpoint*")
        names = {path.with_name(path.name.lstrip(".").partition(".")[0] + ".json") for path in left}
        yield from (_read(path) for path in sorted(names) if path.exists())

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

    def get(self, config: RunConfig) -> Record | None:
        """Return the record of a run, if there is one.

        Raises:
            ValueError: the record is damaged, or of another run.
        """
        path = self.path(config)
        if path.exists():
            record = _read(path)
            if record.config.key != config.key:
                raise _damaged(path, f"it is the record of {record.config.key}")
            return record
        return self._unpack(config.task).get(config.key)

    def put(self, record: Record, artifacts: Mapping[str, bytes] | None = None) -> None:
        """Keep a record: readers see the old one or the new one, never half of one."""
        for name, content in (artifacts or {}).items():
            write_atomically(self.artifacts_path(record.config) / name, content)
        write_atomically(self.path(record.config), record.to_line().encode())

    def __iter__(self) -> Iterator[Record]:
        """Give all records: those of the folder by their paths, then packed ones by task and key.

        Raises:
            ValueError: a record is damaged.
        """
        seen: set[str] = set()
        for path in sorted(self.folder.glob("*/*/*.json")):
            record = _read(path)
            seen.add(record.config.key)
            yield record
        files = sorted(self.packed.glob(f"*{PACKED}")) if self.packed else []
        for path in files:
            packed = self._unpack(path.name.removesuffix(PACKED))
            yield from (record for key, record in packed.items() if key not in seen)

    def pack(self) -> list[Path]:
        """Pack all records, a file for each task; returns the files.

        A crash at any moment leaves each of them as it was or as it is to be.
        """
        if self.packed is None:
            raise ValueError(f"{self.folder} has nowhere to pack to.")
        lines: dict[str, dict[str, str]] = {}
        for record in self:
            lines.setdefault(record.config.task, {})[record.config.key] = record.to_line()
        paths = {task: self.packed / f"{task}{PACKED}" for task in sorted(lines)}
        for task, path in paths.items():
            write_packed(path, [line for _, line in sorted(lines[task].items())])
        return list(paths.values())

    def _unpack(self, task: str) -> Mapping[str, Record]:
        path = self.packed / f"{task}{PACKED}" if self.packed else None
        if path is None or not path.exists():
            return {}
        about = path.stat()
        return _unpacked(path, (about.st_ino, about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=64)
def _unpacked(path: Path, version: tuple[int, ...]) -> Mapping[str, Record]:
    """Return the records of a packed file by their keys; read again once the file has changed."""
    try:
        records = [Record.from_line(line) for line in read_packed(path)]
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    return {record.config.key: record for record in records}


def _read(path: Path) -> Record:
    try:
        return Record.from_line(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    except OSError as error:  # a folder of that name, or somebody else's file
        raise RefusedError(f"{path} is no record ({error.strerror}); move it away.") from error


def _damaged(path: Path, why: str) -> RefusedError:
    way_out = (
        "restore it (git checkout) or delete it and run again"
        if path.name.endswith(PACKED)
        else "delete it and run again"
    )
    return RefusedError(f"{path} is damaged ({why}); {way_out}.")


def _checksum(plain: Mapping[str, Any]) -> str:
    """Return a hash of plain values, whatever their order and however they are written."""
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
