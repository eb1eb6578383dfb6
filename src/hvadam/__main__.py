"""The ``hvadam`` command: what the library can tell by itself, and what the bench adds to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import NoReturn

from hvadam import __version__, check, info

# Packages that bring commands declare an entry point of this group: a function that takes the
# arguments and the commands that are answered here, by name with a line of help each.
GROUP = "hvadam.commands"


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: The arguments, by default those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if args is None else args)
    joined = entry_points(group=GROUP)
    if joined and (not words or words[0] not in OWN):
        others: Callable[..., int] = next(iter(joined)).load()
        return others(words, {name: command.__doc__ or "" for name, command in OWN.items()})
    parser = _parser()
    if words and words[0] not in OWN and not words[0].startswith("-"):
        print(
            f"hvadam: {words[0]!r} is not a command of the library, which has {', '.join(OWN)}; "
            "contenders, tasks, sweeps and reports come with pip install 'hvadam[bench]'",
            file=sys.stderr,
        )
        return 2
    try:
        chosen = parser.parse_args(words)
    except SystemExit as leave:  # help was shown, or an argument refused
        return int(leave.code or 0)
    if chosen.command is None:
        parser.print_help()
        return 0
    if refused := info.refused_instructions():
        print(f"hvadam: {refused}", file=sys.stderr)
        return 2
    return OWN[chosen.command](chosen)


def show_info(chosen: argparse.Namespace) -> int:
    """Show versions, the machine, and which kernels work on it."""
    print(info.as_json() if chosen.json else info.as_text())
    return 0


def check_kernels(chosen: argparse.Namespace) -> int:
    """Check that every kernel here computes what it should; the exit code is 1 if one does not."""
    if find_spec("torch") is None:
        print(f"hvadam: {info.NO_TORCH}", file=sys.stderr)
        return 1
    trials = check.collect()
    print(check.as_json(trials) if chosen.json else check.as_text(trials))
    return 0 if all(trial.agrees for trial in trials) else 1


OWN: dict[str, Callable[[argparse.Namespace], int]] = {"info": show_info, "check": check_kernels}


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"hvadam: {message}", file=sys.stderr)
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hvadam",
        description="HVAdam, a full-dimension adaptive optimizer.",
        epilog="Contenders, tasks, sweeps and reports: pip install 'hvadam[bench]'",
    )
    parser.add_argument("--version", action="version", version=f"hvadam {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in OWN.items():
        one = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        one.add_argument("--json", action="store_true", help="as JSON, for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
