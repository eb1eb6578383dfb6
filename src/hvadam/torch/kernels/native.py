"""The compiled kernel for CPUs: two passes over memory, no temporaries (see ``native.c``).

Autograd is told of the writes to parameters; those to the state, which no graph should ever hold,
it is not, for that would cost more than the arithmetic of a small tensor.

Called through ctypes. torch describes its tensors to the kernel through DLPack's C exchange API,
anew at every step: no pointer outlives the step that read it.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from hvadam.torch.kernels.batch import Batch, Columns, Options
from hvadam.torch.parameters import refuse_lazy_views

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
ISA = "HVADAM_ISA"  # the variable that names one of them, read when the library is loaded

# Mirrors of the structs in native.c.
ROW = np.dtype(
    [(name, np.intp) for name in ("theta", "g", "m", "v", "s", "step")]
    + [(name, np.intp) for name in ("m_scales", "v_scales", "s_scales")]
    + [(name, np.int64) for name in ("n", "scope", "index")]
    + [(name, np.int32) for name in ("theta_type", "g_type", "state_type", "fits")]
    + [(name, np.float64) for name in ("inv1", "inv2")]
)
GROUP = struct.Struct("11d3q")
COLUMNS = ctypes.c_void_p * 9  # of tensors: the lists that a row is gathered from


class Table(NamedTuple):
    """The addresses of tensors that the kernel takes, and which it leaves to others."""

    rows: np.ndarray
    address: int  # of the rows
    taken: Sequence[int]
    rest: Sequence[int]


def available() -> str | None:
    """Return None, or why the kernel cannot run here and what would help."""
    return _library().reason


def instruction_set() -> str:
    """Return the instruction set in use."""
    return _library().instruction_set


def describe(tensors: Columns, scopes: Sequence[int]) -> Table:
    """Return a table of the tensors where they are now."""
    library = _library()
    count = len(tensors.theta)
    rows = np.zeros(count, ROW)
    if scopes[-1]:  # they never fall
        rows["scope"] = scopes if scopes[0] != scopes[-1] else scopes[0]
    if tensors.index:
        rows["index"] = tensors.index
    lists = [list(x) if isinstance(x, tuple) else x for x in tensors[:9]]
    columns = COLUMNS(*[id(x) if x else None for x in lists])
    complex_rows, address = ctypes.c_int64(), rows.ctypes.data
    taken = library.describe(*(count, columns, library.python, ctypes.byref(complex_rows), address))
    # A sign or a conjugation still to be done is what DLPack cannot show.
    if any(map(Tensor.is_neg, tensors.theta)) or complex_rows.value:
        refuse_lazy_views(tensors.theta)
    lazy: list[int] = []
    if any(map(Tensor.is_neg, tensors.g)):
        lazy += [i for i, g in enumerate(tensors.g) if g.is_neg()]
    if complex_rows.value:
        lazy += [i for i in np.flatnonzero(rows["fits"] == 2).tolist() if tensors.g[i].is_conj()]
    if taken == count and not lazy:
        return Table(rows, address, range(count), ())
    rows["fits"][lazy] = 0
    fits = rows["fits"] != 0
    own = rows[fits]
    taken, rest = (np.flatnonzero(x).tolist() for x in (fits, ~fits))
    return Table(own, own.ctypes.data, taken, rest)


def norm(batches: Sequence[Batch[Table]], total: Tensor) -> None:
    """Add the squares of the gradients."""
    own = torch.zeros((), dtype=torch.float64, device="cpu")
    for batch in batches:
        rows, address, *_ = batch.own
        threads = torch.get_num_threads()
        _check(_library().norm(len(rows), address, own.data_ptr(), threads))
    total += own.to(total.device)


def accumulate(batches: Sequence[Batch[Table]], dots: Tensor) -> None:
    """Count the step, update m and s, add the four dots of each scope."""
    own = dots if dots.device.type == "cpu" else torch.zeros_like(dots, device="cpu")
    for batch in batches:
        rows, address, *_ = batch.own
        _check(
            _library().first(
                *(len(rows), address, _group(batch.options)),
                *(own.data_ptr(), torch.get_num_threads()),
            )
        )
    if own is not dots:
        dots += own.to(dots.device)


def apply(batches: Sequence[Batch[Table]], mix: Tensor, gain: Tensor) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    mix, gain = mix.cpu(), gain.cpu()
    for batch in batches:
        rows, address, *_ = batch.own
        _check(
            _library().second(
                *(len(rows), address, _group(batch.options)),
                *(mix.data_ptr(), gain.data_ptr(), torch.get_num_threads()),
            )
        )
        increment_version(batch.tensors.theta)


def _group(o: Options) -> bytes:
    """Return the options as the struct that the passes read."""
    low, high = o.bounds or (0.0, 0.0)
    return GROUP.pack(
        *(o.lr, o.beta1, o.beta2, o.eps, o.gamma, o.decay, o.coupled_decay, o.hidden_scale),
        *(low, high, -o.factor if o.maximize else o.factor),
        *(o.adam, o.box(o.lr) is not None, o.seed),
    )


def _check(status: int) -> None:
    """Raise the error that a status of the library stands for."""
    if status:
        raise MemoryError("HVAdam: the native kernel could not allocate its list of blocks.")


class _Library(NamedTuple):
    """The functions of the compiled library."""

    reason: str | None  # why there is none
    instruction_set: str = ""
    describe: Any = None
    norm: Any = None
    first: Any = None
    second: Any = None
    python: Any = None  # functions of torch and Python that describe needs


@cache
def _library() -> _Library:
    """Load the compiled library once."""
    found = sorted(Path(__file__).parent.glob("_native.*"))
    if not found:
        return _Library(
            "it was not compiled when hvadam was installed. Install a C compiler (on Debian: "
            "apt install gcc) and reinstall hvadam."
        )
    capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return _Library(
            f"it needs Tensor.__dlpack_c_exchange_api__, which torch {torch.__version__} lacks. "
            "Install a newer torch."
        )
    try:
        passes = ctypes.CDLL(str(found[0]))  # releases the interpreter's lock
        locked = ctypes.PyDLL(str(found[0]))
    except OSError as error:
        return _Library(f"its library does not load: {error}. Reinstall hvadam.")
    pointer, size, flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    locked.hvadam_describe.argtypes = [size, pointer, pointer, pointer, pointer]
    locked.hvadam_describe.restype = size
    passes.hvadam_norm.argtypes = [size, pointer, pointer, flag]
    passes.hvadam_first.argtypes = [size, pointer, pointer, pointer, flag]
    passes.hvadam_second.argtypes = [size, pointer, pointer, pointer, pointer, flag]
    return _Library(
        None,
        _select(passes.hvadam_select),
        locked.hvadam_describe,
        passes.hvadam_norm,
        passes.hvadam_first,
        passes.hvadam_second,
        (pointer * 3)(
            _exchange_function(capsule),
            ctypes.cast(ctypes.pythonapi.PyErr_Clear, pointer).value,
            ctypes.cast(ctypes.pythonapi.PyList_GetItem, pointer).value,
        ),
    )


def _select(select: Callable[[int], int]) -> str:
    """Select the best instruction set, or the one that the variable names; returns which."""
    wanted = os.environ.get(ISA, "")
    best = INSTRUCTION_SETS[select(len(INSTRUCTION_SETS))]
    if not wanted:
        return best
    if wanted not in INSTRUCTION_SETS:
        raise ValueError(
            f"HVAdam: {ISA} must be one of {', '.join(INSTRUCTION_SETS)}, got {wanted!r}. Unset it "
            f"to use the best that this CPU has, {best}."
        )
    found = INSTRUCTION_SETS[select(INSTRUCTION_SETS.index(wanted))]
    if found != wanted:
        raise ValueError(
            f"HVAdam: {ISA} must name instructions that this CPU has, of which the best are "
            f"{best}, got {wanted!r}. Name those or less, or unset it."
        )
    return found


def _exchange_function(capsule: Any) -> int:
    """Return the entry of DLPack's exchange table that describes a tensor unowned."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.argtypes, get_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    address = get_pointer(capsule, b"dlpack_exchange_api")
    # The table: version (two uint32), the previous table, then five functions; ours is the fourth.
    return (ctypes.c_void_p * 7).from_address(address)[5] or 0
