"""What a run is asked to do: plain frozen data, JSON both ways, with a hash that names the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from hvadam_bench.running.checking import Count, Name, Options

SCALES = ("smoke", "laptop", "paper")


def entrant(contender: str, variant: str) -> str:
    """Return the name of a variant of a contender.

    Example:
        >>> entrant("padam", "p 1/8"), entrant("adam", "")
        ('padam (p 1/8)', 'adam')
    """
    return f"{contender} ({variant})" if variant else contender


@dataclass(frozen=True)
class RunConfig:
    """One training of one contender on one task.

    Attributes:
        task: One of `hvadam_bench.tasks.names()`.
        contender: One of `hvadam_bench.contenders.names()`.
        scale: One of `SCALES`, or another that the task declares.
        seed: Of initial weights, order of data, dropout and augmentation.
        options: What to change of the contender's defaults, the learning rate above all.
        settings: What to change of the task's settings at that scale.
        protocol: "standard", or "inherited" where the task knows published quirks.
        variant: A word for the fixed options, where one contender competes several times.
    """

    task: Name
    contender: Name
    scale: Name = "laptop"
    seed: Count = 0
    options: Options = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = "standard"
    variant: str = ""

    @property
    def entrant(self) -> str:
        """Return who runs: the contender, and which variant of it."""
        return entrant(self.contender, self.variant)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order of keys."""
        return json.loads(_text({one.name: getattr(self, one.name) for one in fields(self)}))

    @cached_property  # a sweep asks for it again and again
    def key(self) -> str:
        """Return a name that equal configurations share and others do not.

        Example:
            >>> RunConfig("digits_mlp", "adam", options={"lr": 1e-3}).key
            '...'
        """
        return key_of({one.name: getattr(self, one.name) for one in fields(self)})


def key_of(plain: Mapping[str, Any]) -> str:
    """Return the name that a configuration of these plain values has, known here or not."""
    return hashlib.sha256(_text(plain).encode()).hexdigest()[:16]


def _text(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))
