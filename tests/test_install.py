"""Installing from source: with a C compiler, without one, and where ``make`` lacks something."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs a clone"),
]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

# Run beside the installed package; `expected` is None, or a word of the reason why not.
CHECK = """
import sys
from pathlib import Path
import torch
import hvadam
from hvadam import HVAdam
from hvadam.torch.kernels import native

site, expected = sys.argv[1:]
assert Path(hvadam.__file__).is_relative_to(site), hvadam.__file__
assert (Path(hvadam.__file__).parent / "py.typed").exists()

def train(kernel, *sizes, **options):
    generator = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(n, generator=generator)) for n in sizes]
    optimizer = HVAdam(params, lr=0.01, kernel=kernel, **options)
    for _ in range(5):
        for p in params:
            p.grad = 1 + torch.randn(p.shape, generator=generator)
        optimizer.step()
    return torch.cat([p.detach() for p in params])

reason = native.available()
if expected:
    assert expected in reason, reason
    try:
        train("native", 7)
    except RuntimeError as error:
        message = str(error)
    else:
        raise AssertionError("native trained")
    assert message == f'HVAdam: kernel="native" is not available: {reason}', message
else:
    assert reason is None, reason
    assert native.instruction_set() in native.INSTRUCTION_SETS
    torch.set_num_threads(2)
    p = torch.nn.Parameter(torch.zeros(200_000))
    p.grad = torch.ones(200_000)
    HVAdam([p], kernel="native").step()
    assert bool((p < 0).all())

for options in ({}, {"max_grad_norm": 0.1}, {"state_dtype": "int8"}):
    if expected:  # the portable kernels serve, for large tensors one of them through the other
        assert torch.equal(train("auto", 7, 5000, **options), train("foreach", 7, 5000, **options))
        assert torch.equal(train("auto", 5000, **options), train("loop", 5000, **options))
    else:
        assert torch.equal(train("auto", 7, 5000, **options), train("native", 7, 5000, **options))
    if "state_dtype" not in options:
        result = train("auto", 7, 5000, 0, **options)
        for kernel in ("loop", "foreach"):
            other = train(kernel, 7, 5000, 0, **options)
            torch.testing.assert_close(result, other, rtol=1e-5, atol=1e-6)
print("all is well")
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The sources as a clone has them: nothing built, nothing left over."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    target = tmp_path / "a clone"  # in a folder with a space
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target / name)
    assert not list(target.rglob("_native.*"))
    return target


def install(clone: Path, site: Path, **environment: str) -> str:
    """Install into a folder of its own, without the network; returns what pip says."""
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--disable-pip-version-check", "--verbose"]
    done = subprocess.run(
        [*command, "--target", str(site), str(clone)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def check(site: Path, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECK, str(site), expected],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=site,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "all is well\n", done.stderr


def test_without_a_compiler_the_portable_kernels_serve(clone: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    said = install(clone, site, CC="/nonexistent/cc", CXX="/nonexistent/c++")
    assert "/nonexistent/cc" in said  # it was tried
    assert not list(site.rglob("_native.*"))
    check(site, "it was not compiled when hvadam was installed. Install a C compiler")


@needs_compiler
def test_with_a_compiler_the_native_kernel_works(clone: Path, tmp_path: Path) -> None:
    """And when its library is broken later, that is a reason too."""
    site = tmp_path / "site"
    install(clone, site)
    (library,) = site.rglob("_native.*")
    assert b"GOMP" in library.read_bytes()
    if sys.platform == "linux":
        assert b".symtab" not in library.read_bytes()  # stripped
    check(site, "")
    library.write_text("not a library")
    check(site, "its library does not load:")


@needs_compiler
def test_a_compiler_without_openmp_will_do(clone: Path, tmp_path: Path) -> None:
    compiler = script(
        tmp_path / "cc",
        'for x in "$@"; do [ "$x" = -fopenmp ] && { echo "no OpenMP" >&2; exit 1; }; done',
        'exec cc "$@"',
    )
    site = tmp_path / "site"
    install(clone, site, CC=str(compiler))
    (library,) = site.rglob("_native.*")
    assert b"GOMP" not in library.read_bytes()
    check(site, "")


# wheels


def build(source: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> zipfile.ZipFile:
    """Build a wheel without the network, and print its size."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--disable-pip-version-check", "--wheel-dir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = out.iterdir()
    with capsys.disabled():
        print(f"\n{wheel.name}: {wheel.stat().st_size / 1024:,.0f} KiB")
    return zipfile.ZipFile(wheel)


def assert_presentable(wheel: zipfile.ZipFile) -> None:
    """A package index can say who made it, where its home is, and what it runs on."""
    path = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    about = Parser().parsestr(wheel.read(path).decode())
    assert about["Author"] == "The hvadam developers"
    urls = dict(one.split(", ") for one in about.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    classifiers = about.get_all("Classifier", [])
    oldest = about["Requires-Python"].removeprefix(">=")
    for expected in (f"Programming Language :: Python :: {oldest}", "Typing :: Typed"):
        assert expected in classifiers
    assert about["License-Expression"] == "MIT"
    assert about["Summary"]
    assert str(about.get_payload()).startswith("# ")  # the README


def test_the_optimizer_s_wheel_has_no_bench_in_it(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with build(clone, tmp_path / "library", capsys) as library:
        assert_presentable(library)
        names = library.namelist()
        entries = library.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"hvadam"}
    assert {name.split("/")[1] for name in names if name.endswith("/__init__.py")} == {
        *("__init__.py", "core", "jax", "torch")
    }
    assert "hvadam = hvadam.__main__:main" in entries


def test_the_extra_for_jax_brings_no_torch() -> None:
    brought = [line for line in metadata.requires("hvadam") or [] if 'extra == "jax"' in line]
    assert sorted(line.split(">")[0] for line in brought) == ["jax", "optax"]


def test_the_bench_s_wheel_has_all_that_it_reads(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Templates, styles and weights lie beside the code, and are easily forgotten."""
    with build(clone / "bench", tmp_path / "bench", capsys) as bench:
        assert_presentable(bench)
        names = set(bench.namelist())
        entries = bench.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert "[hvadam.commands]" in entries
    source = clone / "bench" / "src"
    lying = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert {name for name in lying if ".egg-info" not in name} <= names


# make

Make = Callable[..., subprocess.CompletedProcess[str]]


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def make(clone: Path) -> Make:
    """Runs ``make`` in a fresh clone, where it has everything to do."""
    if shutil.which("make") is None:
        pytest.skip("needs make")

    # As a user types it: a make inside of a make says more, and takes its options.
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *arguments], cwd=clone, env=own, capture_output=True, text=True
        )

    return run


@pytest.mark.parametrize("target", [".venv/dev", "demo", "check", "test-slow"])
@pytest.mark.parametrize(
    ("asked", "messages"),
    [
        ("ensurepip", ["-m venv", "is missing", "apt install python3-venv"]),
        ("version_info", ["Python 3.11 or newer is needed", "make PYTHON="]),
    ],
    ids=["without venv", "too old"],
)
def test_make_says_what_is_missing(
    asked: str, messages: list[str], target: str, make: Make, clone: Path, tmp_path: Path
) -> None:
    """With a Python that says no when it is asked for that."""
    python = script(
        tmp_path / "python",
        f'case "$*" in *{asked}*) exit 1;; esac',
        f'exec "{sys.executable}" "$@"',
    )
    done = make(target, f"PYTHON={python}")
    assert done.returncode != 0
    for message in (str(python), *messages):
        assert message in done.stdout
    assert not (clone / ".venv").exists()


def test_make_without_any_python_says_so(make: Make) -> None:
    done = make(".venv/dev", "PYTHON=/nonexistent/python")
    assert done.returncode != 0
    assert 'Python 3.11 or newer is needed as "/nonexistent/python"' in done.stdout


def test_make_lists_its_commands(make: Make) -> None:
    done = make("help")
    assert done.returncode == 0, done.stderr
    named = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert {"demo", "test", "test-slow", "clean"} <= named


def test_make_asks_for_one_build_of_torch_which_can_be_named(make: Make) -> None:
    usual = make("--dry-run", "demo")
    assert usual.returncode == 0, usual.stderr
    assert "-c constraints.txt torch==2.13.0\n" in usual.stdout
    assert 'hvadam: installing "torch==2.13.0"; for another build' in usual.stdout
    named = make("--dry-run", "demo", "TORCH=torch==9.9 --index-url elsewhere")
    assert "-c constraints.txt torch==9.9 --index-url elsewhere\n" in named.stdout
    assert "torch==2.13.0" not in named.stdout


def test_make_installs_no_more_than_a_command_needs(make: Make) -> None:
    demo, check = (make("--dry-run", target).stdout for target in ("demo", "check"))
    assert "[dev]" not in demo
    assert "[dev]" in check
    assert "--quiet" not in demo + check  # pip's progress shows


def test_make_says_what_comes_next(make: Make) -> None:
    """Before each thing that takes minutes, and where to look in the end."""
    lines = make("--dry-run", "demo").stdout.splitlines()
    work = [line for line in lines if "pip install" in line or "-m hvadam demo" in line]
    assert len(work) == 3  # torch, the rest, the demo
    for line in work:
        assert lines[lines.index(line) - 1].startswith("echo 'hvadam: ")
    assert lines[-1] == (
        "echo 'hvadam: to look at the report: .venv/bin/python -m hvadam open demo/report.html'"
    )
