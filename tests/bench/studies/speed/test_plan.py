"""The command's options become one plan, and what cannot be timed is refused."""

from __future__ import annotations

import os
from typing import Any

import pytest

from hvadam_bench.studies import Place
from hvadam_bench.studies.speed import jax_steps, measure, runner, steps, threads, training
from hvadam_bench.studies.speed.contenders import CONTENDERS, FEW, MANY
from hvadam_bench.studies.speed.plan import plan
from hvadam_bench.studies.speed.shapes import BY_PARAMETERS, BY_TENSORS, SHAPES

PLAIN = {"threads": 1}


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvadam_bench.studies.speed.plan.usable_cores", lambda: 4)


@pytest.mark.parametrize(
    ("given", "what", "names", "rounds"),
    [
        ({}, "speed", ["single", "resnet50", "lstm", "small"], 7),
        ({"shapes": ("small", "lstm"), "smoke": True}, "speed", ["small", "lstm"], 3),
        ({"smoke": True}, "speed", ["small"], 3),
        ({"growth": True, "shapes": ("lstm",)}, "speed", ["lstm"], 7),
        ({"threads": (4, 1, 2)}, "speed-threads", ["single", "resnet50", "lstm", "huge"], 7),
        ({"threads": (1, 2), "smoke": True}, "speed-threads", ["lstm"], 3),
        ({"jax": True, "smoke": True}, "speed-jax", ["lstm"], 3),
        ({"training": True, "shapes": ("lstm",)}, "training", ["lstm"], 7),
        ({"runner": True, "shapes": ("lstm",)}, "runner", ["lstm"], 7),
    ],
)
def test_options_say_what_is_timed(
    given: dict[str, Any], what: str, names: list[str], rounds: int
) -> None:
    found = plan(**given)
    assert (found.what, found.budget.rounds) == (what, rounds)
    assert [shape.name for shape in found.shapes] == names
    assert found.threads == tuple(sorted(given.get("threads", (1,))))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shapes": ("tiny",)}, ["--shapes", "'tiny'", *SHAPES]),
        ({"threads": (1, 4096)}, ["--threads", "at most 4", "4096"]),
        ({"threads": (5,), "jax": True}, ["--threads", "at most 4", "5"]),
        ({"threads": (1, 2), "training": True}, ["--threads 1,2", "without --training"]),
        ({"jax": True, "runner": True}, ["one of --jax"]),
    ],
)
def test_what_cannot_be_timed_is_refused(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match="--") as refused:
        plan(**given)
    assert all(word in str(refused.value) for word in words), refused.value


def test_jax_that_is_missing_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvadam_bench.studies.speed.plan.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'hvadam\[jax\]'"):
        plan(jax=True)


def test_a_plan_takes_half_of_the_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 1000, raising=False)
    assert plan().budget.memory == 1000 * 1000 / 2
    monkeypatch.setattr(os, "sysconf", lambda name: 1e9, raising=False)
    assert plan().budget.memory == 8e9


@pytest.mark.parametrize(
    ("given", "module", "expected"),
    [
        ({}, steps, {**PLAIN, "growing": None}),
        (
            {"growth": True, "threads": (2,)},
            steps,
            {"threads": 2, "growing": (BY_PARAMETERS, BY_TENSORS)},
        ),
        ({"compile_many": True}, steps, {**PLAIN, "growing": None}),
        ({"threads": (1, 2)}, threads, {"placed": SHAPES["huge"]}),
        ({"threads": (1, 2), "shapes": ("lstm",)}, threads, {"placed": None}),
        ({"jax": True}, jax_steps, PLAIN),
        ({"training": True, "smoke": True}, training, PLAIN),
        ({"runner": True}, runner, {}),
    ],
)
def test_what_is_planned_is_measured(
    given: dict[str, Any],
    module: Any,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(module, "benchmark", lambda *args, **named: calls.append((args, named)))
    monkeypatch.setattr(jax_steps, "limit_threads", lambda count: None)
    planned = plan(**given)
    assert measure.measure(planned, Place(tmp_path, tmp_path)) == {planned.what: None}
    [(arguments, named)] = calls
    del named["on_progress"]
    assert named == expected
    if module is steps:
        shapes, who, budget = arguments
        assert (shapes, budget) == (planned.shapes, planned.budget)
        assert {one.compiled for one in who} == {0, MANY if planned.compile_many else FEW}
        assert len(who) == len(CONTENDERS)
    assert arguments == {
        threads: (planned.shapes, (1, 2), planned.budget),
        jax_steps: (planned.shapes, planned.budget),
        training: (3, 1),
        runner: (runner.RUNS,),
    }.get(module, arguments)
