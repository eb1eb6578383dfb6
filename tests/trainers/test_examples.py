"""The examples run as their first lines say, learn, and resume where they stopped.

So do the programs on the pages about DDP, FSDP2 and other sharding.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
DISTRIBUTED = ["train_ddp.py", "train_fsdp2.py"]

# Of the page on FSDP2, in place of its last line.
COME_BACK = """

def numbers():
    kept = [(p.detach(), optimizer.state[p]["hidden"]) for p in model.parameters()]
    return [x.full_tensor().clone() for pair in kept for x in pair]


save(model, optimizer, "run")
before = numbers()
for p in model.parameters():
    p.detach().zero_()
optimizer = HVAdam(model.parameters(), lr=1e-2)
load(model, optimizer, "run")
assert all(torch.equal(*pair) for pair in zip(numbers(), before, strict=True))
if dist.get_rank() == 0:
    print("came back")
"""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", DISTRIBUTED)
def test_two_ranks_do_what_one_does(script: str, launch: Callable[..., str]) -> None:
    """The batch is the same for any number of ranks, and so must be the scalars of HVAdam.

    They are compared as printed, to four digits: were they made from one rank's shards, already the
    alignment at step 10 would be another.
    """
    two = numbers(launch(EXAMPLES / script, ranks=2))
    one = numbers(launch(EXAMPLES / script, "--steps", 20, ranks=1))
    assert list(two) == [1, 10, 20, 30, 40, 50, 60]
    for step in (1, 10, 20):
        assert one[step] == pytest.approx(two[step], abs=2e-3)
    losses = [loss for loss, _ in two.values()]
    assert losses[0] > 3.5  # log of 43 characters is 3.76
    assert losses[-1] < 2.5


@pytest.mark.parametrize("script", DISTRIBUTED)
def test_resumes_bit_for_bit(
    script: str,
    launch: Callable[..., str],
    tmp_path: Path,
    assert_same: Callable[[Any, Any], None],
) -> None:
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    launch(EXAMPLES / script, "--checkpoint", straight, "--steps", 30, ranks=2)
    launch(EXAMPLES / script, "--checkpoint", stopped, "--steps", 15, ranks=2)
    resumed = launch(EXAMPLES / script, "--checkpoint", stopped, "--steps", 30, ranks=2)
    assert min(numbers(resumed)) == 16
    assert not list(stopped.glob("*partial*"))
    assert_same(saved(stopped), saved(straight))


@pytest.mark.parametrize(
    ("page", "programs"), [("ddp.md", 1), ("fsdp2.md", 1), ("other-sharding.md", 2)]
)
def test_the_pages_run(
    page: str, programs: int, program: Callable[[str], Path], launch: Callable[..., str]
) -> None:
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", launch(program(page), ranks=2))]
    assert len(losses) == 5 * programs
    for start in range(0, len(losses), 5):
        assert losses[start + 4] < losses[start] / 4


def test_the_checkpoints_of_the_page_come_back(
    program: Callable[[str], Path], launch: Callable[..., str]
) -> None:
    """Put before the end of the page's program, its two functions do what it says."""
    path = program("fsdp2.md")
    training, end, functions = path.read_text().partition("dist.destroy_process_group()\n")
    path.write_text(training + functions + COME_BACK + end)
    assert "came back" in launch(path, ranks=2)


@pytest.mark.parametrize("ranks", [None, 2])
def test_hugging_face(ranks: int | None, launch: Callable[..., str]) -> None:
    pytest.importorskip("transformers")
    output = launch(EXAMPLES / "finetune_hf.py", ranks=ranks)
    losses = [float(x) for x in re.findall(r"'loss': '([\d.e-]+)'", output)]
    assert len(losses) == 4  # two unrelated runs would log twice as often
    assert 0.5 < losses[0] < 0.9  # log 2, and not multiplied by the number of ranks
    assert losses[-1] < 0.1
    assert output.count("'hvadam/alignment'") == 4
    assert "'eval_accuracy': '1'" in output


@pytest.mark.parametrize("devices", [1, 2])
def test_lightning(devices: int, launch: Callable[..., str], tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    run = (EXAMPLES / "lightning_module.py", "--devices", devices, "--checkpoint", tmp_path / "run")
    output = launch(*run)
    losses = [float(x) for x in re.findall(r"epoch .* loss ([\d.]+)", output)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 4
    assert "epoch  11" in launch(*run, "--epochs", 11)


def numbers(output: str) -> dict[int, tuple[float, float]]:
    """Loss and alignment of each step that was printed."""
    rows = re.findall(r"step +(\d+)  loss ([\d.]+)  alignment ([\d.]+)", output)
    return {int(step): (float(loss), float(alignment)) for step, loss, alignment in rows}


def saved(directory: Path) -> dict[str, Any]:
    """The last checkpoint, whole, from one file or from the shards of a folder."""
    if (directory / "checkpoint.pt").exists():
        return torch.load(directory / "checkpoint.pt", weights_only=True)
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    whole = directory / "whole.pt"
    dcp_to_torch_save(max(directory.glob("step-*")), whole)
    return torch.load(whole, weights_only=True)


# The example for JAX learns to predict a text, as its first lines say.
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_example_learns(tmp_path: Path) -> None:
    text = tmp_path / "input.txt"
    text.write_text((ROOT / "docs" / "method.md").read_text(encoding="utf-8"), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "train_jax.py", text, "--steps", "61"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", ran.stdout)]
    assert len(losses) == 4
    assert losses[0] > 4.0  # log of some hundred characters
    assert losses[-1] < 3.5


# Physics-informed networks: the page, with DeepXDE as the trainer, and the example.
EXAMPLE = Path(__file__).parents[2] / "examples" / "train_pinn.py"
REPORT = r"loss (\S+), error (\S+)"


def test_the_page_runs(program: Callable[[str], Path], launch: Callable[..., str]) -> None:
    pytest.importorskip("deepxde", reason="the extra dev brings it")
    output = launch(program("train-a-pinn.md"))
    plain = [(float(loss), float(error)) for loss, error in re.findall(REPORT, output)]
    assert len(plain) == 2
    assert plain[0][1] < 0.02
    assert plain[1][0] < plain[0][0] / 4  # L-BFGS goes on from there
    by_deepxde = [float(loss) for loss in re.findall(r"^DeepXDE.*: loss (\S+)", output, re.M)]
    assert len(by_deepxde) == 2
    assert by_deepxde[0] < 0.2  # from 1
    assert by_deepxde[1] < by_deepxde[0] / 4


def test_the_example_finds_a_slow_wave_and_draws_it(
    launch: Callable[..., str], tmp_path: Path
) -> None:
    picture = tmp_path / "wave.png"
    given = ("--speed", 2, "--steps", 600, "--finish", 100, "--picture", picture)
    output = launch(EXAMPLE, *given)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", output)]
    assert len(losses) == 7  # the first step, five on the way, one after L-BFGS
    assert losses[-1] < losses[-2] < losses[0] / 100
    [error] = re.findall(r"relative error (\S+)", output)
    assert float(error) < 0.05
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_a_finish_and_a_picture(launch: Callable[..., str], tmp_path: Path) -> None:
    output = launch(EXAMPLE, "--steps", 10, "--finish", 0)
    assert "L-BFGS" not in output
    assert not list(tmp_path.glob("*.png"))
