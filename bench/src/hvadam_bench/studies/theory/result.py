"""What was measured of the theorems: the content of ``results/theory.json``.

Wherever a curve or a measurement may be None, its runs diverged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hvadam_bench.studies._words import FAILS, VACUOUS, all_of, on_bound

# What the theorems are called: by what they are of, and where the paper proves them.
HIDDEN_VECTOR = "Hidden vector (appendix B)"
REGRET = "Regret (appendix C)"
NONCONVEX = "Non-convex rate (appendix D)"

Curve = tuple[float, ...]  # a value for every recorded step


@dataclass(frozen=True)
class Fit:
    """A fitted exponent, with the 95% interval of a bootstrap over runs."""

    value: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class HiddenVectorMeasured:
    """The distance of the hidden vector from the trend, versus the bound of appendix B."""

    steps: tuple[int, ...]
    distance: Curve
    least_noise: Curve
    bound: Curve
    within_bound: bool
    worst_ratio: float
    norm_claims_broken: int
    exact: bool  # the distance is rounding
    slope: Fit | None
    slope_of_minimum: Fit | None
    rate: float | None  # r of a decay like exp(-r·T) at the end
    rate_predicted: float | None


@dataclass(frozen=True)
class HiddenVectorCase:
    """One kind of average in one dimension."""

    kind: str
    dimension: int
    measured: HiddenVectorMeasured | None


@dataclass(frozen=True)
class HiddenVector:
    """Appendix B: how fast the hidden vector finds the trend."""

    runs: int
    steps: int
    sigma: float
    beta1: float
    fitted: tuple[int, int]  # steps between which a power law is fitted
    constant: float
    limit_of_minimum: float
    cases: tuple[HiddenVectorCase, ...]


@dataclass(frozen=True)
class RegretCurve:
    """The regret over the seeds, and its exponent in the last tenth of the rounds."""

    mean: Curve
    low: Curve
    high: Curve
    slope: float | None


@dataclass(frozen=True)
class RegretConstants:
    """What the proof of appendix C takes for granted, and what was seen."""

    trivial: float  # the bound that holds whatever is played
    gain_max: float
    floor: float
    root_max: float
    root_max_printed: float
    hidden_max: float
    hidden_max_printed: float


@dataclass(frozen=True)
class RegretBound:
    """The bound of appendix C, as printed or corrected."""

    terms: Mapping[str, float]  # at the end
    total: Curve
    holds: bool


@dataclass(frozen=True)
class RegretProof:
    """The sums of the proof of appendix C, and the terms that bound them."""

    sums: Mapping[str, float]
    within_sums: bool
    printed: RegretBound
    corrected: RegretBound


@dataclass(frozen=True)
class RegretVariant:
    """One setting of β1 and of the maximum, on one family; the proof is None without it."""

    name: str
    curve: RegretCurve | None
    constants: RegretConstants | None
    proof: RegretProof | None


@dataclass(frozen=True)
class Family:
    """A family of online convex problems."""

    name: str
    about: str
    steepest: float | None  # None if it has no limit
    variants: tuple[RegretVariant, ...]  # with constant β1, decaying β1, and without the maximum


@dataclass(frozen=True)
class Regret:
    """Appendix C: regret in online convex problems."""

    rounds: int
    seeds: int
    dimension: int
    box: tuple[float, float]
    alpha1: float
    alpha2: float
    beta1: float
    beta2: float
    eps: float
    gamma: float
    beta1_decay: float  # λ of the corollary
    steps: tuple[int, ...]
    families: tuple[Family, ...]
    adam_on_spikes: RegretCurve | None

    def family(self, name: str) -> Family:
        """Return the family of this name."""
        return next(family for family in self.families if family.name == name)


@dataclass(frozen=True)
class NonconvexCurve:
    """The mean squared gradient norm over the seeds, and its exponent in the last tenth."""

    mean: Curve
    low: Curve
    high: Curve
    slope: Fit | None


@dataclass(frozen=True)
class NonconvexBound:
    """The bound of appendix D, as printed or corrected."""

    values: Curve
    holds: bool
    useful_from: float  # log10 of the steps after which it says more than that gradients are finite


@dataclass(frozen=True)
class NonconvexCase:
    """One rate and exponent on one problem; bounds are None where the theorem does not apply."""

    rate: str
    alpha0: float
    k: float
    slope_of_rate: float
    curve: NonconvexCurve | None
    printed: NonconvexBound | None
    corrected: NonconvexBound | None


@dataclass(frozen=True)
class NonconvexProblem:
    """A non-convex problem with its constants, and the measured extremes of A_t."""

    name: str
    about: str
    lipschitz: float
    steepest: float
    ceiling: float
    least: float
    most: float
    extremes: tuple[float | None, float | None]
    trivial: float
    cases: tuple[NonconvexCase, ...]


@dataclass(frozen=True)
class Nonconvex:
    """Appendix D: the mean squared gradient norm on non-convex problems."""

    rounds: int
    seeds: int
    dimension: int
    samples: int
    batch: int
    beta1: float
    beta2: float
    eps: float
    gamma: float
    steps: tuple[int, ...]
    problems: tuple[NonconvexProblem, ...]


class Tally(NamedTuple):
    """In how many cases something is so, and of how many."""

    count: int
    of: int

    def __str__(self) -> str:
        return f"{self.count} of {self.of}"


class Standing(NamedTuple):
    """How a theorem stands.

    Attributes:
        within: In how many cases its bound is true.
        vacuous: In how many of these it says nothing.
        verdict: The one word for all of them.
    """

    within: Tally
    vacuous: Tally
    verdict: str


@dataclass(frozen=True)
class Theory:
    """The whole study."""

    versions: Mapping[str, str]
    hidden_vector: HiddenVector
    regret: Regret
    nonconvex: Nonconvex

    @property
    def standings(self) -> Mapping[str, Standing]:
        """Return how each theorem stands at the end of the runs, corrected where it need be.

        Without a theorem the hidden vector is no further from the trend than the first average,
        regret is at most the steepest slope over the whole domain in every round, and a gradient
        is no longer than its coordinates allow.
        """
        return {
            HIDDEN_VECTOR: _standing(
                on_bound(found.bound[-1], found.least_noise[0], within=found.within_bound)
                for found in (case.measured for case in self.hidden_vector.cases)
                if found
            ),
            REGRET: _standing(
                on_bound(bound.total[-1], one.constants.trivial, within=bound.holds)
                for family in self.regret.families
                for one in family.variants
                if one.proof and one.constants
                for bound in [one.proof.corrected]
            ),
            NONCONVEX: _standing(
                on_bound(bound.values[-1], problem.trivial, within=bound.holds)
                for problem in self.nonconvex.problems
                for bound in (case.corrected for case in problem.cases)
                if bound
            ),
        }


def tally(found: Iterable[bool]) -> Tally:
    """Count in how many cases something is so."""
    every = list(found)
    return Tally(sum(every), len(every))


def _standing(cases: Iterable[str]) -> Standing:
    words = list(cases)
    within = [word for word in words if word != FAILS]
    return Standing(
        Tally(len(within), len(words)), tally(word == VACUOUS for word in within), all_of(words)
    )
