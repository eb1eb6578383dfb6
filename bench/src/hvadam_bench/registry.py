"""What can be run by its name: this package's own files, a user's, and those of other packages.

    hvadam_bench/contenders/adam.py             ours, read when asked for
    mybench/mine.py                             of a folder that `HVADAM_PLUGINS` names
    an entry point of hvadam_bench.contenders   of an installed package

The variable reaches worker processes too, and may name several folders, as `PATH` does. `--plugins`
of the command line sets it.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib
import importlib.util
import itertools
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar
from zlib import crc32

PLUGINS = "HVADAM_PLUGINS"
T = TypeVar("T")


class RefusedError(ValueError):
    """A file, folder or name cannot be used; the message, one line, says why and what to do.

    The command line prints it from wherever it comes. Other errors are our own mistakes.
    """


class Source(NamedTuple):
    """The file of something that is not ours, and a hash of its code."""

    where: str
    code: str


class Found(NamedTuple):
    """One thing of a registry: its name, where it is, and how to have it and its source."""

    name: str
    where: str
    load: Callable[[], Any]
    source: Callable[[], Source | None] = lambda: None


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Everything of one kind.

    A module has one thing under the attribute, or several in a list whose name is the attribute
    with an "S": the module `adam` has `SPEC`, the package `vision` has `TASKS`. A package with a
    module `plan` has one thing, whose name is the package's.

    Args:
        what: A word for it.
        package: The package whose modules are ours; also the group of entry points.
        attribute: The name under which a module has it.
        kind: Its class.
        order: Which names come first; those that are not in it follow, sorted.
    """

    what: str
    package: str
    attribute: str
    kind: type[T]
    order: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return all names, in their order."""
        places = {name: place for place, name in enumerate(self.order)}
        return sorted(self._all(), key=lambda name: (places.get(name, len(places)), name))

    def get(self, name: str) -> T:
        """Return one.

        Raises:
            ValueError: there is none of that name, or it cannot be loaded.
        """
        found = self._all()
        if name not in found:
            known = f"{instead(name, self.names())} {own_hint(self.what)}"
            raise ValueError(f"there is no {self.what} {name!r}; {known}")
        return found[name].load()

    def source(self, name: str) -> Source | None:
        """Return the source of one that is not ours; None of ours, or if there is none."""
        found = self._all().get(name)
        return found.source() if found else None

    def _all(self) -> Mapping[str, Found]:
        folders = filter(None, os.environ.get(PLUGINS, "").split(os.pathsep))
        return _collect(self, tuple(folders), tuple(sys.path))


def own_hint(what: str) -> str:
    """Return how one that is not ours is found, in words."""
    return f"A {what} of your own is found with --plugins DIR, the folder of its file."


def is_name(value: Any) -> bool:
    """Tell whether a value can be a name: of a file too, and never a path out of its folder.

    Example:
        >>> is_name("digits_mlp"), is_name("../secret"), is_name("")
        (True, False, False)
    """
    return (
        isinstance(value, str)
        and 0 < len(value) <= 100
        and value.isprintable()
        and value[0] not in ". "
        and not set(value) & set("/\\:")
    )


def instead(word: str, known: list[str]) -> str:
    """Return what to write in place of an unknown word.

    Example:
        >>> instead("adan", ["adam", "sgd"]), instead("x", ["adam", "sgd"])
        ("did you mean 'adam'?", 'there are adam, sgd.')
    """
    close = difflib.get_close_matches(word, known)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."


@lru_cache(maxsize=16)  # asked for at every look-up
def _collect(
    registry: Registry[Any], folders: tuple[str, ...], path: tuple[str, ...]
) -> Mapping[str, Found]:
    """Return everything of a registry by its name; `path` is where packages are looked for."""
    found: dict[str, Found] = {}
    for one in (
        *_own(registry),
        *(one for folder in folders for one in _of_folder(registry, Path(folder).resolve())),
        *_of_packages(registry),
    ):
        if one.name in found:
            raise RefusedError(
                f"the {registry.what} of {one.where} is named {one.name!r}, as is "
                f"that of {found[one.name].where}; give it another name."
            )
        found[one.name] = one
    return found


def _own(registry: Registry[Any]) -> Iterator[Found]:
    package = importlib.import_module(registry.package)
    for module in pkgutil.iter_modules(package.__path__):
        full = f"{registry.package}.{module.name}"
        folder = Path(package.__path__[0], module.name)
        if module.ispkg and not (folder / "plan.py").is_file():
            for thing in _things(registry, importlib.import_module(full)):
                yield Found(thing.name, full, lambda t=thing: t)
        elif module.name[0] != "_":

            def load(full: str = full) -> Any:
                return getattr(importlib.import_module(full), registry.attribute)

            yield Found(module.name, full, load)


def _things(registry: Registry[Any], module: ModuleType) -> list[Any]:
    """Return what a module has for a registry: one thing, several, or none."""
    one = getattr(module, registry.attribute, None)
    return [*([] if one is None else [one]), *getattr(module, f"{registry.attribute}S", ())]


def _of_folder(registry: Registry[Any], folder: Path) -> Iterator[Found]:
    if not folder.is_dir():
        raise RefusedError(f"{PLUGINS} names {folder}, and there is no such folder.")
    importlib.invalidate_caches()  # files may be new
    for path in sorted(folder.glob("*.py")):
        if path.name[0] != "_":
            for thing in _things(registry, _module(path)):
                _check(registry, thing, str(path))
                source = Source(str(path), code_of(path))
                yield Found(thing.name, str(path), lambda t=thing: t, lambda s=source: s)


def _of_packages(registry: Registry[Any]) -> Iterator[Found]:
    for point in entry_points(group=registry.package):
        where = f"{point.value} ({point.dist.name if point.dist else 'a package'})"

        def load(point: Any = point, where: str = where) -> Any:
            with _refusing(where):
                thing = point.load()
            _check(registry, thing, where)
            if thing.name != point.name:
                raise RefusedError(
                    f"the entry point {point.name!r} and the {registry.what} "
                    f"{thing.name!r} of {where} must have one name."
                )
            return thing

        def source(point: Any = point, where: str = where) -> Source | None:
            with _refusing(where):
                spec = importlib.util.find_spec(point.module)
            path = Path(spec.origin) if spec and spec.origin else None
            return Source(str(path), code_of(path)) if path and path.is_file() else None

        yield Found(point.name, where, load, source)


def _module(path: Path) -> ModuleType:
    """Return a user's file as a module; files of one folder may import each other relatively."""
    package = f"_hvadam_plugins_{crc32(str(path.parent).encode()):08x}"
    if package not in sys.modules:
        parent = ModuleType(package)
        parent.__path__ = [str(path.parent)]
        sys.modules[package] = parent
    with _refusing(str(path)):
        return importlib.import_module(f"{package}.{path.stem}")


def code_of(path: Path) -> str:
    """Return a hash of a file's source, and of all that it imports from its own folder.

    What it reads or imports in other ways, by a name that is only known as it runs, is not seen.
    """
    found: dict[str, str] = {}
    left = [path]
    while left:
        file = left.pop()
        name = file.relative_to(path.parent).as_posix()
        if name not in found:
            source = file.read_bytes().replace(b"\r\n", b"\n")
            found[name] = hashlib.sha256(source).hexdigest()
            with suppress(SyntaxError, ValueError, IndexError):  # then nobody has imported it
                left += _imported(ast.parse(source), file, path.parent)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def _imported(tree: ast.AST, file: Path, root: Path) -> Iterator[Path]:
    """Give the files under a folder that a module of it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            starts, names = (root, root.parent), [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            starts = (file.parents[node.level - 1],) if node.level else (root, root.parent)
            names = [module, *(f"{module}.{one.name}".strip(".") for one in node.names)]
        else:
            continue
        for start, name in itertools.product(starts, names):
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                place = start.joinpath(*parts[:end])
                for found in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                    if found.is_relative_to(root) and found.is_file():
                        yield found


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """Enter a context in which another's code may fail, and is named in one line if it does."""
    try:
        yield
    except SystemExit as error:
        raise RefusedError(f"{where} cannot be loaded: it calls sys.exit({error.code}).") from error
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise RefusedError(f"{where} cannot be loaded: {why}") from error


def _check(registry: Registry[Any], thing: Any, where: str) -> None:
    if not isinstance(thing, registry.kind):
        raise RefusedError(
            f"{registry.attribute} of {where} must be of the class "
            f"{registry.kind.__name__}, got {type(thing).__name__}."
        )
    if not is_name(thing.name):
        raise RefusedError(
            f"the name of the {registry.what} of {where} must be a plain one, without a path in "
            f"it, got {thing.name!r}."
        )
