"""Plain values of JSON: a line with a checksum, and classes whose fields a reader can rely on.

Records are merged between machines and versions. A field that a class does not know is a newer
version's and is left out; one with a value that nobody here could use is refused by its name.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from hvadam_bench.registry import is_name

# Options, settings and the like may be nested; what is deeper was made to do harm.
DEPTH = 10


class Rule(NamedTuple):
    """What a value must be: a test, and the same in words."""

    holds: Callable[[Any], bool]
    words: str


def parse(line: str) -> dict[str, Any]:
    """Return the plain values of a line, without their checksum.

    Raises:
        ValueError: they are not as they were written.
    """
    try:
        plain = json.loads(line)
        if not isinstance(plain, dict) or plain.pop("checksum", None) != _checksum(plain):
            raise ValueError("its checksum is wrong")
        if "\\ud" in line:  # half a character, which no page could show
            json.dumps(plain, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return plain


def to_line(plain: Mapping[str, Any]) -> str:
    """Return plain values as one line of JSON, with a checksum in it."""
    return json.dumps({**plain, "checksum": _checksum(plain)}, separators=(",", ":"))


def _checksum(plain: Mapping[str, Any]) -> str:
    """Return a hash of plain values, whatever their order and however they are written."""
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, and neither a truth nor too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # so that a NaN fails


def is_count(value: Any, least: int = 1) -> bool:
    """Tell whether a value is a whole number of at least so many."""
    return isinstance(value, int) and is_number(value) and value >= least


def read(kind: Any, plain: Any, where: str = "") -> Any:
    """Return plain values as a class, or as what the type of a class's field says.

    Raises:
        ValueError: a value is missing or not what it must be; the message says which one.
    """
    if (rule := _rule_of(kind)) is not None:
        _require(rule, plain, where)
        return plain
    if is_dataclass(kind):
        return _read_object(kind, plain, where)
    origin, given = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if plain is None else read(given[0], plain, where)
    if origin is tuple:
        _require(_LIST, plain, where)
        return tuple(read(given[0], one, f"{where}[{i}]") for i, one in enumerate(plain))
    _require(_TABLE, plain, where)
    return {name: read(given[1], one, f"{where}[{name!r}]") for name, one in plain.items()}


def _read_object(kind: Any, plain: Any, where: str) -> Any:
    _require(_TABLE, plain, where)
    found: dict[str, Any] = {}
    for name, (own, rule, is_needed) in _fields_of(kind).items():
        if name in plain and rule is not None and rule.holds(plain[name]):
            found[name] = plain[name]  # most of all there is: thousands of records have millions
        elif name in plain or is_needed:
            place = f"{where}.{name}" if where else name
            if name not in plain:
                raise ValueError(f"{place} is missing")
            found[name] = read(own, plain[name], place)
    return kind(**found)


@cache
def _fields_of(kind: Any) -> dict[str, tuple[Any, Rule | None, bool]]:
    """Return the fields of a class: of which type and rule, and whether they have no default."""
    types = get_type_hints(kind, include_extras=True)
    return {
        one.name: (
            types[one.name],
            _rule_of(types[one.name]),
            one.default is MISSING and one.default_factory is MISSING,
        )
        for one in fields(kind)
    }


@cache
def _rule_of(kind: Any) -> Rule | None:
    """Return what a value of a type must be, where no part of it is read by itself."""
    given = get_args(kind)
    if get_origin(kind) is Annotated:
        return given[1]
    if get_origin(kind) is Literal:
        return Rule(lambda value: value in given, f"one of {given}")
    if kind == Mapping[str, float]:
        return _NUMBERS
    return _PLAIN.get(kind)


def _require(rule: Rule, value: Any, where: str) -> None:
    if not rule.holds(value):
        shown = repr(value) if _is_shallow(value) else "something nested"
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        raise ValueError(f"{where or 'it'} must be {rule.words}, got {shown}")


def _is_shallow(value: Any, depth: int = DEPTH) -> bool:
    if not isinstance(value, dict | list | tuple):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(one, depth - 1) for one in inner)


def _is_options(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_shallow(value):
        return False
    rate = value.get("lr", 0.0)
    return is_number(rate) and rate >= 0


_TABLE = Rule(lambda value: isinstance(value, dict), "a table of names and values")
_NUMBERS = Rule(
    lambda value: isinstance(value, dict) and all(map(is_number, value.values())),
    "a table of numbers",
)
_LIST = Rule(lambda value: isinstance(value, list | tuple), "a list")
_PLAIN = {
    str: Rule(lambda value: isinstance(value, str), "a string"),
    float: Rule(is_number, "a number"),
    bool: Rule(lambda value: isinstance(value, bool), "true or false"),
    Any: Rule(_is_shallow, f"nested at most {DEPTH} deep"),
}

# Types of fields that say more than a class.
Name = Annotated[str, Rule(is_name, "a plain name, without a path in it")]
Count = Annotated[int, Rule(lambda n: is_count(n, 0), "a whole number of at least 0")]
Options = Annotated[
    Mapping[str, Any], Rule(_is_options, "a table of options with a learning rate of at least 0")
]
