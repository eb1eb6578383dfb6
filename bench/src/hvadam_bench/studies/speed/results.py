"""Results of the study: every raw time, and what it was made with. It loads no framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from hvadam import info
from hvadam_bench.studies._pairs import Paired, Quartiles, Skip, divide

# By how much a ratio to fused Adam may grow from the fewest threads to more: the kernel is to gain
# from them as fused Adam does.
MOST_GROWTH = 1.10


@dataclass(frozen=True)
class Budget:
    """How much is measured."""

    rounds: int = 7
    group_seconds: float = 0.05  # at least, of the steps that are timed together
    warm_up: int = 3  # steps
    temporaries: bool = True
    memory: float = 8e9  # bytes that tensors may take, roughly


@dataclass(frozen=True)
class Made:
    """When a result was made, and with what."""

    date: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]


def made(**versions: str) -> dict[str, Any]:
    """Return the fields of `Made`, with versions of more packages."""
    found = info.collect()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": found["versions"] | versions,
        "machine": found["machine"] | {"native_instruction_set": found.get("instruction_set")},
    }


@dataclass(frozen=True)
class Measured:
    """What was measured on one shape or workload, without its results."""

    name: str
    title: str
    parameters: int
    skipped: tuple[Skip, ...]


@dataclass(frozen=True)
class StepTime(Paired):
    """Steps of a contender, each group next to one of the reference, in seconds per step."""

    contender: str
    steps: int  # in each timed group

    @property
    def milliseconds(self) -> float:
        """Return the median time of a step."""
        return 1e3 * Quartiles.of(self.seconds).median


@dataclass(frozen=True)
class Timing(StepTime):
    """What was measured of one contender on one shape."""

    parameters: int
    reference_steps: int
    state_bytes: int
    temporary_bytes: int | None  # None: not measured
    moved_bytes: float  # per parameter, at the least
    limit: float  # of the ratio, where memory is what both wait for
    kernels: tuple[str, ...]

    DERIVED: ClassVar = (
        *("ratios", "ratio", "milliseconds", "gb_per_second"),
        *("state_bytes_per_parameter", "temporary_bytes_per_parameter"),
    )

    @property
    def gb_per_second(self) -> float:
        """Return the rate of the least possible traffic; what moves twice is not counted twice."""
        return self.moved_bytes * self.parameters / Quartiles.of(self.seconds).median / 1e9

    @property
    def state_bytes_per_parameter(self) -> float:
        """Return what stays between steps."""
        return self.state_bytes / self.parameters

    @property
    def temporary_bytes_per_parameter(self) -> float | None:
        """Return what a step holds at once beyond what it keeps; None if it was not measured."""
        return None if self.temporary_bytes is None else self.temporary_bytes / self.parameters


@dataclass(frozen=True)
class Measurement(Measured):
    """All contenders on one shape."""

    tensors: int
    results: tuple[Timing, ...]

    def of(self, contender: str) -> Timing | None:
        """Return the timing of a contender; None if it was skipped."""
        return next((row for row in self.results if row.contender == contender), None)


@dataclass(frozen=True)
class Growth:
    """Step times on shapes that grow in parameters, and on shapes that grow in tensors."""

    by_parameters: tuple[Measurement, ...]
    by_tensors: tuple[Measurement, ...]


@dataclass(frozen=True)
class Speed(Made):
    """Steps on one number of threads, with the options of those who took them."""

    threads: int
    plan: Budget
    bandwidth_gb_per_second: Mapping[str, tuple[float, ...]]  # of simple passes over memory
    reference: str
    contenders: Mapping[str, Mapping[str, Any]]
    shapes: tuple[Measurement, ...]
    growth: Growth | None

    @property
    def copy_rate(self) -> float:
        """Return the best rate of copying, in GB/s."""
        return max(self.bandwidth_gb_per_second["copy"])

    @property
    def fastest_rate(self) -> float:
        """Return the best rate of any simple pass: what this machine can move, in GB/s."""
        return max(max(rates) for rates in self.bandwidth_gb_per_second.values())

    @property
    def cache_bytes(self) -> int:
        """Return the size of the largest cache; 0 if unknown."""
        return max(self.machine["caches"].values(), default=0)

    def fits_cache(self, measurement: Measurement) -> bool:
        """Return whether Adam's tensors, the smallest of all contenders', stay in the cache."""
        return 16 * measurement.parameters <= self.cache_bytes


def contender_names(measured: Sequence[Measurement | ThreadMeasurement]) -> list[str]:
    """Return the names of all that ran, in order."""
    return list(dict.fromkeys(row.contender for one in measured for row in one.results))


@dataclass(frozen=True)
class ThreadTiming(StepTime):
    """Steps of one contender with so many threads, the reference's with as many."""

    threads: int

    DERIVED: ClassVar = ("milliseconds", "ratio")


@dataclass(frozen=True)
class ThreadMeasurement(Measured):
    """All contenders on one shape, with every number of threads."""

    results: tuple[ThreadTiming, ...]

    def of(self, contender: str, threads: int) -> ThreadTiming:
        """Return the timing of a contender that ran."""
        wanted = (contender, threads)
        return next(row for row in self.results if (row.contender, row.threads) == wanted)

    def growth(self, contender: str, fewest: int, threads: int) -> Quartiles:
        """Return the quartiles of how a ratio to fused Adam grows with threads, round by round."""
        few, many = self.of(contender, fewest), self.of(contender, threads)
        return Quartiles.of(divide(many.ratios, few.ratios))


@dataclass(frozen=True)
class Placement:
    """Who touched HVAdam's tensors first, and what a step takes then; one entry per round.

    The tensors were made by one thread, and by all. A share is the largest one of the state's pages
    that a thread touched first. With one node of memory nothing is far away, and the times cannot
    differ by where pages lie. None is what the system does not say.
    """

    shape: str
    threads: int  # of the steps
    nodes: int | None
    one_share: float | None
    all_share: float | None
    one_seconds: tuple[float, ...]
    all_seconds: tuple[float, ...]

    DERIVED: ClassVar = ("ratio",)

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of the time on one thread's tensors in that on everyone's."""
        return Quartiles.of(divide(self.one_seconds, self.all_seconds))


@dataclass(frozen=True)
class ThreadSpeed(Made):
    """Steps with several numbers of threads."""

    alone: bool | None  # whether nobody else kept the machine busy; None if that is not known
    counts: tuple[int, ...]  # rising
    plan: Budget
    reference: str
    shapes: tuple[ThreadMeasurement, ...]
    placement: Placement | None


@dataclass(frozen=True)
class JaxTiming(StepTime):
    """What was measured of one optimizer on one shape."""

    parameters: int
    temporary_bytes: int  # as XLA accounts for them, with parameters and state donated
    compile_seconds: float  # of processor time, all threads together

    DERIVED: ClassVar = ("ratio", "temporary_bytes_per_parameter")

    @property
    def temporary_bytes_per_parameter(self) -> float:
        """Return what a step holds at once beyond parameters, gradients and state."""
        return self.temporary_bytes / self.parameters


@dataclass(frozen=True)
class JaxMeasurement:
    """All optimizers on one shape."""

    name: str
    title: str
    results: tuple[JaxTiming, ...]


@dataclass(frozen=True)
class JaxSpeed(Made):
    """Steps in JAX."""

    threads: int
    plan: Budget
    reference: str
    shapes: tuple[JaxMeasurement, ...]


@dataclass(frozen=True)
class TrainingTime(Paired):
    """Whole steps of one contender versus fused AdamW's, an entry per round in the tuples."""

    contender: str
    optimizer_seconds: tuple[float, ...]  # of a step
    reference_optimizer_seconds: tuple[float, ...]
    peak_bytes: int  # parameters, state, and the most that a step holds besides
    reference_peak_bytes: int

    DERIVED: ClassVar = ("added", "optimizer_ratio", "optimizer_share", "memory_added")

    @property
    def added(self) -> Quartiles:
        """Return what the contender adds to a training step, as a part of AdamW's."""
        return Quartiles.of([ratio - 1.0 for ratio in self.ratios])

    @property
    def optimizer_ratio(self) -> Quartiles:
        """Return the time of the optimizer alone over that of AdamW alone."""
        return Quartiles.of(divide(self.optimizer_seconds, self.reference_optimizer_seconds))

    @property
    def optimizer_share(self) -> Quartiles:
        """Return the optimizer's part of its training steps."""
        return Quartiles.of(divide(self.optimizer_seconds, self.seconds))

    @property
    def memory_added(self) -> float:
        """Return what the contender adds to the peak of memory, as a part of AdamW's."""
        return self.peak_bytes / self.reference_peak_bytes - 1


@dataclass(frozen=True)
class Trained(Measured):
    """All contenders on one workload."""

    results: tuple[TrainingTime, ...]


@dataclass(frozen=True)
class TrainingSpeed(Made):
    """Whole training steps."""

    threads: int
    rounds: int
    workloads: tuple[Trained, ...]


@dataclass(frozen=True)
class Overhead(Paired):
    """Blocks of the runner's steps, each before the same ones by hand, in seconds per step."""

    task: str
    clock: str  # "clock", or "CPU", which leaves out waiting for the disk or another process

    DERIVED: ClassVar = ("ratio", "total")

    @property
    def total(self) -> float:
        """Return the ratio of all blocks together, which counts every checkpoint."""
        return sum(self.seconds) / sum(self.reference_seconds)


@dataclass(frozen=True)
class RunnerCost(Made):
    """What the runner costs versus a loop written by hand."""

    block: int  # steps
    tasks: tuple[Overhead, ...]
