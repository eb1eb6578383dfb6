"""The one loop that trains any contender on any task, and survives what happens on the way.

Example:
    >>> import tempfile
    >>> from hvadam_bench.running.config import RunConfig
    >>> from hvadam_bench.running.records import Store
    >>> config = RunConfig("digits_mlp", "adam", scale="smoke", options={"lr": 1e-3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = run(config, Store(Path(folder)))
    >>> record.status, len(record.curve), record.curve[-1].valid["accuracy"] > 50
    ('done', 11, True)
"""

from __future__ import annotations

import errno
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from hvadam.info import versions
from hvadam_bench import tasks
from hvadam_bench.registry import RefusedError
from hvadam_bench.running import checkpoints, machine
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import locked
from hvadam_bench.running.options import basis_of
from hvadam_bench.running.records import (
    FINAL,
    Point,
    Record,
    Role,
    Status,
    Store,
    UnreadableError,
)
from hvadam_bench.running.sources import changed_files
from hvadam_bench.running.training import DivergedError, Training

CHECKPOINT_SECONDS = 30.0


class PrunedError(Exception):
    """Raised by a watcher's `evaluated` to end a run as hopeless, with the reason."""


class Watcher:
    """See a run while it runs. This class looks away: override the events of interest."""

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        """See a run of so many steps begin, or go on after a crash from `step` and `curve`."""

    def stepped(self, step: int, loss: float) -> None:
        """See that so many batches are done. Called after every one, so be quick."""

    def evaluated(self, point: Point) -> None:
        """See a new point of the curve. May raise `PrunedError`."""

    def ended(self, record: Record) -> None:
        """See that the run is over and recorded."""


def run(
    config: RunConfig,
    store: Store,
    *,
    study: str = "",
    role: Role = "judged",
    watcher: Watcher | None = None,
    threads: int = 1,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Record:
    """Train, evaluate on the way, test at the end, and keep the record.

    A run that came to an end is not run again, unless a default or the code of its task or
    contender has changed since. One that was interrupted goes on from its last checkpoint, to the
    same bits as one that never was, on the same machine with as many threads. Settings of torch and
    the random generators of the process are left as they were.

    Args:
        config: What to do.
        store: Where the record, and the checkpoints on the way, go.
        study: The recipe or command that the run is made for.
        role: What the run is made for: to choose options, or to judge them.
        watcher: What sees the progress.
        threads: How many torch may use.
        checkpoint_seconds: From one checkpoint to the next; evaluations make one too.

    Returns:
        The record; its status tells how the run ended.

    Raises:
        ValueError, TypeError: the run cannot start as configured; nothing is recorded.
        BusyError: another process makes the same run; it is a ValueError.
        OSError: the record cannot be written.
        KeyboardInterrupt: interrupted, after a checkpoint.
    """
    path = store.checkpoint_path(config)
    lock = checkpoints.lock_path(path)
    who = f"{config.task} {config.entrant} seed {config.seed}"
    if (known := recorded(config, store)) is not None:
        checkpoints.remove(path)  # left by a kill after the record was written
        return known
    watcher = watcher or Watcher()
    training: Training | None = None
    test: Mapping[str, float] = {}
    with ExitStack() as claim:
        if held := lock.exists():  # by another process, or by one that was killed
            claim.enter_context(locked(lock, who))
        with reproducible(threads), checkpoints.isolated(config.seed), _interrupts() as interrupted:
            about = machine.describe()
            # Plain strings, for torch's own is of a class that a checkpoint may not hold.
            made_with = {name: str(v) for name, v in versions().items()} | {"threads": threads}
            # What a checkpoint must be of, to be gone on with.
            identity: dict[str, Any] = {"config": config.to_json(), "basis": basis_of(config)}
            identity["made_with"] = made_with
            try:
                training = Training(config)
                if not held:  # only now: what cannot start leaves nothing
                    claim.enter_context(locked(lock, who))
                if (known := recorded(config, store)) is not None:  # by another, just now
                    return known
                training = _resumed(training, path, identity)
                watcher.started(config, training.problem.steps, training.step, training.curve)

                def save(training: Training) -> None:
                    checkpoints.save(path, {**identity, "training": training.state_dict()})

                _train(training, watcher, save, checkpoint_seconds, interrupted)
                test = training.test()
                status, reason = _end(training, test)
            except RefusedError:
                raise
            except SystemExit as error:  # of a user's code, which would end all without a word
                code = "" if error.code is None else repr(error.code)
                why = f"{config.task} or {config.contender} called sys.exit({code})"
                status, reason = "failed", why
                if training is None:
                    raise RefusedError(f"{reason}.") from error
            except Exception as error:
                status, reason = _status(error)
                if training is None and status == "failed":
                    raise
        record = _record(config, training, status, reason, test, about)
        record = replace(record, study=study, role=role)
        _keep(record, training.artifacts if training else {}, store)
        if status in FINAL:
            checkpoints.remove(path)
    watcher.ended(record)
    if interrupted.is_set():  # too late to matter to this run, but not to its caller
        raise KeyboardInterrupt
    return record


def is_over(record: Record) -> bool:
    """Tell whether a run need not run again: it ended, and the same run would be no other today."""
    try:
        return record.status in FINAL and record.basis == basis_of(record.config)
    except ValueError:  # its task has no such setting or scale any more
        return False


def recorded(config: RunConfig, store: Store) -> Record | None:
    """Return the record that makes a run unnecessary; None if the run is to be made, or again."""
    try:
        record = store.get(config)
    except UnreadableError:
        return None
    return record if record is not None and is_over(record) else None


def discarded(config: RunConfig, store: Store) -> str:
    """Return which record of a run does not count, and why, in words; nothing if none is there."""
    try:
        record = store.get(config)
    except UnreadableError as error:
        return error.fault
    if record is None or record.status not in FINAL or is_over(record):
        return ""
    return f"{store.where(config)} was {outdated(record)}"


def outdated(record: Record) -> str:
    """Return what a record was made with that is no more, in words."""
    if files := changed_files(record):
        return f"made by another version of {' and '.join(files)}"
    return "made with other settings or options by default"


def _resumed(training: Training, path: Path, identity: Mapping[str, Any]) -> Training:
    """Return a training from its checkpoint, if there is one of this very run."""
    config = training.config
    content = checkpoints.load(path)
    if content is None:
        return training
    try:
        foreign = _differences(content, identity)
        if not foreign:
            training.load_state_dict(content["training"])
            return training
        why = f"is of another run ({foreign})"
    except Exception as error:  # it may hold anything
        why = f"does not fit ({_one_line(error)})"
    warnings.warn(f"{path} {why}: the run starts over.", stacklevel=3)
    checkpoints.set_seed(config.seed)
    return Training(config)


def _differences(content: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """Return in what a checkpoint is of another run, in words; nothing if it is of this one."""
    said: list[str] = []
    for part, own in identity.items():
        theirs = content.get(part, {})
        for key in sorted({*own, *theirs}):
            if theirs.get(key) != own.get(key):
                said.append(f"{key} {theirs.get(key)!r}, not {own.get(key)!r}")
    return "; ".join(said)


def _train(
    training: Training,
    watcher: Watcher,
    save: Callable[[Training], None],
    checkpoint_seconds: float,
    interrupted: threading.Event,
) -> None:
    """Train from where the training is to its last step."""
    if not training.curve:
        watcher.evaluated(training.evaluate())
    saved = perf_counter()
    while training.step < training.problem.steps:
        watcher.stepped(training.step + 1, training.advance())
        evaluates = training.step in training.points
        if evaluates:
            watcher.evaluated(training.evaluate())
        if evaluates or interrupted.is_set() or perf_counter() - saved > checkpoint_seconds:
            save(training)
            saved = perf_counter()
        if interrupted.is_set():
            raise KeyboardInterrupt


@contextmanager
def reproducible(threads: int) -> Iterator[None]:
    """Enter a context of deterministic algorithms and so many threads; torch is then as it was."""
    memory: Any = torch.utils.deterministic  # a module whose class is swapped on import
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        memory.fill_uninitialized_memory,
    )
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # costs time, and nobody reads what it fills
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
        memory.fill_uninitialized_memory = before[3]


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Enter a context in which Ctrl-C sets an event, because nothing can be saved in mid-step.

    A second Ctrl-C interrupts at once.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # where no signal arrives
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _record(
    config: RunConfig,
    training: Training | None,  # None if memory ran out before there was one
    status: Status,
    reason: str,
    test: Mapping[str, float],
    about: Mapping[str, Any],
) -> Record:
    task = tasks.get(config.task)
    # Published numbers are of the published protocol, quirks included, and of no other.
    protocol = "inherited" if "inherited" in task.protocols else "standard"
    same = config.scale == "paper" and config.protocol == protocol and not config.settings
    record = Record(
        *(config, status, reason, (), test, 0.0, 0.0, about),
        title=task.title,
        metric=task.metric,
        goal=task.goal,
        published=task.published.get(config.entrant) if same else None,
        published_from=task.published_from if same else "",
        basis=basis_of(config),
    )
    if training is None:
        return record
    return replace(
        record,
        curve=tuple(training.curve),
        train_seconds=training.train_seconds,
        evaluation_seconds=training.evaluation_seconds,
        artifacts=tuple(training.artifacts),
        test_parts=training.test_parts,
        decay=training.decay,
        gradient_evaluations=training.gradient_evaluations,
        alone=training.alone,
    )


def _end(training: Training, test: Mapping[str, float]) -> tuple[Status, str]:
    """Return how a run that got to its last step ended."""
    if not training.problem.collapsed(test):
        return "done", ""
    since = training.step
    for point in reversed(training.curve):
        if not training.problem.collapsed(point.valid):
            break
        since = point.step
    when = f"from step {since} to the end" if since else "and never were anything else"
    return "collapsed", f"the samples are all alike, {when}."


def _status(error: Exception) -> tuple[Status, str]:
    """Return what an exception says of the run."""
    reason = _one_line(error)
    if isinstance(error, DivergedError):
        return "diverged", str(error)
    if isinstance(error, PrunedError):
        return "pruned", str(error)
    # The allocator of CPUs has no class of error of its own.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate mem" in reason:
        return "out_of_memory", reason
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk_full", reason
    return "failed", reason


def _keep(record: Record, artifacts: Mapping[str, bytes], store: Store) -> None:
    try:
        store.put(record, artifacts)
    except OSError as error:
        path = store.path(record.config)
        raise OSError(
            error.errno,
            f"cannot write {path}: {error.strerror}; the run was "
            f"{record.status}. Make room and run the same again: it goes on from its checkpoint.",
        ) from error


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
