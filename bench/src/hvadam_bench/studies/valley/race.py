"""Many runs of one problem at once, a row each: from all its starts, or at all learning rates.

A contender that moves each coordinate by its own gradients alone holds all rows in one tensor. The
others would mix them there: a hidden vector or a norm over all rows is another problem. They have a
form below that takes their one statistic per row, or an optimizer per row, which is slow. A test
holds every contender, bit for bit, to its single runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hvadam._version import __version__
from hvadam.core import scalars as policy
from hvadam.torch import kernels
from hvadam.torch.kernels import Batch, Columns, Options
from hvadam_bench.contenders import ABLATION, OURS, adai, create, fromage, get
from hvadam_bench.contenders._spec import stepping
from hvadam_bench.studies._study import OnProgress
from hvadam_bench.studies.valley.functions import HUGE, Array, Problem
from hvadam_bench.studies.valley.result import Conditioning

if TYPE_CHECKING:
    from hvadam_bench.studies.valley.measure import Quadratics

TARGET = 1e-3
LAST = 10  # steps over which the loss at the end is averaged
COMMON_LR = 1e-3  # the paper's, for all

# Appendix F.2. SGDM is sgd_ema: only averaged momentum fits what the paper says of f2. Decay is off
# for all, because it pulls towards the origin, where f1 and f2 have their minimum.
_PAPER: dict[str, Mapping[str, Any]] = {
    "sgd_ema": {"momentum": 0.9},
    "adam": {"betas": (0.9, 0.999), "eps": 1e-12},
    "adabelief": {"betas": (0.9, 0.999), "eps": 1e-12},
    "hvadam": {"betas": (0.9, 0.999), "eps": 1e-12, "gamma": 0.5, "hidden_gain": "linear"},
}


class Outcome(NamedTuple):
    """How each start fared.

    A loss at the end is the mean over the last LAST steps, and infinite if the run diverged. With a
    constant rate a run ends in a cycle around a kink, and one loss would be a matter of its phase.
    """

    loss: Array  # after the budget
    late_loss: Array  # after the horizon
    reached: np.ndarray  # the first step with a loss of at most TARGET, -1 if there was none
    diverged: np.ndarray  # the step at which the run was ended, -1 if it never was


def run(
    problem: Problem, contender: str, lr: float, starts: Array, steps: int, horizon: int
) -> Outcome:
    """Race one contender from all starts for a budget of steps, and on to the horizon."""
    reached, diverged = np.full((2, len(starts)), -1)
    at_budget, late = np.zeros((2, len(starts)))
    for t, (_, losses) in enumerate(walk(problem, contender, lr, starts, steps)):
        reached[(reached < 0) & (losses <= TARGET)] = t
        diverged[(diverged < 0) & np.isinf(losses)] = t
        for total, end in ((at_budget, steps), (late, horizon)):
            if end - LAST < t <= end:
                total += losses / min(LAST, end + 1)
        if t == horizon:
            break
    return Outcome(at_budget, late, reached, diverged)


def walk(
    problem: Problem, contender: str, lr: float, starts: Array, steps: int
) -> Iterator[tuple[Array, Array]]:
    """Yield positions and losses after 0, 1, 2, ... steps, without end; the arrays are reused.

    The loss of a start that diverged is infinite from then on, and it moves no more. The budget of
    steps matters only to contenders that plan by it.
    """
    spec = get(contender)
    x, gradient = starts.copy(), np.zeros_like(starts)
    rows = torch.from_numpy(x), torch.from_numpy(gradient)
    movers = make_movers(contender, {**options_of(contender, steps), "lr": lr}, *rows)
    places, frozen = x.copy(), np.zeros(len(x), bool)
    while True:
        loss, gradient[:] = problem.evaluate(x)
        shown = x
        fallen = ~(loss <= HUGE)
        if spec.averages:
            with ExitStack() as stack:
                for one in movers:
                    stack.enter_context(spec.evaluation(one))
                shown = x.copy()
            loss = problem.evaluate(shown)[0]
            fallen |= ~(loss <= HUGE)
        fallen &= ~frozen
        if fallen.any():
            frozen |= fallen
            places[fallen] = np.nan_to_num(x[fallen], posinf=0.0, neginf=0.0)
        if frozen.any():
            loss = np.where(frozen, np.inf, loss)
            gradient[frozen] = 0.0
            x[frozen] = places[frozen]
        yield shown, loss
        for one in movers:
            one.step()


def options_of(contender: str, steps: int) -> dict[str, Any]:
    """Return the paper's toy settings, or else the contender's own, without decay and lr."""
    defaults = get(contender).defaults
    family = OURS if contender in ABLATION else contender
    chosen = {**_PAPER.get(family, {}), "weight_decay": 0.0}
    if contender == "swa":  # its paper averages the last quarter
        chosen["horizon"] = steps
    return {key: value for key, value in chosen.items() if key in defaults}


def make_movers(name: str, options: Mapping[str, Any], theta: Tensor, g: Tensor) -> Sequence[Any]:
    """Return what moves rows that do not know of each other: one for all of them, or one each."""
    if name in FORMS:
        return [FORMS[name](name, options, theta, g)]
    rows = [(theta, g)] if get(name).elementwise else zip(theta, g, strict=True)
    return [create(name, [parameter(*row)], **options) for row in rows]


def parameter(theta: Tensor, g: Tensor) -> nn.Parameter:
    """Return a leaf that shares the memory of the positions, its gradient that of the gradients."""
    leaf = nn.Parameter(theta)
    leaf.grad = g
    return leaf


class HiddenRows:
    """HVAdam with a hidden vector per row.

    ``HVAdam(scope="tensor")`` with a tensor per row is the same, but looks up every tensor and its
    state anew at every step, which takes ten times as long as the step. This looks once, and then
    calls the same kernels around the same policy.
    """

    def __init__(self, name: str, options: Mapping[str, Any], theta: Tensor, g: Tensor) -> None:
        made = create(name, [parameter(*pair) for pair in zip(theta, g, strict=True)], **options)
        group = self._group = made.param_groups[0]
        count = len(theta)
        m, v, s = (list(torch.zeros_like(theta)) for _ in range(3))
        columns = Columns(group["params"], list(g), m, v, s, list(torch.zeros(count)))
        self._batches: dict[str, list[Batch[Any]]] = {}
        for kernel, batch in kernels.assign(
            group["kernel"], Options.of(group), columns, range(count)
        ):
            self._batches.setdefault(kernel, []).append(batch)
        self._scalars = np.tile(policy.INITIAL, (count, 1))

    @torch.no_grad()
    def step(self) -> None:
        """Take both passes, around the scalars of every row."""
        group = self._group
        dots = torch.zeros(len(self._scalars), 4, dtype=torch.float64)
        for name, batches in self._batches.items():
            kernels.KERNELS[name].accumulate(batches, dots)
        with np.errstate(over="ignore"):  # of gradients that have all but vanished
            mix, gain, self._scalars = policy.advance(
                np,
                self._scalars,
                dots.numpy(),
                beta2=group["betas"][1],
                threshold=group["restart_threshold"],
                gain=policy.GAINS[group["hidden_gain"]],
                restart_rule=group["restart_rule"],
                rounding=float(np.finfo(np.float64).eps),
            )
        for name, batches in self._batches.items():
            kernels.KERNELS[name].apply(batches, torch.from_numpy(mix), torch.from_numpy(gain))


def _adai_rows(everything: Sequence[Any]) -> None:
    """Take a step of Adai whose mean is over a row."""
    adai.update(everything, mean=_row_means)


def _row_means(everything: Sequence[Any]) -> Tensor:
    [(param, _, state, group, _)] = everything
    moment = state["exp_avg_sq"].sum(1, keepdim=True) / (1 - group["betas"][1] ** state["step"])
    return moment / param.shape[1]


def _fromage_rows(param: Tensor, grad: Tensor, state: Any, group: Any, lr: float) -> None:
    """Take a step of Fromage whose norms are of rows."""
    size, slope = (torch.linalg.vector_norm(x, dim=1, keepdim=True) for x in (param, grad))
    fromage.move(param, grad, size, slope, lr)


def _rows(build: Any) -> Any:
    """Return what makes a form from the builder of an optimizer."""
    return lambda name, options, theta, g: build(
        None, [{"params": [parameter(theta, g)]}], {**get(name).defaults, **options}
    )


FORMS: dict[str, Callable[..., Any]] = {
    "adai": _rows(stepping("Adai", _adai_rows, *adai.STATE, together=True)),
    "fromage": _rows(stepping("Fromage", _fromage_rows)),
    # Muon orthogonalizes matrices only, so to vectors it is an AdamW.
    "muon": lambda name, options, theta, g: create(
        name, [parameter(theta.view(-1), g.view(-1))], **options
    ),
    **dict.fromkeys((OURS, "hvadam1", "hvadam2"), HiddenRows),
}


Point = dict[str, Any]  # the condition number, the fewest steps and their rate

# How the cost of a valley grows with its condition number, and what noise makes of it. The valleys
# are quadratics ½ xᵀAx turned at random, with eigenvalues from 1 down to 1/condition in equal
# ratios, started with the same loss along every axis. The rate is tuned for every racer at every
# point: all rates run side by side. A step of every racer is its rate times something that the
# gradients alone decide, so a row at rate r is the row at rate 1 of y in x = start + r·y.

CONVERGED = 1e-6  # of the loss at the start
SEEDS = 5  # valleys of a kind; a rate converges where most of them do
RATES = tuple(10.0 ** (k / 4) for k in range(-16, 13))
NOISE = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)  # lengths of the gradient
NOISY_CONDITION, NOISY_DIMENSION = 1e3, 100

# The racers' options, at their rate 1; nobody decays by default but AdamW, who is not here.
RACERS: dict[str, dict[str, Any]] = {
    "sgd": {},
    "sgd (Nesterov)": {},
    "adam": {},
    "nadam": {},
    "adabelief": {"eps": 1e-12},
    "hvadam": {},
}


def race_quadratics(
    plan: Quadratics, on_progress: OnProgress, racers: Sequence[str] = tuple(RACERS)
) -> Conditioning:
    """Race down valleys of every condition number, then with noise."""
    parts = len(racers) * (len(plan.dimensions) * len(plan.conditions) + len(NOISE))

    def grow(racer: str, dimension: int) -> dict[str, Any]:
        points: list[Point] = []
        for condition in plan.conditions:
            on_progress(f"{racer}, condition {condition:g}, {dimension} dimensions", 1 / parts)
            points.append(converge(racer, condition, dimension, plan.most))
        return {"points": points, "exponent": fit_exponent(points)}

    def response(racer: str, noise: float) -> dict[str, float]:
        on_progress(f"{racer}, noise {noise:g}", 1 / parts)
        return respond(racer, noise, plan.noisy_steps)

    return Conditioning(
        versions={"hvadam": __version__, "torch": torch.__version__},
        seeds=SEEDS,
        arrived=CONVERGED,
        most=plan.most,
        growth={str(n): {racer: grow(racer, n) for racer in racers} for n in plan.dimensions},
        noise={racer: [response(racer, noise) for noise in NOISE] for racer in racers},
        noisy_condition=NOISY_CONDITION,
        noisy_dimension=NOISY_DIMENSION,
        noisy_steps=plan.noisy_steps,
    )


def converge(racer: str, condition: float, dimension: int, most: int) -> Point:
    """Return the steps that a racer needs at its best rate, if it converges."""
    reached = torch.zeros(SEEDS, len(RATES), dtype=torch.bool)
    for t, losses in enumerate(walk_quadratics(racer, condition, dimension)):
        reached |= losses <= CONVERGED
        converged = reached.sum(0) > SEEDS // 2
        if converged.any():  # any other rate takes longer
            rate = RATES[int(converged.int().argmax())]
            return {"condition": condition, "steps": t, "rate": rate}
        if t == most:
            break
    return {"condition": condition, "steps": None, "rate": None}


def respond(racer: str, noise: float, steps: int) -> dict[str, float]:
    """Return what is left of the loss after so many steps, at the best rate."""
    walk = walk_quadratics(racer, NOISY_CONDITION, NOISY_DIMENSION, noise)
    losses = next(itertools.islice(walk, steps, None))
    left = losses.nan_to_num(math.inf, posinf=math.inf).median(0).values
    best = int(left.argmin())
    return {"noise": noise, "left": left[best].item(), "rate": RATES[best]}


def valleys(condition: float, dimension: int) -> tuple[Tensor, Tensor]:
    """Return the matrices of the valleys, (seeds, d, d), and a start in each, (seeds, d)."""
    generator = torch.Generator().manual_seed(0)
    eigenvalues = condition ** (-torch.linspace(0, 1, dimension, dtype=torch.float64))
    drawn = torch.randn(SEEDS, dimension, dimension, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(drawn).Q
    signs = torch.randint(0, 2, (SEEDS, dimension), generator=generator).double() * 2 - 1
    starts = (turn @ (signs / eigenvalues.sqrt())[..., None])[..., 0]
    return turn * eigenvalues @ turn.mT, starts


def walk_quadratics(
    racer: str, condition: float, dimension: int, noise: float = 0.0
) -> Iterator[Tensor]:
    """Yield the losses after 0, 1, 2, ... steps over those at the start: (seeds, rates)."""
    matrices, starts = valleys(condition, dimension)
    generator = torch.Generator().manual_seed(1)
    rates = torch.tensor(RATES, dtype=torch.float64)[None, :, None]
    y = torch.zeros(SEEDS * len(RATES), dimension, dtype=torch.float64)
    g = torch.zeros_like(y)
    if racer == "sgd (Nesterov)":
        optimizer = torch.optim.SGD([parameter(y, g)], lr=1.0, momentum=0.9, nesterov=True)
    else:
        [optimizer] = make_movers(racer, {**RACERS[racer], "lr": 1.0}, y, g)
    shape = (SEEDS, len(RATES), dimension)
    slopes = g.view(shape)
    first = None
    while True:
        x = starts[:, None] + rates * y.detach().view(shape)
        torch.matmul(x, matrices, out=slopes)
        losses = (x * slopes).sum(-1) / 2
        first = losses.clone() if first is None else first
        yield losses / first
        # What has diverged would only slow the others down with infinities.
        slopes[~(losses < 1e12)] = 0.0
        if noise:
            length = torch.linalg.vector_norm(slopes, dim=-1, keepdim=True) / math.sqrt(dimension)
            drawn = torch.randn(SEEDS, 1, dimension, generator=generator, dtype=torch.float64)
            slopes += noise * length * drawn  # the same draw at every rate
        optimizer.step()


def fit_exponent(points: Sequence[Point]) -> float | None:
    """Return the slope of log steps over log condition, by least squares."""
    pairs = [(math.log(p["condition"]), math.log(p["steps"])) for p in points if p["steps"]]
    return linear_regression(*zip(*pairs, strict=True)).slope if len(pairs) > 2 else None
