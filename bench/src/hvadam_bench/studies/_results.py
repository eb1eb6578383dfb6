"""The JSON form of a study's result: frozen dataclasses to plain values and back, by cattrs.

A dataclass is an object of its fields, a tuple a list, an infinity "inf" or "-inf". Properties that
a class names in ``DERIVED`` are written after its fields, for readers without this code, and are
worked out again when the file is read. A study whose results are plain values has ``dict`` for a
class.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, TypeVar

from cattrs import ClassValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from hvadam_bench.running.files import write_atomically

T = TypeVar("T")


def to_json(result: Any) -> Any:
    """Return a result as values that ``json.dumps`` writes."""
    return _CONVERTER.unstructure(result)


def from_json(kind: type[T], plain: Any) -> T:
    """Return the result of this type that ``to_json`` made these plain values of.

    Raises:
        ValueError: An object lacks a field of its class, or has one that its class has not.
    """
    try:
        return _CONVERTER.structure(plain, kind)
    except ClassValidationError as error:
        wrong = "; ".join(transform_error(error))
        raise ValueError(
            f"{kind.__name__}: {wrong}. Was the file written by another version?"
        ) from error


def save(result: Any, path: Path) -> None:
    """Write a result as JSON, whole or not at all."""
    text = json.dumps(to_json(result), indent=1, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def load(kind: type[T], path: Path) -> T:
    """Return the result of this type that a file holds; ValueError if it holds something else."""
    return from_json(kind, json.loads(path.read_text(encoding="utf-8")))


def _write_object(kind: Any) -> Any:
    fields = make_dict_unstructure_fn(kind, _CONVERTER)
    derived = getattr(kind, "DERIVED", ())
    return lambda one: fields(one) | {name: to_json(getattr(one, name)) for name in derived}


def _read_object(kind: Any) -> Any:
    fields = make_dict_structure_fn(kind, _CONVERTER, _cattrs_forbid_extra_keys=True)
    derived = getattr(kind, "DERIVED", ())
    if not derived:
        return fields
    return lambda plain, _: fields({k: x for k, x in plain.items() if k not in derived}, kind)


def _write_float(x: float) -> float | str:
    return str(x) if isinstance(x, float) and math.isinf(x) else x


_CONVERTER = Converter(unstruct_collection_overrides={tuple: list})
_CONVERTER.register_unstructure_hook(float, _write_float)
_CONVERTER.register_structure_hook(float, lambda x, _: float(x) if isinstance(x, str) else x)
_CONVERTER.register_unstructure_hook_factory(dataclasses.is_dataclass, _write_object)
_CONVERTER.register_structure_hook_factory(dataclasses.is_dataclass, _read_object)
