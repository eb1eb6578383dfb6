"""What `hvadam info` finds and how it says it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hvadam import HVAdam, __version__, info
from hvadam.torch import kernels, self_check
from hvadam.torch.kernels import native

needs_native = pytest.mark.skipif(native.available() is not None, reason="no native kernel here")


def shown(as_json: bool = False) -> str:
    return info.as_json() if as_json else info.as_text()


def lines() -> dict[str, str]:
    """The rows by their first word."""
    rows = [line.split(maxsplit=1) for line in shown().splitlines() if len(line.split()) > 1]
    return {first: " ".join(rest.split()) for first, rest in rows}


def parameter(size: int) -> torch.nn.Parameter:
    made = torch.nn.Parameter(torch.zeros(size))
    made.grad = torch.ones(size)
    return made


def test_facts_are_those_of_this_process() -> None:
    rows = lines()
    assert rows["hvadam"] == __version__
    assert rows["torch"] == torch.__version__
    assert rows["threads"] == f"{torch.get_num_threads()} in torch"
    assert rows["loop"] == "yes"
    assert set(kernels.KERNELS) < rows.keys()


def test_json_holds_the_same() -> None:
    content = json.loads(shown(as_json=True))
    assert content == info.collect()
    assert list(content["kernels"]) == list(kernels.KERNELS)
    assert set(content["versions"]) == {"hvadam", "torch", "numpy", "python"}
    assert content["machine"]["cores"] >= 1
    assert content["machine"]["cpu"]


def test_a_kernel_that_does_not_work_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "it was not [compiled] here. Install a C compiler."
    monkeypatch.setattr(native, "available", lambda: reason)
    assert lines()["native"] == f"no: {reason}"
    content = json.loads(shown(as_json=True))
    assert content["kernels"]["native"] == reason
    assert content["instruction_set"] is None
    assert content["auto_on_cpu"] == {"small tensors": ["foreach"], "large tensors": ["foreach"]}
    assert shown().endswith('kernel="auto" on a CPU takes foreach')


@needs_native
def test_where_native_works_auto_takes_it() -> None:
    found = info.collect()
    assert found["instruction_set"] in native.INSTRUCTION_SETS
    assert found["auto_on_cpu"] == {"small tensors": ["native"], "large tensors": ["native"]}
    assert shown().endswith('kernel="auto" on a CPU takes native')


def asked(wanted: str, *command: str) -> subprocess.CompletedProcess[str]:
    """What a process says in which the variable is set."""
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, native.ISA: wanted},
        capture_output=True,
        text=True,
    )


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("wanted", native.INSTRUCTION_SETS)
def test_a_variable_chooses_the_instruction_set_or_is_refused(wanted: str) -> None:
    best = native.instruction_set()
    done = asked(wanted, "-m", "hvadam", "info", "--json")
    sets = native.INSTRUCTION_SETS
    if sets.index(wanted) <= sets.index(best):
        found = json.loads(done.stdout)
        assert found["instruction_set"] == wanted
        assert found["instruction_set_chosen_by"] == "HVADAM_ISA"
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "hvadam: HVADAM_ISA must name instructions that this CPU has, of which the best are "
            f"{best}, got {wanted!r}. Name those or less, or unset it.\n"
        )


@needs_native
def test_a_choice_by_the_variable_is_told() -> None:
    done = asked("baseline", "-m", "hvadam", "info")
    assert "baseline in the native kernel (chosen by HVADAM_ISA)," in " ".join(done.stdout.split())
    assert "chosen by" not in shown()


RULE = "HVADAM_ISA must be one of baseline, avx2, avx512, got 'AVX2'. Unset it to use the best "


@needs_native
def test_an_unknown_instruction_set_is_refused_in_one_line() -> None:
    done = asked("AVX2", "-m", "hvadam", "check")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"hvadam: {RULE}")


@needs_native
@pytest.mark.slow
def test_no_step_is_taken_with_other_instructions_than_asked_for() -> None:
    step = (
        "import torch, hvadam; p = torch.nn.Parameter(torch.zeros(3)); p.grad = torch.ones(3); "
        "hvadam.HVAdam([p]).step()"
    )
    assert f"ValueError: HVAdam: {RULE}" in asked("AVX2", "-c", step).stderr


@pytest.mark.parametrize("name", ["loop", "foreach"])
def test_a_step_reports_its_kernels(name: Any) -> None:
    optimizer = HVAdam([parameter(5)], kernel=name)
    assert self_check.kernels_of(optimizer) == []  # none before the first step
    optimizer.step()
    assert self_check.kernels_of(optimizer) == [name]


def test_other_optimizers_use_no_kernel() -> None:
    optimizer = torch.optim.Adam([parameter(5)])
    optimizer.step()
    assert self_check.kernels_of(optimizer) == []


def test_hiding_the_native_kernel_ends_with_the_block() -> None:
    before = self_check.reasons()
    optimizer = HVAdam([parameter(1), parameter(1 << 16)])
    with self_check.without_native():
        assert self_check.reasons()["native"] == "it is switched off for now."
        optimizer.step()
        assert self_check.kernels_of(optimizer) == ["foreach"]
    assert self_check.reasons() == before


def test_caches_are_read_from_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "CACHES", tmp_path)
    assert info.caches() == {}
    assert lines()["caches"] == "unknown"
    known = [("1", "Data", "32K"), ("1", "Instruction", "64K"), ("2", "Unified", "512K")]
    for number, facts in enumerate([*known, ("3", "Unified", "many")]):
        index = tmp_path / f"index{number}"
        index.mkdir()
        for name, value in zip(("level", "type", "size"), facts, strict=True):
            (index / name).write_text(f"{value}\n")
    assert info.caches() == {"L1": 32 << 10, "L2": 512 << 10}
    assert lines()["caches"] == "L1 32 KiB, L2 512 KiB"
