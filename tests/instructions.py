"""Counts the native kernel's instructions an element, by single-stepping it.

    python tests/instructions.py

prints them for each kind of state and each instruction set that this CPU has. They say what low-bit
state waits for, whatever else the machine is doing. Needs Linux on x86-64, gcc, and the right to
trace a process of one's own.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from hvadam.torch.kernels import native

SOURCES = Path(native.__file__).parent
PROGRAM = Path(__file__).parent / "torch" / "kernels" / "native_driver" / "instructions.c"
# As in setup.py, but for the threads.
FLAGS = ["-O3", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
FLAGS += ["-Wno-psabi", "-Wno-unknown-pragmas"]
NOT_TRACED = 2  # what the program exits with where it may not trace another


class Count(NamedTuple):
    """Instructions an element of both passes."""

    first: float
    second: float


def count() -> dict[tuple[str, str], Count]:
    """Return the counts by state and instruction set.

    Raises:
        subprocess.CalledProcessError: it cannot be compiled, or not be traced.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "instructions")
        command = ["gcc", *FLAGS, f"-I{SOURCES}", str(PROGRAM), "-o", program, "-lm"]
        subprocess.run(command, check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {(state, isa): Count(float(a), float(b)) for state, isa, a, b in rows}


if __name__ == "__main__":
    for (state, isa), found in count().items():
        print(f"{state:9} {isa:7} {found.first:5.2f} + {found.second:.2f} = {sum(found):.1f}")
