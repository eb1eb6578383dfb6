"""The contests of the comparison and of the choice of a momentum: fair, and able to start."""

from __future__ import annotations

import pytest

from hvadam_bench import contenders, tasks
from hvadam_bench.running.options import check
from hvadam_bench.studies import Study, get
from hvadam_bench.studies.evidence.plan import PARTS, REFERENCES, contests
from hvadam_bench.studies.momentum.plan import CANDIDATES, STAGES
from hvadam_bench.sweeping.search import Contest

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
