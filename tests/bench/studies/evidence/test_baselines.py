"""Trivial models on made-up data whose answers are known."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from hvadam_bench import contenders, tasks
from hvadam_bench.data.text import Corpus, number
from hvadam_bench.running.options import check
from hvadam_bench.studies import Study, get
from hvadam_bench.studies.evidence.baselines import (
    interpolated_bigram,
    logistic_regression,
    measure,
)
from hvadam_bench.studies.evidence.page import printed
from hvadam_bench.studies.evidence.plan import MINIBATCH, PARTS, REFERENCES, contests
from hvadam_bench.studies.momentum.plan import CANDIDATES, STAGES
from hvadam_bench.sweeping.search import Contest


def text(train: str, valid: str, test: str) -> Corpus:
    return number(train, valid, test)


def test_what_always_follows_costs_nothing() -> None:
    found = interpolated_bigram(text("ab" * 50, "ab" * 20, "ba" * 20))
    assert found.weights == pytest.approx((1, 0, 0), abs=1e-6)
    assert (found.valid, found.test) == pytest.approx((0, 0), abs=1e-6)


def test_one_token_among_pairs_that_never_were_is_told_by_its_share() -> None:
    # "b" is never followed by what follows it later; of five tokens in six are "a".
    found = interpolated_bigram(text("aaaaab" * 200, "bb", "bb"))
    assert found.weights[1] + found.weights[2] == pytest.approx(1, abs=1e-6)
    # Chance says 1/2, the share of "b" is 1/6: chance explains the only pair best.
    assert found.test == pytest.approx(math.log(2), rel=1e-3)


def test_enough_text_tells_its_entropy_and_no_other_weights_are_likelier() -> None:
    rng = np.random.default_rng(0)
    following = rng.dirichlet(np.ones(4), size=4)

    def written(count: int) -> np.ndarray:
        tokens = [0]
        for _ in range(count):
            tokens.append(int(rng.choice(4, p=following[tokens[-1]])))
        return np.array(tokens)

    corpus = Corpus(written(8000), written(3000), written(3000), "abcd")
    found = interpolated_bigram(corpus)
    entropy = -np.log(following[corpus.test[:-1], corpus.test[1:]]).mean()
    assert found.weights[0] > 0.95
    assert found.test == pytest.approx(entropy, rel=5e-3)
    few = Corpus(corpus.train[:30], corpus.valid, corpus.test, "abcd")
    best = interpolated_bigram(few)
    assert loss_by_hand(few, np.array(best.weights)) == pytest.approx(best.valid, rel=1e-9)
    assert max(best.weights) < 0.95
    for i, j in itertools.permutations(range(3), 2):
        moved = np.array(best.weights)
        step = min(0.01, moved[j])
        moved[i] += step
        moved[j] -= step
        assert loss_by_hand(few, moved) >= best.valid - 1e-6


def loss_by_hand(corpus: Corpus, weights: np.ndarray) -> float:
    """Return the mean loss of the validation text, token by token."""
    train = corpus.train.tolist()
    pairs, before = Counter(itertools.pairwise(train)), Counter(train[:-1])

    def loss(one: int, other: int) -> float:
        bigram = pairs[one, other] / max(1, before[one])
        return -math.log(weights @ [bigram, train.count(other) / len(train), 1 / 4])

    known = {pair: loss(*pair) for pair in itertools.product(range(4), repeat=2)}
    return float(np.mean([known[pair] for pair in itertools.pairwise(corpus.valid.tolist())]))


def halves(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points on two sides of a line."""
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points[:, 0] + 2 * points[:, 1] > 0.5).long()


def test_a_line_is_found_and_a_coin_is_not() -> None:
    found = logistic_regression(halves(300, 0), halves(100, 1), halves(200, 2))
    assert min(found[:2]) > 98
    blind = [(torch.zeros(90, 3), torch.arange(90) % 3) for _ in range(3)]
    assert logistic_regression(*blind).test == pytest.approx(100 / 3)


def test_it_is_the_maximum_of_the_likelihood() -> None:
    """One feature that is 1 or 0, and classes of known shares: the fit guesses the commoner."""
    features = torch.tensor([[1.0]] * 10 + [[0.0]] * 10)
    labels = torch.tensor([1] * 7 + [0] * 3 + [0] * 8 + [1] * 2)
    split = features, labels
    assert logistic_regression(split, split, split).test == pytest.approx(75)


def test_all_tasks_have_a_baseline() -> None:
    found = measure("smoke")
    assert set(found["of"]) == set(MINIBATCH)
    assert {one["method"] for one in found["of"].values()} == {
        "logistic regression on pixels",
        "interpolated bigram",
    }
    # The synthetic images are noisy copies of ten patterns: a linear classifier knows them.
    assert found["of"]["fashion_mnist_60k"]["test"] > 90
    assert len(list(printed({"baselines": found}))) == len(MINIBATCH)


# The contests of the comparison and of the choice of a momentum: fair, and able to start.
GROUPS = {
    **{f"evidence {part}": own for part, own in contests().items()},
    **{
        f"momentum, {stage.name}": [stage.contest(one, CANDIDATES) for one in stage.problems]
        for stage in STAGES
    },
}


@pytest.mark.parametrize("name", GROUPS)
def test_every_run_can_start_and_everyone_gets_as_much(name: str) -> None:
    for contest in GROUPS[name]:
        assert contest.reference in [entry.contender for entry in contest.entries]
        assert contest.scale in tasks.get(contest.task).scales
        assert (contest.budget, contest.protocol) == ("equal", "standard")
        arms = contest.arms()
        for arm in arms:
            options = arm.trials[-1].options if arm.trials else dict(arm.entry.options)
            for config in (*arm.tuning(arm.trials)[-1:], *arm.judging(options)[:1]):
                check(config)
            assert set(options) <= set(contenders.get(arm.entry.contender).defaults)
        tuned = [arm for arm in arms if not (arm.entry.rate_of or arm.entry.rates)]
        assert len({(len(arm.trials), arm.runs) for arm in tuned}) == 1
        names = [arm.entry.entrant for arm in arms]
        assert len(set(names)) == len(names)
        assert "hvadam" in names or contest.seeds == 0


def test_the_plan_is_what_the_comparison_runs() -> None:
    planned = contests()
    assert tuple(planned) == PARTS
    assert {part: len(own) for part, own in planned.items()} == {
        **{"smooth": 8, "noise": 4 * 5, "minibatch": 4}
    }
    for part, reference in REFERENCES.items():
        for contest in planned[part]:
            assert contest.reference == reference
            assert contest.seeds == 10


def test_a_smoke_plan_is_small() -> None:
    study: Study = get("evidence")
    tiny: list[Contest] = [one for own in study.plan(smoke=True).contests.values() for one in own]
    assert {contest.scale for contest in tiny} == {"smoke"}
    assert sum(arm.runs for contest in tiny for arm in contest.arms()) <= 40
