"""Whether ``kernel="auto"`` takes the Triton kernel on a device: the device itself decides.

Before the kernel moves a parameter there, it takes a few steps over small tensors of its own, with
the state that is in use, beside the reference or the loop kernel. If they agree it serves from then
on; if not, or if compiling it fails or does not end, the portable kernels do, and one warning says
why. Ranks that decide differently take the same steps but for rounding, and no collective waits.
"""

from __future__ import annotations

import threading
import warnings
from typing import NamedTuple

import torch

# Seconds to compile and run the check; an hour would be spent as silently.
PATIENCE = 180.0


class _Key(NamedTuple):
    device: torch.device
    kept: torch.dtype  # that m is kept in


_decided: dict[_Key, bool] = {}


def trusts_triton(device: torch.device, kept: torch.dtype) -> bool:
    """Return whether the Triton kernel computes on a device what it should; found out once.

    Args:
        device: Where.
        kept: The dtype that m is kept in, which tells the kind of state.

    While a CUDA graph is being captured nothing can be tried: what is not decided yet is then no,
    and is decided at the next step outside of one.
    """
    key = _Key(device, kept)
    if key not in _decided:
        if _is_capturing(device):
            return False
        doubt = _find_doubt(key)
        _decided[key] = doubt is None
        if doubt is not None:
            _warn(device, doubt)
    return _decided[key]


def forget() -> None:
    """Forget what was decided, so that it is found out again."""
    _decided.clear()


def _find_doubt(key: _Key) -> str | None:
    """Return why the kernel cannot be trusted, None if it can."""
    found: list[str | None] = []

    def check() -> None:
        try:
            found.append(_compare(key))
        except Exception as error:  # a compiler may raise anything
            line = (str(error).strip().splitlines() or ["no reason given"])[0]
            found.append(f"it raised {type(error).__name__}: {line}")

    # In a thread of its own, for a compiler that hangs cannot be interrupted.
    thread = threading.Thread(target=check, name="hvadam self-check", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return found[0] if found else f"it was not ready after {PATIENCE:g} seconds"


def _compare(key: _Key) -> str | None:
    from hvadam.torch import agreement  # here, for it steps an optimizer itself

    with torch.no_grad():
        state = str(key.kept).removeprefix("torch.")
        trial = agreement.trial("triton", str(key.device), state)
    if trial.agrees:
        return None
    return (
        f"with {state} state it is off by {trial.difference:.0e} from the {trial.judge}, where "
        f"{trial.allowed:.0e} is rounding"
    )


def _is_capturing(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _warn(device: torch.device, doubt: str) -> None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "interpreted"
    warnings.warn(
        f"HVAdam: the Triton kernel is not used on {device} ({name}), for {doubt}. The portable "
        "kernels serve instead: right, but slower. Please report this with the table that `hvadam "
        'check` prints; kernel="foreach" silences it.',
        stacklevel=2,
    )
