"""The one loop that trains any contender on any task, and survives what happens on the way.

Example:
    >>> import tempfile
    >>> from hvadam.bench.config import RunConfig
    >>> from hvadam.bench.records import Store
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
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from hvadam.bench import checkpoints, environment, tasks
from hvadam.bench.config import RunConfig
from hvadam.bench.info import versions
from hvadam.bench.records import FINAL, Point, Record, Status, Store
from hvadam.bench.training import DivergedError, Training, basis_of

CHECKPOINT_SECONDS = 30.0


class PrunedError(Exception):
    """Raised by a watcher's `evaluated` to end a run as hopeless, with the reason."""


class Watcher:
    """Who wants to see a run while it runs; this one looks away. Override what is of interest."""

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        """A run of so many steps begins, or goes on after a crash from `step` and `curve`."""

    def stepped(self, step: int, loss: float) -> None:
        """So many batches are done. Called after every one, so be quick."""

    def evaluated(self, point: Point) -> None:
        """The curve has a new point. May raise `PrunedError`."""

    def ended(self, record: Record) -> None:
        """The run is over and recorded."""


def run(
    config: RunConfig,
    store: Store,
    *,
    watcher: Watcher | None = None,
    threads: int = 1,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Record:
    """Train, evaluate on the way, test at the end, and keep the record.

    A run that is recorded as done, diverged or pruned is not run again, unless a default of its
    task or contender has changed since. One that was interrupted
    goes on from its last checkpoint, and its curve is that of a run that was never interrupted, to
    the last bit. The same configuration on the same machine with as many threads gives the same
    bits. Settings of torch and the random generators of the process are left as they were.

    Args:
        config: What to do.
        store: Where the record, and the checkpoints on the way, go.
        watcher: Who is told of the progress.
        threads: How many torch may use.
        checkpoint_seconds: From one checkpoint to the next; evaluations make one too.

    Returns:
        The record; its status tells how the run ended.

    Raises:
        ValueError, TypeError: the run cannot start as configured; nothing is recorded.
        OSError: the record cannot be written.
        KeyboardInterrupt: interrupted, after a checkpoint.
    """
    recorded = store.get(config)
    if recorded is not None and is_over(recorded):
        return recorded
    watcher = watcher or Watcher()
    path = store.checkpoint_path(config)
    training: Training | None = None
    test: Mapping[str, float] = {}
    with _reproducible(threads), checkpoints.isolated(config.seed), _interrupts() as interrupted:
        about = environment.describe()
        # Plain strings, for torch's own is of a class that a checkpoint may not hold.
        made_with = {name: str(v) for name, v in versions().items()} | {"threads": threads}
        try:
            training = _set_up(config, path, made_with)
            watcher.started(config, training.problem.steps, training.step, training.curve)

            def save(training: Training) -> None:
                content = {"made_with": made_with, "training": training.state_dict()}
                checkpoints.save(path, content)

            _train(training, watcher, save, checkpoint_seconds, interrupted)
            test = training.test()
            status, reason = _end(training, test)
        except Exception as error:
            status, reason = _status(error)
            if training is None and status == "failed":
                raise
    record = _record(config, training, status, reason, test, about)
    _keep(record, training.artifacts if training else {}, store)
    if status in FINAL:
        checkpoints.remove(path)
    watcher.ended(record)
    if interrupted.is_set():  # too late to matter to this run, but not to its caller
        raise KeyboardInterrupt
    return record


def is_over(record: Record) -> bool:
    """Whether a run need not run again: it came to an end, on what the same run would be today."""
    return record.status in FINAL and record.basis == basis_of(record.config)


def _set_up(config: RunConfig, path: Path, made_with: Mapping[str, Any]) -> Training:
    """The training, from its checkpoint if there is one that fits."""
    training = Training(config)
    content = checkpoints.load(path)
    if content is None:
        return training
    if content["made_with"] != made_with:
        why = f"is of {content['made_with']}, not of {made_with}"
    else:
        try:
            training.load_state_dict(content["training"])
        except Exception as error:
            why = f"does not fit ({_one_line(error)})"
        else:
            return training
    warnings.warn(f"{path} {why}: the run starts over.", stacklevel=3)
    checkpoints.set_seed(config.seed)
    return Training(config)


def _train(
    training: Training,
    watcher: Watcher,
    save: Callable[[Training], None],
    checkpoint_seconds: float,
    interrupted: threading.Event,
) -> None:
    """From where the training is to its last step."""
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
def _reproducible(threads: int) -> Iterator[None]:
    """Torch with deterministic algorithms and so many threads; on leaving, as it was."""
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
    """A context in which Ctrl-C sets the event, for in mid-step there is nothing to save.

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
    return Record(
        config=config,
        status=status,
        reason=reason,
        curve=tuple(training.curve) if training else (),
        test=test,
        train_seconds=training.train_seconds if training else 0.0,
        evaluation_seconds=training.evaluation_seconds if training else 0.0,
        environment=about,
        artifacts=tuple(training.artifacts) if training else (),
        title=task.title,
        metric=task.metric,
        goal=task.goal,
        published=task.published.get(config.entrant) if same else None,
        basis=basis_of(config),
    )


def _end(training: Training, test: Mapping[str, float]) -> tuple[Status, str]:
    """How a run that got to its last step ended."""
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
    """What an exception says of the run."""
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
            f"hvadam.bench.runner: cannot write {path}: {error.strerror}; the run was "
            f"{record.status}. Make room and run the same again: it goes on from its checkpoint.",
        ) from error


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
