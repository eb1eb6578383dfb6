"""The JSON form of a study's result: frozen dataclasses to plain values and back.

A dataclass is an object of its fields, a tuple a list, an infinity "inf" or "-inf". Properties that
a class names in ``DERIVED`` are written after its fields, for who reads the file without this code,
and worked out anew when it is read back.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return a result as values that ``json.dumps`` writes.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Span:
        ...     ends: tuple[float, ...]
        ...     unit: str | None
        >>> to_json(Span((1.0, 2.0), None))
        {'ends': [1.0, 2.0], 'unit': None}
    """
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: to_json(getattr(value, name)) for name in (*names, *_derived(value))}
    if isinstance(value, Mapping):
        return {key: to_json(x) for key, x in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(x) for x in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def from_json(kind: type[T], plain: Any) -> T:
    """Return the result of this type that ``to_json`` made these plain values of.

    Raises:
        ValueError: An object lacks a field of its class, or has one that its class has not.
    """
    return _read(kind, plain)


def _read(kind: Any, plain: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return _read_object(kind, plain)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        [some] = [one for one in arguments if one is not types.NoneType]
        return None if plain is None else _read(some, plain)
    if origin is tuple and arguments[-1] is ...:
        return tuple(_read(arguments[0], x) for x in plain)
    if origin is tuple:
        return tuple(_read(one, x) for one, x in zip(arguments, plain, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(arguments[1], x) for key, x in plain.items()}
    return float(plain) if kind is float and isinstance(plain, str) else plain


def _read_object(kind: Any, plain: Mapping[str, Any]) -> Any:
    hints = _fields(kind)
    given = {key: value for key, value in plain.items() if key not in _derived(kind)}
    if given.keys() != hints.keys():
        raise ValueError(
            f"{kind.__name__}: fields must be {', '.join(hints)}; got {', '.join(given)}. "
            "Was the file written by another version?"
        )
    return kind(**{key: _read(hints[key], value) for key, value in given.items()})


@cache
def _fields(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _derived(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "DERIVED", ())
