"""The command line: `app` names the commands, `commands` and `study` have them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from hvadam_bench.cli.errors import (
    FAILED,
    INTERRUPTED,
    StoppedError,
    describe,
    fail,
    missing_packages,
    tell_interrupt,
)
from hvadam_bench.registry import RefusedError
from hvadam_bench.terminal import plain_warnings


def main(args: Sequence[str] | None = None, own: Mapping[str, str] | None = None) -> int:
    """Run the command line.

    Args:
        args: The arguments, by default those of the process.
        own: Commands that the library answers by itself, with a line of help each.

    Returns:
        The exit code: 0; 1 where something that ran did not get to its end; 2 where nothing could
        run, for an argument, a file or a package; 130 when interrupted.
    """
    try:
        with plain_warnings():
            return _run(args, own or {})
    except StoppedError as error:
        return tell_interrupt(str(error), args)
    except RefusedError as error:
        return fail(str(error))
    except ModuleNotFoundError:
        if not (missing := missing_packages()):
            raise
        return fail(f"this command needs {', '.join(missing)}: pip install 'hvadam[bench]'")
    except OSError as error:  # a full disk, a folder that is not ours
        return fail(describe(error), FAILED)
    except Exception as error:
        # Usage errors can describe themselves. They have no public class to catch: they are click's
        # with older typers, and of a copy of click inside newer ones.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return fail(" ".join(message().split()))


def _run(args: Sequence[str] | None, own: Mapping[str, str]) -> int:
    import typer  # here, because it may be missing

    from hvadam_bench.cli.app import SHORT, make_app

    given = sys.argv[1:] if args is None else list(args)
    if given and given[0] in SHORT:
        given.insert(0, "study")
    try:
        code = make_app(own, given)(args=given, prog_name="hvadam", standalone_mode=False) or 0
    except typer.Abort:  # so older typers tell of Ctrl-C
        code = INTERRUPTED
    return tell_interrupt("", args) if code == INTERRUPTED else code
