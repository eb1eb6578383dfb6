"""Steps of Optax's optimizers and of HVAdam for JAX versus ``optax.adam``.

A step is compiled as a whole, from gradients to new parameters, with parameters and state donated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter, process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hvadam.jax import hvadam
from hvadam_bench.studies._pairs import Clock, Field, race_all, warm_up
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.plan import Plan, Shape

REFERENCE = "Adam"
CONTENDERS: Mapping[str, Callable[[float], Any]] = {
    "HVAdam": hvadam,
    REFERENCE: optax.adam,  # against another copy of itself, it shows the noise
    "AdaBelief": optax.adabelief,
}
RATE = 1e-3


def benchmark(
    plan: Plan, on_progress: OnProgress = ignore_progress, *, clock: Clock = perf_counter
) -> dict[str, Any]:
    """Time every contender on every shape."""
    new = partial(Trial, plan=plan, clock=clock)
    fields = [
        Field(
            shape.about,
            shape.parameters,
            partial(new, REFERENCE, shape),
            {name: partial(new, name, shape) for name in CONTENDERS},
            at_once=len(CONTENDERS),
        )
        for shape in plan.shapes
    ]
    versions = {"jax": jax.__version__, "optax": optax.__version__}
    shapes = race_all(fields, plan.rounds, on_progress)
    return {"versions": versions, "reference": REFERENCE, "shapes": shapes}


class Trial:
    """An optimizer with arrays of its own, compiled and warmed up.

    Attributes:
        facts: The steps in a timed group, the most bytes that one holds besides parameters,
            gradients and state, as XLA accounts for them, and the processor's seconds to compile.
    """

    def __init__(
        self, name: str, shape: Shape, reference: object = None, *, plan: Plan, clock: Clock
    ) -> None:
        self._clock, self._turn = clock, 0
        random = np.random.default_rng(0)  # the same numbers for everyone
        self._params, *self._gradients = (
            [jnp.asarray(0.01 * random.standard_normal(size, np.float32)) for size in shape.sizes]
            for _ in range(3)
        )
        optimizer = CONTENDERS[name](RATE)
        self._state = optimizer.init(self._params)

        def step(params: Any, state: Any, grads: Any) -> Any:
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state

        lowered = jax.jit(step, donate_argnums=(0, 1)).lower(
            self._params, self._state, self._gradients[0]
        )
        before = process_time()
        self._step = lowered.compile()
        seconds = process_time() - before
        memory = self._step.memory_analysis()
        assert memory is not None
        self._steps = warm_up(self.run, plan.group_seconds)
        self.facts: dict[str, Any] = {
            **{"steps": self._steps, "parameters": shape.parameters},
            **{"temporary_bytes": memory.temp_size_in_bytes, "compile_seconds": seconds},
        }

    def run(self, steps: int) -> float:
        """Return seconds per step, with gradients that take turns, until the results are there."""
        before = self._clock()
        for _ in range(steps):
            self._turn += 1
            grads = self._gradients[self._turn % len(self._gradients)]
            self._params, self._state = self._step(self._params, self._state, grads)
        jax.block_until_ready((self._params, self._state))
        return (self._clock() - before) / steps

    def group(self, threads: int | None) -> dict[str, float]:
        """Return the seconds of a step in a group."""
        return {"seconds": self.run(self._steps)}

    def close(self) -> None:
        """Free the arrays; the facts stay."""
        del self._params, self._gradients, self._state, self._step
