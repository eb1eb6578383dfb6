"""What a run left behind: one JSON file each, written in one go, merged by copying files.

Only this module knows where the files lie:

    <store>/<task>-<scale>/<contender>/<key>.json       the record
    <store>/<task>-<scale>/<contender>/<key>/*.png      what it made to look at
    <store>/<task>-<scale>/<contender>/<key>.checkpoint while it is under way
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hvadam.bench.config import RunConfig

# done: ran to the end. collapsed: so did this, with samples that are all alike. diverged: the loss
# left all bounds. pruned: stopped early as hopeless. failed, out_of_memory, disk_full: did not get
# there, for the reason given; run again by a resume.
Status = Literal["done", "collapsed", "diverged", "pruned", "failed", "out_of_memory", "disk_full"]
FINAL: tuple[Status, ...] = ("done", "collapsed", "diverged", "pruned")
# Those with something to show for it: all steps taken and the test measured.
MEASURED: tuple[Status, ...] = ("done", "collapsed")


@dataclass(frozen=True)
class Point:
    """One evaluation on the way.

    Attributes:
        step: Batches seen; 0 is before training.
        examples: Examples seen.
        seconds: In training, without evaluations.
        train_loss: Mean over the batches since the last point.
        valid: What the task measured on the validation split.
        diagnostics: HVAdam's gain, alignment and restarts, network by network; else empty.
    """

    step: int
    examples: int
    seconds: float
    train_loss: float | None
    valid: Mapping[str, float]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


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

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "config": self.config.to_json()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Record:
        """What `to_json` gave."""
        curve = tuple(Point(**point) for point in plain["curve"])
        own = {"config": RunConfig.from_json(plain["config"]), "curve": curve}
        return cls(**{**plain, **own, "artifacts": tuple(plain["artifacts"])})


class Store:
    """A folder of records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, config: RunConfig) -> Path:
        """Where the record of a run lies."""
        return (
            self.folder / f"{config.task}-{config.scale}" / config.contender / f"{config.key}.json"
        )

    def checkpoint_path(self, config: RunConfig) -> Path:
        """Where a run that is under way keeps what it needs to go on after a crash."""
        return self.path(config).with_suffix(".checkpoint")

    def artifacts_path(self, config: RunConfig) -> Path:
        """The folder of what a run made to look at, if it made any."""
        return self.path(config).with_suffix("")

    def get(self, config: RunConfig) -> Record | None:
        """The record of a run, if there is one."""
        path = self.path(config)
        return _read(path) if path.exists() else None

    def put(self, record: Record, artifacts: Mapping[str, bytes] | None = None) -> None:
        """Keep a record: readers see the old one or the new one, never half of one."""
        path = self.path(record.config)
        for name, content in (artifacts or {}).items():
            write_atomically(self.artifacts_path(record.config) / name, content)
        text = json.dumps(record.to_json(), allow_nan=False)
        write_atomically(path, text.encode())

    def __iter__(self) -> Iterator[Record]:
        """All records, in the order of their paths."""
        for path in sorted(self.folder.glob("*/*/*.json")):
            yield _read(path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one.

    Drafts that others left are cleared away: they were killed, or are about to write what is there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            draft.replace(path)
        except FileNotFoundError:  # cleared away by who wrote the file just now
            if not path.exists():
                raise
        for left in path.parent.glob(glob.escape(f".{path.name}.") + "*"):
            left.unlink(missing_ok=True)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> Record:
    try:
        return Record.from_json(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"hvadam.bench.records: {path} is not a record ({error}); delete it and run again."
        ) from error
