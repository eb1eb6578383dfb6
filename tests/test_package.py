"""What importing the packages costs, and how their rooms may import each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hvadam
import hvadam_bench

LIBRARY, BENCH = Path(hvadam.__file__).parent, Path(hvadam_bench.__file__).parent

# A room may import itself and those before it in its line.
LIBRARY_ARROWS = [("core", "torch"), ("core", "jax")]
BENCH_ARROWS = [
    ("data", "tasks"),
    ("contenders", "running", "analysis", "sweeping", "pages", "studies", "cli"),
    ("tasks", "running", "analysis", "sweeping", "pages", "studies", "cli"),
]
# What trains or sweeps: pages show what there is, and make nothing.
RUNS = ("running.runner", "running.training", "running.progress", "sweeping.sweep")
RUNS += ("sweeping.engines",)
# Optimizers and tasks meet in the runner only.
STRANGERS = {"contenders": {"tasks"}, "tasks": {"contenders"}}
FRAMEWORKS = {"torch", "jax"}
# What must render a report, or list what there is, where no framework is installed.
NO_FRAMEWORK = (
    "hvadam",
    "hvadam.convert",
    "hvadam_bench.analysis.grouping",
    "hvadam_bench.pages.report",
)


def files(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).with_suffix("").parts[0]


def allowed(room: str, arrows: list[tuple[str, ...]]) -> set[str] | None:
    """Return the rooms that one may import; None for the package's own files."""
    lines = [line for line in arrows if room in line]
    found = {room}
    for line in lines:
        for earlier in line[: line.index(room)]:
            found |= allowed(earlier, arrows) or set()
    return found - STRANGERS.get(room, set()) if lines else None


def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def strays(path: Path, package: Path, arrows: list[tuple[str, ...]]) -> list[str]:
    """Return what a file imports against the arrows."""
    room = room_of(path, package)
    may = allowed(room, arrows)
    found: list[str] = []
    for name in imported(path):
        top, *rest = name.split(".")
        inside = top == package.name and bool(rest) and (package / rest[0]).is_dir()
        if inside and may is not None and rest[0] not in may:
            found.append(name)
    return found


@pytest.mark.parametrize("path", files(LIBRARY), ids=lambda p: str(p.relative_to(LIBRARY)))
def test_the_library_follows_its_arrows(path: Path) -> None:
    assert strays(path, LIBRARY, LIBRARY_ARROWS) == []
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"unittest", "pytest"}
    assert "hvadam_bench" not in tops
    if room_of(path, LIBRARY) == "core":
        assert not tops & FRAMEWORKS
    if room_of(path, LIBRARY) == "jax":
        assert "torch" not in tops
    if room_of(path, LIBRARY) == "torch":
        assert not tops & {"jax", "optax"}
    if "kernels" not in path.parts:
        inner = [name for name in imported(path) if name.startswith("hvadam.torch.kernels.")]
        names = {name.removeprefix("hvadam.torch.kernels.").split(".")[0] for name in inner}
        inside = {file.stem for file in files(LIBRARY / "torch" / "kernels")}
        assert not names & inside, "what is above kernels/ goes through its door"


@pytest.mark.parametrize("path", files(BENCH), ids=lambda p: str(p.relative_to(BENCH)))
def test_the_bench_follows_its_arrows(path: Path) -> None:
    found = strays(path, BENCH, BENCH_ARROWS)
    if room_of(path, BENCH) == "pages":
        runs = tuple(f"hvadam_bench.{name}" for name in RUNS)
        found += [name for name in imported(path) if name.startswith(runs)]
    assert found == []


@pytest.mark.parametrize("room", ["contenders", "tasks"])
def test_contenders_and_tasks_know_no_sibling(room: str) -> None:
    """A file, or a family's folder, imports only itself and what begins with an underscore."""
    public = {path.stem for path in (BENCH / room).iterdir() if path.stem[0] != "_"}
    for path in (BENCH / room).rglob("*.py"):
        own = path.relative_to(BENCH / room).parts[0].removesuffix(".py")
        for name in imported(path):
            if name.startswith(f"hvadam_bench.{room}."):
                sibling = name.split(".")[2]
                assert sibling not in public - {own}, f"{path} imports {name}"


def test_every_room_has_a_place_in_the_arrows() -> None:
    rooms = {room_of(path, BENCH) for path in BENCH.glob("*/__init__.py")}
    assert rooms == {room for line in BENCH_ARROWS for room in line}


@pytest.mark.parametrize("module", NO_FRAMEWORK)
def test_import_loads_no_framework(module: str) -> None:
    code = f"import sys, {module}; sys.exit(bool({FRAMEWORKS} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_optimizer_is_loaded_on_first_use() -> None:
    code = """
import sys, hvadam
assert not {"torch", "numpy", "jax"} & set(sys.modules), "a framework came along"
assert "HVAdam" in dir(hvadam)
from hvadam import HVAdam
assert "torch" in sys.modules and HVAdam.__name__ == "HVAdam"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "use", "loads"),
    [
        ("torch", "hvadam.torch.HVAdam", "torch"),
        ("jax", "hvadam.jax.hvadam", "jax"),
        ("convert", "hvadam.convert.from_torch", None),
    ],
)
def test_modules_are_loaded_on_first_use(module: str, use: str, loads: str | None) -> None:
    code = f"""
import sys, hvadam
assert not {FRAMEWORKS} & set(sys.modules) and {module!r} in dir(hvadam)
assert callable({use})
assert {FRAMEWORKS} & set(sys.modules) == ({{{loads!r}}} - {{None}})
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_jax_the_module_says_what_to_install() -> None:
    code = """
import sys
sys.modules["jax"] = None
import hvadam
try:
    hvadam.jax
except ModuleNotFoundError as error:
    assert str(error) == (
        "hvadam.jax needs JAX, which is not installed: pip install 'hvadam[jax]'"
    ), error
else:
    raise AssertionError("JAX was there")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_the_optimizer_says_what_to_install() -> None:
    code = """
import sys
sys.modules["torch"] = None
import hvadam
try:
    hvadam.HVAdam
except ModuleNotFoundError as error:
    assert str(error) == (
        "hvadam.HVAdam needs PyTorch, which is not installed: pip install 'hvadam[torch]'"
    ), error
else:
    raise AssertionError("torch was there")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'HVAdom'"):
        _ = hvadam.HVAdom  # pyright: ignore[reportAttributeAccessIssue]


def test_both_packages_have_one_version() -> None:
    from hvadam_bench._version import __version__

    assert __version__ == hvadam.__version__


def test_every_extra_that_anybody_is_told_to_install_is_there() -> None:
    root = Path(__file__).parents[1]
    about = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    extras = about["project"]["optional-dependencies"]
    told: dict[str, str] = {}
    for pattern in ("README.md", "docs/**/*.md", "src/**/*.py", "bench/**/*.py"):
        for path in root.glob(pattern):
            for names in re.findall(r"hvadam\[([a-z,]+)\]", path.read_text("utf-8")):
                told |= dict.fromkeys(names.split(","), str(path))
    assert {"bench", "ray", "peers"} <= set(told)
    assert set(told) <= set(extras), {name: told[name] for name in set(told) - set(extras)}
