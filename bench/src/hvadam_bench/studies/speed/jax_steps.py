"""Steps of Optax's optimizers and of HVAdam for JAX versus ``optax.adam``.

A step is compiled as a whole, from gradients to new parameters, with parameters and state donated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hvadam.jax import hvadam
from hvadam_bench.studies._pairs import Clock, Pair, race, warm_up
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.results import Budget, JaxMeasurement, JaxSpeed, JaxTiming, made
from hvadam_bench.studies.speed.shapes import Shape

REFERENCE = "Adam"
CONTENDERS: Mapping[str, Callable[[float], Any]] = {
    "HVAdam": hvadam,
    REFERENCE: optax.adam,  # against another copy of itself, it shows the noise
    "AdaBelief": optax.adabelief,
}
RATE = 1e-3


class JaxTrial:
    """An optimizer with arrays of its own, compiled and warmed up."""

    def __init__(self, name: str, shape: Shape, budget: Budget, clock: Clock) -> None:
        self._clock = clock
        self._params, *self._gradients = _arrays(shape)
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
        self.compile_seconds = process_time() - before
        memory = self._step.memory_analysis()
        assert memory is not None
        self.temporary_bytes = int(memory.temp_size_in_bytes)
        self._turn = 0
        self.steps = warm_up(self.run, budget.warm_up, budget.group_seconds)
        self.group = partial(self.run, self.steps)

    def run(self, steps: int) -> float:
        """Return seconds per step, with gradients that take turns."""
        before = self._clock()
        for _ in range(steps):
            self._turn += 1
            grads = self._gradients[self._turn % len(self._gradients)]
            self._params, self._state = self._step(self._params, self._state, grads)
        jax.block_until_ready((self._params, self._state))
        return (self._clock() - before) / steps


def benchmark(
    shapes: Sequence[Shape],
    budget: Budget,
    *,
    threads: int = 1,
    clock: Clock = perf_counter,
    on_progress: OnProgress = ignore_progress,
) -> JaxSpeed:
    """Time every contender on every shape, on the cores that `limit_threads` left."""
    found: list[JaxMeasurement] = []
    for shape in shapes:
        trials: dict[str, JaxTrial] = {}
        for name in CONTENDERS:
            on_progress(f"{shape.name}: compiling {name}", 0.0)
            trials[name] = JaxTrial(name, shape, budget, clock)
        beside = JaxTrial(REFERENCE, shape, budget, clock)
        pairs = [
            Pair(f"{shape.name}: {name}", one.group, beside.group) for name, one in trials.items()
        ]
        times = race(pairs, budget.rounds, on_progress, 1 / len(shapes))
        results = [
            JaxTiming(
                *own,
                contender=name,
                steps=one.steps,
                parameters=shape.parameters,
                temporary_bytes=one.temporary_bytes,
                compile_seconds=one.compile_seconds,
            )
            for (name, one), own in zip(trials.items(), times, strict=True)
        ]
        found.append(JaxMeasurement(shape.name, shape.title, tuple(results)))
    return JaxSpeed(
        **made(jax=jax.__version__, optax=optax.__version__),
        threads=threads,
        plan=budget,
        reference=REFERENCE,
        shapes=tuple(found),
    )


def limit_threads(count: int) -> None:
    """Leave this process so many cores: XLA asks for them once, when it is first used."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows: XLA takes what it finds
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _arrays(shape: Shape) -> list[list[Any]]:
    """Return parameters and two sets of gradients, the same for every contender."""
    random = np.random.default_rng(0)
    return [
        [jnp.asarray(0.01 * random.standard_normal(size, np.float32)) for size in shape.sizes]
        for _ in range(3)
    ]
