"""What a command needs and lacks, and how it says that it failed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

# Import name -> package name of what the extra `bench` brings.
_BENCH_PACKAGES = {
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "optuna": "optuna",
    "plotly": "plotly",
    "rich": "rich",
    "sacrebleu": "sacrebleu",
    "scipy": "scipy",
    "sentencepiece": "sentencepiece",
    "sklearn": "scikit-learn",
    "typer": "typer",
}


def missing_packages() -> list[str]:
    """Those of the extra `bench` that are not installed."""
    return [package for name, package in _BENCH_PACKAGES.items() if find_spec(name) is None]


def fail(message: str) -> int:
    """Say what is wrong and return the exit code for it."""
    print(f"hvadam: {message}", file=sys.stderr)
    return 2
