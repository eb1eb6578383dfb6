"""A run put aside and taken up again: one file, whole or ignored."""

from __future__ import annotations

import io
import pickle
import random
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hvadam_bench.running.files import BusyError, clear_drafts, locked, write_atomically

# This mark and a checksum come before the content, because torch reads flipped bits in silence.
MARK = b"hvadam run 1\n"


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint: a crash at any moment leaves the one before or this one."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    payload = buffer.getvalue()
    write_atomically(path, MARK + zlib.crc32(payload).to_bytes(4, "big") + payload)


def load(path: Path) -> dict[str, Any] | None:
    """Return what `save` wrote; None if there is nothing, or with a warning if it is damaged."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    start = len(MARK) + 4
    payload = raw[start:]
    why = "its checksum is wrong"
    if raw[:start] == MARK + zlib.crc32(payload).to_bytes(4, "big"):
        try:
            return torch.load(io.BytesIO(payload), weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            why = str(error).partition("\n")[0]
    warnings.warn(f"{path} is ignored, because {why}: the run starts over.", stacklevel=2)
    return None


def remove(path: Path) -> None:
    """Delete a checkpoint, and the drafts and the lock that killed processes left of it."""
    path.unlink(missing_ok=True)
    clear_drafts(path)
    lock = lock_path(path)
    if lock.exists():
        with suppress(BusyError), locked(lock):
            pass


def lock_path(path: Path) -> Path:
    """Return the file that whoever makes the run of a checkpoint holds a lock on."""
    return path.with_name(f"{path.name}.lock")


def random_state() -> dict[str, Any]:
    """Return where the generators of torch, NumPy and Python stand, in what `load` accepts."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    words = torch.from_numpy(numpy["state"]["key"].astype(np.int64))
    version, numbers, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": {**numpy, "state": {**numpy["state"], "key": words}},
        "python": (version, torch.tensor(numbers), gauss),
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Put the generators back to where `random_state` found them."""
    torch.set_rng_state(state["torch"])
    numpy = state["numpy"]
    words = numpy["state"]["key"].numpy().astype(np.uint32)
    np.random.set_state({**numpy, "state": {**numpy["state"], "key": words}})  # noqa: NPY002
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss))


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Enter a context with generators of its own, from a seed; nothing is drawn outside."""
    kept = random_state()
    set_seed(seed)
    try:
        yield
    finally:
        set_random_state(kept)


def set_seed(seed: int) -> None:
    """Start the generators of torch, NumPy and Python from a seed."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
