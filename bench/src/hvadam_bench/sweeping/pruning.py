"""Trials that are stopped as hopeless, by Optuna's pruners.

A trial is held against the curves of its rivals that are over: the same contender on the same task
with the same seed. The rule is the same for every contender, and nobody is held against another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Point, Record
from hvadam_bench.running.runner import PrunedError, Watcher
from hvadam_bench.sweeping.search import PrunerName

# Rivals that must be over before anyone is stopped, and evaluations that everyone gets.
RIVALS = 3
GRACE = 3

Curve = tuple[float, ...]


def curve_of(record: Record) -> Curve:
    """Return what a pruner sees of a run: its validation values, evaluation by evaluation."""
    return tuple(point.valid[record.metric] for point in record.curve)


class Pruning(Watcher):
    """Ends a run that falls behind its rivals.

    Args:
        pruner: "median": stopped if its best value so far is worse than the median of the rivals'
            values at the same evaluation. "halving": stopped at rungs unless among the best third
            there.
        metric: What counts.
        rivals: Their curves.
    """

    def __init__(self, pruner: PrunerName, metric: Metric, rivals: Sequence[Curve]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        direction = "maximize" if metric.goal == "max" else "minimize"
        study = optuna.create_study(direction=direction, pruner=_PRUNERS[pruner]())
        for curve in rivals:
            trial = study.ask()
            for i, value in enumerate(curve):
                trial.report(value, i)
                trial.should_prune()  # by which halving learns who passed a rung
            study.tell(trial, curve[-1])
        self._metric = metric
        self._enough = len(rivals) >= RIVALS
        self._trial = study.ask()
        self._seen = 0

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        """Take up what a run that goes on has been through."""
        for point in curve:
            self._report(point)

    def evaluated(self, point: Point) -> None:
        """Stop the run here, if it is hopeless."""
        if self._report(point):
            raise PrunedError(f"{self._metric.name} fell behind its rivals at step {point.step}.")

    def _report(self, point: Point) -> bool:
        self._trial.report(point.valid[self._metric.name], self._seen)
        self._seen += 1
        return self._trial.should_prune() and self._enough and self._seen > GRACE


def _median() -> Any:
    from optuna.pruners import MedianPruner

    return MedianPruner(n_startup_trials=RIVALS)


def _halving() -> Any:
    from optuna.pruners import SuccessiveHalvingPruner

    return SuccessiveHalvingPruner(min_resource=GRACE, reduction_factor=3)


_PRUNERS: dict[PrunerName, Callable[[], Any]] = {"median": _median, "halving": _halving}
