"""How often verdicts are wrong, by made-up tasks of which the truth is known.

Not a mirror of a module: `effects.judge` and all that it stands on are tried together, and so is
the way from records to what a sweep prints and a report shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from made_records import made_record

from hvadam_bench.analysis import effects, statistics
from hvadam_bench.analysis.effects import Judgement, Scale
from hvadam_bench.analysis.grouping import TaskResults, task_results
from hvadam_bench.contenders import names
from hvadam_bench.pages.report.answers import GROUPS, answer_of
from hvadam_bench.pages.standings import results
from hvadam_bench.running.config import RunConfig

SMOOTH = Scale("factor", 1.25)
FIELD = ["adam", *(name for name in names() if name != "adam" and "hvadam" not in name)]
Draw = Callable[[np.random.Generator, int], np.ndarray]

# Losses of one contender over seeds. All contenders of a task draw from the same.
LOSSES: dict[str, Draw] = {
    "normal": lambda rng, n: np.exp(rng.normal(0, 0.5, n)),
    "heavy tails": lambda rng, n: np.exp(np.clip(rng.standard_cauchy(n), -600, 600)),
    "skewed": lambda rng, n: np.exp(rng.exponential(1, n)),
    "arrive or not": lambda rng, n: (
        np.where(rng.random(n) < 0.3, 1, 1e-4) * rng.lognormal(0, 0.2, n)
    ),
    "diverge or not": lambda rng, n: (
        np.where(rng.random(n) < 0.2, np.inf, 1) * rng.lognormal(0, 0.3, n)
    ),
}
# Log-ratios around the true effect, spread evenly around it.
NOISE: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "skewed pairs": lambda rng, n: rng.exponential(1, n) - rng.exponential(1, n),
}


def task(draw: Draw, rng: np.random.Generator, contenders: int, n: int = 10) -> list[Judgement]:
    """Return the verdicts of a task on which all are the same."""
    theirs = list(draw(rng, n))
    found = {str(i): effects.compare(list(draw(rng, n)), theirs, SMOOTH) for i in range(contenders)}
    return list(effects.judge(found).values())


def pair(draw: Draw, rng: np.random.Generator, effect: float, sd: float, n: int = 10) -> Judgement:
    """Return the verdict on one contender with a true effect."""
    ours = np.exp(-effect - sd * draw(rng, n))
    return effects.judge({"ours": effects.compare(list(ours), [1.0] * n, SMOOTH)})["ours"]


def assert_at_most_one_in_twenty(wrong: int, studies: int) -> None:
    """Assert an error rate of at most 5%, within three standard errors."""
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def false_leads(losses: str, contenders: int, studies: int) -> int:
    """Return on how many tasks someone is said to be ahead or behind, though all are the same."""
    rng = np.random.default_rng(5)
    tasks = (task(LOSSES[losses], rng, contenders) for _ in range(studies))
    return sum(any(one.verdict in ("ahead", "behind") for one in judged) for judged in tasks)


def false_equals(noise: str, sd: float, studies: int) -> int:
    """Return how often an effect a hair above the smallest that matters is called equal."""
    rng = np.random.default_rng(6)
    true = 1.0001 * SMOOTH.margin
    found = (pair(NOISE[noise], rng, true, sd) for _ in range(studies))
    return sum(one.verdict == "equal" for one in found)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip what takes most of the time: the intervals of medians, which are no verdicts."""
    monkeypatch.setattr(statistics, "RESAMPLES", 1)


def sweep_of_equals(draw: Draw, rng: np.random.Generator, rivals: int, n: int) -> TaskResults:
    """Return the results of a sweep in which all contenders are the same."""
    records = [
        made_record(
            value if math.isfinite(value) else 1.0,
            config=RunConfig("digits_mlp", name, "smoke", seed),
            status="done" if math.isfinite(value) else "diverged",
            metric="loss",
        )
        for name in FIELD[: rivals + 1]
        for seed, value in enumerate(map(float, draw(rng, n)))
    ]
    return task_results(records)


def called(task: TaskResults) -> set[str]:
    """Return the verdicts that a user reads: in the cells of the table, and in the answer."""
    cells = [cell.judgement for row in results(task).cells for cell in row if cell.judgement]
    told = answer_of(task)
    groups = {words.format(told.reference): word for word, words in GROUPS.items()}
    said = {groups[group] for group in re.findall(r"(?:^|\. )(\w[\w ]+):", told.others)}
    assert {one.word for one in cells} >= said
    assert (told.kind == "ahead") == any(one.verdict == "ahead" for one in cells)
    return {one.word for one in cells}


def false_calls(losses: str, rivals: int, n: int, studies: int) -> int:
    """Return in how many sweeps someone is called ahead or behind, though all are the same."""
    rng = np.random.default_rng([rivals, n])
    sweeps = (sweep_of_equals(LOSSES[losses], rng, rivals, n) for _ in range(studies))
    return sum(bool(called(task) & {"ahead", "behind"}) for task in sweeps)


@pytest.mark.parametrize("rivals", [1, 5])
def test_a_sweep_of_few_seeds_calls_nobody_ahead_or_behind(rivals: int) -> None:
    assert false_calls("normal", rivals, n=5, studies=8) == 0
    assert false_calls("normal", rivals, n=9, studies=3) == 0


def test_a_sweep_of_equals_seldom_calls_someone_ahead_or_behind() -> None:
    assert_at_most_one_in_twenty(false_calls("normal", 10, n=10, studies=30), 30)


@pytest.mark.slow
@pytest.mark.parametrize("losses", ["normal", "skewed", "diverge or not"])
@pytest.mark.parametrize("rivals", [1, 2, 5, 10])
def test_sweeps_of_equals_seldom_call_someone_ahead_or_behind(losses: str, rivals: int) -> None:
    assert false_calls(losses, rivals, n=5, studies=100) == 0
    assert_at_most_one_in_twenty(false_calls(losses, rivals, n=10, studies=500), 500)
    assert_at_most_one_in_twenty(false_calls(losses, rivals, n=20, studies=150), 150)


@pytest.mark.parametrize("losses", ["skewed", "diverge or not"])
def test_no_difference_is_seldom_a_lead(losses: str) -> None:
    assert_at_most_one_in_twenty(false_leads(losses, contenders=3, studies=200), 200)


def test_a_difference_that_matters_is_seldom_equal() -> None:
    assert_at_most_one_in_twenty(false_equals("heavy tails", sd=0.1, studies=300), 300)


def test_more_pairs_find_more() -> None:
    rng = np.random.default_rng(8)
    found = {
        n: sum(pair(NOISE["normal"], rng, 0.3, 0.4, n).verdict == "ahead" for _ in range(150))
        for n in (9, 10, 13)
    }
    assert found[9] == 0  # too few for any verdict
    assert 30 < found[10] < found[13]


def test_alike_contenders_are_found_equal() -> None:
    rng = np.random.default_rng(9)
    said = [pair(NOISE["normal"], rng, 0.0, 0.1).verdict for _ in range(100)]
    assert said.count("equal") >= 99


@pytest.mark.slow
@pytest.mark.parametrize("contenders", [1, 4])
@pytest.mark.parametrize("losses", LOSSES)
def test_no_difference_is_seldom_a_lead_in_many_studies(losses: str, contenders: int) -> None:
    assert_at_most_one_in_twenty(false_leads(losses, contenders, studies=3000), 3000)


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("noise", NOISE)
def test_a_difference_that_matters_is_seldom_equal_in_many_studies(noise: str, sd: float) -> None:
    assert_at_most_one_in_twenty(false_equals(noise, sd, studies=3000), 3000)


@pytest.mark.slow
@pytest.mark.parametrize(("losing", "most"), [(0.5, 0.08), (0.1, 0.25)])
def test_rare_disasters_are_what_ten_seeds_do_not_show(losing: float, most: float) -> None:
    # The known limit: ours loses seldom but far, and wins a little else, so that the mean is 0.
    rng = np.random.default_rng(10)

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return 2 * (losing - (rng.random(n) < losing)) + rng.normal(0, 0.05, n)

    said = [pair(draw, rng, 0.0, 1.0).verdict for _ in range(2000)]
    false = sum(verdict in ("ahead", "behind") for verdict in said) / len(said)
    assert false < most
    assert losing == 0.5 or false > 0.1
