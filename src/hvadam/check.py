"""What `hvadam check` says: whether every kernel that runs here computes what it should."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from hvadam import info

if TYPE_CHECKING:
    from hvadam.torch.self_check import Trial


def collect() -> list[Trial]:
    """Return the trials of all kernels; takes seconds, and needs torch."""
    from hvadam.torch import self_check

    return list(self_check.trials())


def as_json(trials: list[Trial]) -> str:
    """Return trials for programs."""
    every = [{**trial._asdict(), "agrees": trial.agrees} for trial in trials]
    return json.dumps({"versions": info.versions(), "trials": every}, indent=2)


def as_text(trials: list[Trial]) -> str:
    """Return trials for people: a table to paste, with what ran it, and a sentence."""
    from hvadam.torch import self_check

    versions = ", ".join(f"{name} {number}" for name, number in info.versions().items())
    about = info.machine()
    native = f"native kernel: {self_check.instruction_set() or '-'}"
    ran = [trial for trial in trials if trial.unavailable is None]
    wrong = sum(not trial.agrees for trial in ran)
    verdict = (
        f"{wrong} of {len(ran)} {'is' if wrong == 1 else 'are'} further off than rounding: please "
        "report this table."
        if wrong
        else f"All {len(ran)} agree."
    )
    return "\n".join(
        [
            versions,
            f"{about['system']}, {about['cpu']}, {native}",
            "",
            ROW.format("kernel", "device", "state", "judge", "off by", "allowed", "").rstrip(),
            *(_row(trial) for trial in ran),
            *(_reason(trial) for trial in trials if trial.unavailable is not None),
            "",
            verdict,
        ]
    )


ROW = "{:9}{:8}{:10}{:11}{:>8}{:>9}  {}"


def _row(trial: Trial) -> str:
    """Return the line of a kernel that ran."""
    return ROW.format(
        *(trial.kernel, trial.device, trial.state, trial.judge),
        *(f"{trial.difference:.0e}", f"{trial.allowed:.0e}"),
        "agrees" if trial.agrees else "DISAGREES",
    )


def _reason(trial: Trial) -> str:
    """Return the lines of a kernel that cannot run here."""
    text = f"{trial.kernel:9}not available: {trial.unavailable}"
    return textwrap.fill(text, info.WIDTH, subsequent_indent=" " * 9, break_on_hyphens=False)
