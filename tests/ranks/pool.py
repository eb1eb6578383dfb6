"""A pool of processes that stay between tests, since loading torch in each costs seconds."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

SECONDS = 300  # that a rank waits for another before it gives up


class RankFailed(RuntimeError):
    """The failure of a rank, with its traceback for a message."""


class Pool:
    """Up to `size` ranks, each a process of its own, joined by gloo for one task at a time."""

    def __init__(self, size: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        # For as long as the processes: torch looks at a store's file once more when the last that
        # knows the process group is collected, which may be tasks later, and aborts without it.
        self._folder = tempfile.TemporaryDirectory()
        self._tasks = 0
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        for _ in range(size):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def run(self, task: Callable[..., Any], world_size: int, *args: Any) -> list[Any]:
        """Run `task(*args)` on every rank and return what it gave.

        Raises:
            RankFailed: with the traceback of the lowest rank that raised.
        """
        results = self._run(task, world_size, args)
        for failed, value in results:
            if failed:
                raise RankFailed(value)
        return [value for _, value in results]

    def errors(self, task: Callable[..., Any], world_size: int, *args: Any) -> list[str]:
        """Return the last line of every rank's traceback, "" where it did not raise."""
        results = self._run(task, world_size, args)
        return [value.strip().splitlines()[-1] if failed else "" for failed, value in results]

    def _run(self, task: Callable[..., Any], world_size: int, args: Any) -> list[tuple[bool, Any]]:
        self._tasks += 1
        store = Path(self._folder.name) / f"store-{self._tasks}"
        pipes = self._pipes[:world_size]
        for rank, pipe in enumerate(pipes):
            pipe.send((task, args, str(store), rank, world_size))
        return [pipe.recv() for pipe in pipes]

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)
            process.kill()
            process.join()
        self._folder.cleanup()


def join(store: str, rank: int, world_size: int) -> None:
    """Make this process one rank of a job."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=SECONDS),
    )


def _serve(pipe: Any) -> None:
    import torch.distributed as dist

    while (order := pipe.recv()) is not None:
        task, args, store, rank, world_size = order
        try:
            join(store, rank, world_size)
            pipe.send((False, task(*args)))
        except BaseException:
            pipe.send((True, traceback.format_exc()))
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


def launch(task: Callable[..., Any], world_size: int, *args: Any) -> list[int | None]:
    """Run a task in ranks of its own and return their exit codes.

    As a launcher does, it ends the others as soon as one is gone.
    """
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        ranks = [
            spawn.Process(target=_run_alone, args=(task, args, store, rank, world_size))
            for rank in range(world_size)
        ]
        for rank in ranks:
            rank.start()
        while alive := [rank for rank in ranks if rank.is_alive()]:
            multiprocessing.connection.wait([rank.sentinel for rank in alive])
            if any(rank.exitcode for rank in ranks):
                for rank in ranks:
                    rank.kill()
        return [rank.exitcode for rank in ranks]


def _run_alone(task: Callable[..., Any], args: Any, store: str, rank: int, world_size: int) -> None:
    import torch.distributed as dist

    join(store, rank, world_size)
    task(*args)
    dist.destroy_process_group()
