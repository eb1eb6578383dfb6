"""Step times that nobody measured, and a clock that only steps move."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from hvadam_bench.studies.speed.contenders import ADAM, Contender
from hvadam_bench.studies.speed.plan import Shape

TINY = Shape("tiny", "two tensors", ((30, 10), (7,)))


def made_row(contender: str, seconds: float, **facts: Any) -> dict[str, Any]:
    """Return a row of so many seconds in each of three rounds, versus 1, 1/2 and 2 of them."""
    return {
        **{"contender": contender, "steps": 1, "reference_steps": 1},
        **{"seconds": [seconds] * 3, "reference_seconds": [1.0, 0.5, 2.0]},
        **{"milliseconds": 1e3 * seconds, "moved_bytes": 48.0, "limit": 12 / 7},
        **{"state_bytes": 12 * TINY.parameters, "temporary_bytes": 36 * TINY.parameters},
        **{"parameters": TINY.parameters, "kernels": ["loop"]},
        **facts,
    }


def made_result(
    *results: dict[str, Any], cache_bytes: int = 0, skipped: Sequence[dict[str, str]] = ()
) -> dict[str, Any]:
    """Return a result with these rows, on a machine with one cache."""
    about = {"name": TINY.name, "title": TINY.title, "parameters": TINY.parameters}
    return {
        "versions": {"jax": "0", "optax": "0"},
        "machine": {"cpu": "a processor", "caches": {"L3": cache_bytes}},
        **{"threads": 1, "counts": [1], "plan": {"rounds": 7}, "reference": "Adam"},
        "bandwidth_gb_per_second": {"copy": [9.0, 10.0], "scale in place": [20.0]},
        "shapes": [{**about, "results": list(results), "skipped": list(skipped)}],
    }


class FakeTime:
    """A clock that only steps of its own optimizers move, and a list of who stepped."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = 1.0
        self.steps: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    @property
    def names(self) -> list[str]:
        """Return who stepped."""
        return [name for name, _ in self.steps]

    def contender(self, name: str, seconds: float, shared: float = 0.0) -> Contender:
        """Return one whose step takes so long, and what all threads share."""

        def step() -> None:
            threads = torch.get_num_threads()
            self.now += (seconds + shared / threads) * self.pace
            self.steps.append((name, threads))

        def build(params: object) -> Any:
            return SimpleNamespace(step=step, state={})

        return Contender(name, build, {}, ADAM)
