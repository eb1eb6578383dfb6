"""The command line: argument parsing only.

Each command is a function of ``studies``, ``runs`` or ``comparisons``; ``app`` names them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hvadam.bench.cli.errors import fail, missing_packages


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: The arguments, by default those of the process.

    Returns:
        The exit code: 0, 2 for arguments that cannot be used or missing packages, 130 when
        interrupted.
    """
    try:
        return _run(args)
    except ModuleNotFoundError:
        missing = missing_packages()
        if not missing:
            raise
        return fail(f"this command needs {', '.join(missing)}: pip install 'hvadam[bench]'")


def _run(args: Sequence[str] | None) -> int:
    import typer  # here, for it may be missing

    from hvadam.bench.cli.app import make_app

    try:
        return make_app()(args=args, prog_name="hvadam", standalone_mode=False) or 0
    except typer.Abort:
        return 130
    except Exception as error:
        # Usage errors can describe themselves. They have no public class to catch: they are click's
        # with older typers, and of a copy of click inside newer ones.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        return fail(" ".join(describe().split()))
