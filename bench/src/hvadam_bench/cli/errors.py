"""How a command ends when it does not end well: in one line, with a code that says which kind."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

# What a command returns where it does not return 0.
FAILED = 1  # it ran, and something did not get to its end
UNUSABLE = 2  # it cannot run: an argument, a file or a package
INTERRUPTED = 130  # by Ctrl-C

# What the extra `bench` brings, as it is imported.
_BENCH = "cattrs jinja2 matplotlib optuna plotly rich sacrebleu scipy sentencepiece sklearn typer"


class StoppedError(Exception):
    """Ctrl-C, in a command that keeps something; the message says what."""


@contextmanager
def keeping(what: str) -> Iterator[None]:
    """Enter a context that Ctrl-C leaves with word of what is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise StoppedError(what) from error


@contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """Enter a context in which an error's message says what cannot be used, and ends the command.

    `kinds` are the errors that mean it: ValueError, if none is given.
    """
    import typer  # here, because it may be missing

    kinds = kinds or (ValueError,)
    try:
        yield
    except kinds as error:
        raise typer.Exit(fail(str(error))) from error


def missing_packages() -> list[str]:
    """Return those packages of the extra `bench` that are not installed."""
    missing = [name for name in _BENCH.split() if find_spec(name) is None]
    return ["scikit-learn" if name == "sklearn" else name for name in missing]


def fail(message: str, code: int = UNUSABLE) -> int:
    """Say what is wrong and return the exit code for it."""
    print(f"hvadam: {message}", file=sys.stderr)
    return code


def tell_interrupt(kept: str, args: Sequence[str] | None) -> int:
    """Say what an interrupted command keeps, and how to go on."""
    if not kept:
        return fail("interrupted; nothing is kept of it.", INTERRUPTED)
    command = shlex.join(["hvadam", *(sys.argv[1:] if args is None else args)])
    return fail(f"interrupted; kept: {kept}. The same command goes on: {command}", INTERRUPTED)


def describe(error: OSError) -> str:
    """Return what the system refused, and of which file."""
    reason = error.strerror or str(error)
    return f"{reason}: {error.filename}" if error.filename else reason
