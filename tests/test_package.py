"""What importing the package costs, and how its parts may import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hvadam

SOURCE = Path(hvadam.__file__).parent

# A part may import itself and the parts before it in this order; bench sees everything.
MAY_IMPORT = {
    "core": {"core"},
    "torch": {"core", "torch"},
    "optimizers": {"core", "torch", "optimizers"},
    "bench": {"core", "torch", "optimizers", "bench"},
}
FRAMEWORKS = {"torch", "jax"}


def test_import_loads_no_framework() -> None:
    code = """
import sys, hvadam
assert not {"torch", "numpy", "jax"} & set(sys.modules), "a framework came along"
assert "HVAdam" in dir(hvadam)
from hvadam import HVAdam
assert "torch" in sys.modules and HVAdam.__name__ == "HVAdam"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'HVAdom'"):
        _ = hvadam.HVAdom  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_follow_the_arrows(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0]
    allowed = MAY_IMPORT.get(part)
    for name in imported(path):
        top, *rest = name.split(".")
        if top == "hvadam" and rest and allowed is not None and not rest[0].startswith("_"):
            assert rest[0] in allowed, f"{part} imports {name}"
        if part == "core":
            assert top not in FRAMEWORKS, f"core imports {name}"


def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names
