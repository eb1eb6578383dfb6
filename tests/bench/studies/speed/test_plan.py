"""The command's options become one plan, and what cannot be timed is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from hvadam_bench.studies import Place, speed
from hvadam_bench.studies.speed import jax_steps, steps, training
from hvadam_bench.studies.speed.plan import GROWING, SHAPES, Plan, plan


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvadam_bench.studies.speed.plan.usable_cores", lambda: 4)


@pytest.mark.parametrize(
    ("given", "what", "names", "rounds"),
    [
        ({}, "speed", ["single", "resnet50", "lstm", "small"], 7),
        ({"shapes": ("small", "lstm"), "smoke": True}, "speed", ["small", "lstm"], 3),
        ({"smoke": True}, "speed", ["small"], 3),
        ({"growth": True}, "growth", [shape.name for shape in GROWING], 7),
        ({"growth": True, "smoke": True}, "growth", ["1M"], 3),
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
    assert (found.what, found.rounds) == (what, rounds)
    assert [shape.name for shape in found.shapes] == names
    assert list(found.threads) == sorted(given.get("threads", (1,)))


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
    assert plan().memory == 1000 * 1000 / 2
    monkeypatch.setattr(os, "sysconf", lambda name: 1e9, raising=False)
    assert plan().memory == 8e9


@pytest.mark.parametrize(
    ("given", "timed", "threads"),
    [
        ({"threads": (2,)}, (steps, "benchmark"), 2),
        ({"growth": True}, (steps, "benchmark"), 1),
        ({"threads": (1, 2)}, (steps, "benchmark"), 2),
        ({"jax": True, "threads": (2,)}, (jax_steps, "benchmark"), 2),
        ({"training": True, "smoke": True}, (training, "benchmark"), 1),
        ({"runner": True}, (training, "benchmark_runner"), 1),
    ],
)
def test_what_is_planned_is_measured_and_says_what_it_was_made_with(
    given: dict[str, Any],
    timed: tuple[Any, str],
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    calls: list[Plan] = []
    limits: list[int] = []

    def benchmark(plan: Plan, on_progress: object) -> dict[str, Any]:
        calls.append(plan)
        return {"versions": {"optax": "0"}, "shapes": [(1, 2)]}

    monkeypatch.setattr(*timed, benchmark)
    monkeypatch.setattr(speed, "limit_cores", limits.append)
    planned = plan(**given)
    before = torch.get_num_threads()
    [(what, found)] = speed.measure(planned, Place(tmp_path, tmp_path)).items()
    assert torch.get_num_threads() == before
    assert calls == [planned]
    assert limits == ([2] if timed[0] is jax_steps else [])
    assert what == planned.what
    assert found["machine"]["torch_threads"] == threads
    assert {"cpu", "cores", "caches", "native_instruction_set"} < found["machine"].keys()
    assert found["versions"].keys() == {"hvadam", "torch", "numpy", "python", "optax"}
    assert found["counts"] == list(planned.threads)
    assert found["plan"]["rounds"] == planned.rounds
    assert found["shapes"] == [[1, 2]]  # as JSON has it


def test_cores_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 7}, raising=False)
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda _, cores: given.append(cores), raising=False
    )
    speed.limit_cores(1)
    assert given == [[4]]
