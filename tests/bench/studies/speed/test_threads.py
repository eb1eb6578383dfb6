"""Steps with several numbers of threads: pairs, arithmetic, words. No test looks at a real time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from made_timings import TINY

from hvadam_bench.studies._pairs import Skip
from hvadam_bench.studies._results import load
from hvadam_bench.studies.speed import memory, threads
from hvadam_bench.studies.speed.contenders import ADAM, REFERENCE, Contender
from hvadam_bench.studies.speed.memory import largest_share, memory_nodes
from hvadam_bench.studies.speed.page import thread_notes, thread_table
from hvadam_bench.studies.speed.results import Budget, Placement, ThreadSpeed, contender_names
from hvadam_bench.studies.speed.steps import Trial
from hvadam_bench.studies.speed.threads import CONTENDERS, benchmark, place

ROUNDS = 3
ROOT = Path(__file__).parents[4]
SHORT = Budget(rounds=ROUNDS, group_seconds=0.0)


class FakeTime:
    """A clock that steps move: those that share their work move it by less with more threads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def contender(self, name: str, seconds: float, alone: float) -> Contender:
        """One whose step takes so long: shared out to threads, and what only one of them does."""

        def step() -> None:
            count = torch.get_num_threads()
            self.now += seconds / count + alone
            self.steps.append((name, count))

        def build(params: object) -> Any:
            return SimpleNamespace(step=step, state={})

        return Contender(name, build, {}, ADAM)


def refuse(params: object) -> Any:
    raise RuntimeError("not\n here")


@pytest.fixture
def measured() -> ThreadSpeed:
    """Return what a machine would find on which one contender gains less from threads."""
    time = FakeTime()
    found = benchmark(
        [TINY],
        [1, 2, 4],
        SHORT,
        contenders=[
            time.contender("even", 8.0, 0.0),
            time.contender("uneven", 8.0, 4.0),
            Contender("missing", refuse, {}, ADAM),
        ],
        reference=time.contender("Adam", 4.0, 0.0),
        clock=time,
    )
    # In every round everyone steps with every number of threads, beside Adam with as many.
    counts = {count for name, count in time.steps if name == "uneven"}
    assert counts == {1, 2, 4}
    return found


def test_ratios_are_to_the_reference_with_as_many_threads(measured: ThreadSpeed) -> None:
    [shape] = measured.shapes
    assert contender_names([shape]) == ["even", "uneven"]
    assert [shape.of("even", count).ratio.median for count in (1, 2, 4)] == [2.0, 2.0, 2.0]
    assert [shape.of("uneven", count).ratio.median for count in (1, 2, 4)] == [3.0, 4.0, 6.0]
    assert shape.of("uneven", 2).milliseconds == 8000.0
    assert len(shape.of("uneven", 2).seconds) == ROUNDS
    assert shape.growth("even", 1, 2).median == 1.0
    assert shape.growth("uneven", 1, 4).median == 2.0
    assert shape.skipped == (Skip("missing", "not here"),)
    assert measured.placement is None


def test_every_group_is_woken_and_takes_turns_in_being_first() -> None:
    time = FakeTime()
    ours, adam = time.contender("ours", 8.0, 0.0), time.contender("Adam", 4.0, 0.0)
    before = torch.get_num_threads()
    benchmark(
        [TINY], [1, 2], replace(SHORT, rounds=2), contenders=[ours], reference=adam, clock=time
    )
    assert torch.get_num_threads() == before
    timed = time.steps[-16:]  # two rounds, two numbers, two contenders, one step to wake and one
    first = [*[("Adam", 1)] * 2, *[("ours", 1)] * 2, *[("Adam", 2)] * 2, *[("ours", 2)] * 2]
    second = [*[("ours", 1)] * 2, *[("Adam", 1)] * 2, *[("ours", 2)] * 2, *[("Adam", 2)] * 2]
    assert timed == first + second
    assert {count for _, count in time.steps[:-16]} == {2}  # tensors are made by the most


def test_the_table_marks_what_grows_too_much(measured: ThreadSpeed) -> None:
    table = thread_table(measured, measured.shapes[0])
    assert list(table.heads) == [
        *("contender", "ratio, 1 thread", "ratio, 2 threads", "ratio, 4 threads"),
        *("grows 1 to 2", "grows 1 to 4"),
    ]
    even, uneven = ([cell.text for cell in row] for row in table.cells)
    assert even[4:] == ["1.00 (1.00 to 1.00)"] * 2
    assert uneven[4:] == ["1.33 (1.33 to 1.33) !", "2.00 (2.00 to 2.00) !"]
    notes = thread_notes(replace(measured, alone=True)).splitlines()
    assert "skipped missing: not here" in notes
    assert not any("quiet" in note for note in notes)
    assert any(
        "when it is quiet" in note
        for note in thread_notes(replace(measured, alone=False)).splitlines()
    )


def test_who_is_timed_is_the_native_kernel_in_all_its_kinds_and_the_noise() -> None:
    assert [one.options.get("kernel") for one in CONTENDERS] == ["native"] * 3 + [None]
    assert {one.options.get("state_dtype") for one in CONTENDERS} == {None, "bfloat16", "int8"}
    assert CONTENDERS[-1] is REFERENCE


# Who touches tensors first


def test_tensors_are_made_by_one_thread_and_by_all_and_timed_with_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    time = FakeTime()
    made: list[int] = []

    class Noted(Trial):
        def __init__(self, *arguments: Any) -> None:
            made.append(torch.get_num_threads())
            super().__init__(*arguments)

    monkeypatch.setattr(threads, "Trial", Noted)
    monkeypatch.setattr(memory, "NODES", tmp_path)
    found = place(TINY, 2, SHORT, contender=time.contender("ours", 8.0, 0.0), clock=time)
    assert made == [1, 2]
    assert {count for _, count in time.steps[-4 * ROUNDS :]} == {2}
    assert found.one_seconds == found.all_seconds == (4.0,) * ROUNDS
    assert (found.ratio.median, found.nodes, found.threads) == (1.0, None, 2)


def test_the_words_on_placement_say_what_can_be_known_here(measured: ThreadSpeed) -> None:
    def said(placement: Placement) -> list[str]:
        return thread_notes(replace(measured, placement=placement)).splitlines()[-3:]

    found = Placement("huge", 2, 1, 1.0, 0.5, (2.0, 3.0, 2.0), (2.0, 2.0, 2.0))
    times, shares, nodes = said(found)
    assert times.endswith(
        "takes 1.00 (1.00 to 1.25) times as long as on those that 2 threads made."
    )
    assert "touches 100% of new state first where one makes it, 50% where all do" in shares
    assert "1 node" in nodes
    several = said(replace(found, nodes=2, one_share=None))
    assert [line for line in several if "busiest" in line] == []
    assert several[-1].startswith("Memory here has 2 nodes: a page lies in")
    unknown = said(replace(found, nodes=None))
    assert unknown[-1].startswith("Memory here has an unknown number of nodes")


def test_the_result_with_fewer_instructions_is_of_this_class() -> None:
    found = load(ThreadSpeed, ROOT / "results" / "speed-threads-avx2.json")
    assert found.machine["native_instruction_set"] == "avx2"
    assert thread_table(found, found.shapes[0]).rows


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a made-up system counts the faults of two threads."""
    monkeypatch.setattr(memory, "TASKS", tmp_path)
    for thread in ("11", "12"):
        (tmp_path / thread).mkdir()
    write_faults(tmp_path, 100, 200)
    return tmp_path


def write_faults(folder: Path, *counts: int) -> None:
    for thread, count in zip(("11", "12"), counts, strict=True):
        text = f"{thread} (pt_main (x) 1 2 3) S 1 2 3 4 5 6 {count} 8 9"
        (folder / thread / "stat").write_text(text)


def test_shares_are_of_the_faults_between_before_and_after(system: Path) -> None:
    assert largest_share(lambda: write_faults(system, 130, 210)) == 0.75
    assert largest_share(lambda: None) is None


def test_a_system_that_does_not_tell_leaves_it_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "TASKS", tmp_path / "none")
    monkeypatch.setattr(memory, "NODES", tmp_path)
    assert largest_share(lambda: None) is None
    assert memory_nodes() is None
    for name in ("node0", "node1", "node_map", "power"):
        (tmp_path / name).mkdir()
    assert memory_nodes() == 2


@pytest.mark.skipif(not memory.TASKS.exists(), reason="the system does not count faults")
def test_state_of_one_thread_is_touched_by_one() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        share = largest_share(lambda: torch.zeros(1 << 24))
    finally:
        torch.set_num_threads(before)
    assert share is not None
    assert share > 0.95  # other threads of the process may do something meanwhile
