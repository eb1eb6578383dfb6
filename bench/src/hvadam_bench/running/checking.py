"""What the plain values of a record must be, so that whoever reads the record can rely on them.

Records are merged between machines and versions. A field that is not known here is a newer
version's and is left alone; one with values that nobody here could use is refused by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from hvadam_bench.registry import is_name
from hvadam_bench.running.config import RunConfig

# Of options, settings and the like, which may be nested; what is deeper was made to do harm.
DEPTH = 10


class Rule(NamedTuple):
    """What a value must be: a test, and the same in words."""

    holds: Callable[[Any], bool]
    words: str


def check_record(
    plain: Any, statuses: Iterable[str], measured: Iterable[str], roles: Iterable[str]
) -> None:
    """Refuse the plain values of a record that nobody could use.

    Args:
        plain: The values.
        statuses: All that a run may end with.
        measured: Those of them with something to show for it.
        roles: All that a run may be made for.

    Raises:
        ValueError: a value is missing or not what it must be; the message says which one.
    """
    rules = {
        **_RECORD,
        "status": _one_of(statuses),
        "role": _one_of(roles),
    }
    _check_fields("", plain, rules, _NEEDED)
    config = plain["config"]
    unknown = sorted(set(config) - {one.name for one in fields(RunConfig)})
    if unknown:
        raise ValueError(f"config has {', '.join(map(repr, unknown))}, which is not known here")
    _check_fields("config.", config, _CONFIG, ("task", "contender"))
    for place, point in enumerate(plain["curve"]):
        _check_fields(f"curve[{place}].", point, _POINT, tuple(_POINT)[:5])
    for network, decay in plain.get("decay", {}).items():
        _check_fields(f"decay[{network!r}].", decay, _DECAY, tuple(_DECAY))
    _check_metric(plain, plain["status"] in measured)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, and neither a truth nor too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # so that a NaN fails


def _check_fields(where: str, plain: Any, rules: Mapping[str, Rule], needed: Iterable[str]) -> None:
    if not isinstance(plain, dict):
        raise ValueError(f"{where.rstrip('.') or 'it'} must be a table of names and values")
    for name in needed:
        if name not in plain:
            raise ValueError(f"{where}{name} is missing")
    for name, rule in rules.items():
        if name in plain and not rule.holds(plain[name]):
            shown = repr(plain[name]) if _is_shallow(plain[name]) else "something nested"
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise ValueError(f"{where}{name} must be {rule.words}, got {shown}")


def _check_metric(plain: Mapping[str, Any], is_measured: bool) -> None:
    metric = plain.get("metric", "loss")
    if any(metric not in point["valid"] for point in plain["curve"]):
        raise ValueError(f"curve has a point without {metric!r}, its metric")
    if is_measured and not plain["curve"]:
        raise ValueError(f"curve is empty, and its status is {plain['status']!r}")
    if is_measured and metric not in plain["test"]:
        raise ValueError(f"test has no {metric!r}, its metric")


def _is_shallow(value: Any, depth: int = DEPTH) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_is_shallow(inner, depth - 1) for inner in value.values())
    if isinstance(value, list | tuple):
        return depth > 0 and all(_is_shallow(inner, depth - 1) for inner in value)
    return True


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and _is_shallow(value)


def _has_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and is_number(value) and value >= 0


def _one_of(words: Iterable[str]) -> Rule:
    known = tuple(words)
    return Rule(lambda value: isinstance(value, str) and value in known, f"one of {known}")


_TEXT = Rule(lambda value: isinstance(value, str), "a string")
_NAME = Rule(is_name, "a plain name, without a path in it")
_NUMBER = Rule(is_number, "a number")
_NUMBER_OR_NONE = Rule(lambda value: value is None or is_number(value), "a number or null")
_COUNT = Rule(_is_count, "a whole number of at least 0")
_TABLE = Rule(_is_table, f"a table of names and values, nested at most {DEPTH} deep")
_NUMBERS = Rule(_has_numbers, "a table of numbers")
_LIST = Rule(lambda value: isinstance(value, list | tuple), "a list")
_OPTIONS = Rule(
    lambda value: _is_table(value) and ("lr" not in value or is_number(value["lr"])),
    "a table of options with a number as its learning rate",
)

_RECORD = {
    "config": Rule(lambda value: isinstance(value, dict), "a table of names and values"),
    "reason": _TEXT,
    "curve": _LIST,
    "test": _NUMBERS,
    "train_seconds": _NUMBER,
    "evaluation_seconds": _NUMBER,
    "environment": _TABLE,
    "artifacts": Rule(
        lambda value: isinstance(value, list | tuple) and all(map(is_name, value)),
        "a list of plain names, without a path in them",
    ),
    "title": _TEXT,
    "metric": _TEXT,
    "goal": _one_of(("min", "max")),
    "published": _NUMBER_OR_NONE,
    "basis": _TABLE,
    "study": _TEXT,
    "decay": Rule(lambda value: isinstance(value, dict), "a table by network"),
    "test_parts": Rule(
        lambda value: isinstance(value, list | tuple) and all(map(is_number, value)),
        "a list of numbers",
    ),
    "gradient_evaluations": _COUNT,
    "alone": Rule(lambda value: value is None or isinstance(value, bool), "true, false or null"),
}
_NEEDED = ("config", "status", "reason", "curve", "test", "train_seconds", "evaluation_seconds")
_NEEDED += ("environment",)
_CONFIG = {
    "task": _NAME,
    "contender": _NAME,
    "scale": _NAME,
    "seed": _COUNT,
    "options": _OPTIONS,
    "settings": _TABLE,
    "protocol": _TEXT,
    "variant": _TEXT,
}
_POINT = {
    "step": _COUNT,
    "examples": _COUNT,
    "seconds": _NUMBER,
    "train_loss": _NUMBER_OR_NONE,
    "valid": _NUMBERS,
    "diagnostics": Rule(
        lambda value: isinstance(value, dict) and all(map(_has_numbers, value.values())),
        "a table of numbers by network",
    ),
}
_DECAY = {"kind": _one_of(("decoupled", "coupled", "none")), "value": _NUMBER}
