"""Steps of Optax's optimizers and of HVAdam for JAX, timed in pairs beside ``optax.adam``.

A step is compiled as a whole, from gradients to new parameters, with parameters and state donated.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hvadam import info
from hvadam.jax import hvadam
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.jax_result import JaxMeasurement, JaxSpeed, JaxTiming
from hvadam_bench.studies.speed.result import Plan
from hvadam_bench.studies.speed.shapes import Shape
from hvadam_bench.studies.speed.timing import MOST_STEPS, race

REFERENCE = "Adam"
CONTENDERS: Mapping[str, Callable[[float], Any]] = {
    "HVAdam": hvadam,
    REFERENCE: optax.adam,  # against another copy of itself, it shows the noise
    "AdaBelief": optax.adabelief,
}
RATE = 1e-3


class JaxTrial:
    """An optimizer with arrays of its own, compiled and warmed up.

    Args:
        name: The contender.
        shape: The leaves.
        plan: How much is measured.
        clock: Seconds, from anywhere.
    """

    def __init__(self, name: str, shape: Shape, plan: Plan, clock: Callable[[], float]) -> None:
        self.contender = SimpleNamespace(name=name)
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
        fastest = min([self.run(1) for _ in range(plan.warm_up)][-2:])
        wanted = plan.group_seconds / fastest if fastest > 0 else MOST_STEPS
        self.steps = min(max(math.ceil(wanted), 1), MOST_STEPS)

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
    plan: Plan,
    *,
    threads: int = 1,
    clock: Callable[[], float] = perf_counter,
    on_progress: OnProgress = ignore_progress,
) -> JaxSpeed:
    """Time every contender on every shape.

    Args:
        shapes: On which all are timed.
        plan: How much.
        threads: How many cores JAX was given, see `limit_threads`.
        clock: Seconds, from anywhere.
        on_progress: Told between timed groups only.
    """
    found = info.collect()
    versions = {**found["versions"], "jax": jax.__version__, "optax": optax.__version__}
    share = 1.0 / len(shapes)
    return JaxSpeed(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions,
        machine=found["machine"],
        threads=threads,
        plan=plan,
        reference=REFERENCE,
        shapes=tuple(_measure(shape, plan, clock, share, on_progress) for shape in shapes),
    )


def limit_threads(count: int) -> None:
    """Leave this process so many cores: XLA asks for them once, when it is first used.

    Raises:
        ValueError: There are fewer.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS and Windows: XLA takes what it finds
        return
    cores = sorted(os.sched_getaffinity(0))
    if count > len(cores):
        raise ValueError(f"must be at most {len(cores)}, the cores here, got {count}.")
    os.sched_setaffinity(0, cores[:count])


def _measure(
    shape: Shape,
    plan: Plan,
    clock: Callable[[], float],
    share: float,
    on_progress: OnProgress,
) -> JaxMeasurement:
    """Compile all, then time all, each beside Adam."""
    trials: list[JaxTrial] = []
    for name in CONTENDERS:
        on_progress(f"{shape.name}: compiling {name}", 0.0)
        trials.append(JaxTrial(name, shape, plan, clock))
    beside = JaxTrial(REFERENCE, shape, plan, clock)
    part = share / (plan.rounds * len(trials))

    def advance(doing: str, done: int) -> None:
        on_progress(doing and f"{shape.name}: {doing}", done * part)

    pairs = race(trials, beside, plan.rounds, advance)  # pyright: ignore[reportArgumentType]
    results = [
        JaxTiming(
            contender=trial.contender.name,
            parameters=shape.parameters,
            steps=trial.steps,
            seconds=tuple(own for own, _ in times),
            reference_seconds=tuple(other for _, other in times),
            temporary_bytes=trial.temporary_bytes,
            compile_seconds=trial.compile_seconds,
        )
        for trial, times in zip(trials, pairs, strict=True)
    ]
    return JaxMeasurement(shape.name, shape.title, tuple(results))


def _arrays(shape: Shape) -> list[list[Any]]:
    """Return parameters and two sets of gradients, the same for every contender."""
    random = np.random.default_rng(0)
    return [
        [jnp.asarray(0.01 * random.standard_normal(size, np.float32)) for size in shape.sizes]
        for _ in range(3)
    ]
