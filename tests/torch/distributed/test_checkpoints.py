"""Checkpoints of sharded optimizers: saved, loaded, resharded, and after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import checkpoints, training
from ranks.pool import Pool, launch
from torch import nn

from hvadam import HVAdam

OPTIONS = [
    {},
    {"scope": "tensor"},
    {"max_grad_norm": 0.5},
    {"state_dtype": "bfloat16"},
]


@pytest.mark.parametrize("way", ["dcp", "flattened", "full"])
@pytest.mark.parametrize(
    "options",
    [pytest.param(x, marks=pytest.mark.slow if x else (), id=str(x)) for x in OPTIONS],
)
def test_a_resumed_run_goes_on_as_if_nothing_happened(
    pool: Pool, tmp_path: Path, options: dict[str, Any], way: str
) -> None:
    how = ("flattened" in way, "full" in way)
    for uninterrupted, resumed in pool.run(checkpoints.save_and_load, 2, tmp_path, options, *how):
        for name in uninterrupted:
            assert torch.equal(uninterrupted[name], resumed[name])


def test_making_the_state_changes_nothing(pool: Pool) -> None:
    assert pool.run(checkpoints.initialisation, 2) == [False, False]


def test_whole_state_is_refused_by_shards(pool: Pool) -> None:
    for error in pool.errors(checkpoints.whole_state_into_shards, 2):
        assert "exp_avg is laid out as whole" in error
        assert "set_optimizer_state_dict" in error


def test_warm_start_of_shards(pool: Pool) -> None:
    for adamw, ours in pool.run(checkpoints.warm_started, 2):
        assert adamw / 2 < ours < adamw * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "flatten"),
    [({}, False), ({}, True), ({"scope": "tensor"}, False)],
    ids=str,
)
def test_killed_and_restarted_on_other_world_sizes(
    tmp_path: Path, options: dict[str, Any], flatten: bool
) -> None:
    """4 ranks until one is killed at step 13, 2 until step 23, 3 to the end."""
    assert any(launch(checkpoints.job, 4, tmp_path, 30, 13, options, flatten))
    assert (tmp_path / "latest").read_text() == "10"
    assert any(launch(checkpoints.job, 2, tmp_path, 30, 23, options, flatten))
    assert (tmp_path / "latest").read_text() == "20"
    assert launch(checkpoints.job, 3, tmp_path, 30, None, options, flatten) == [0, 0, 0]
    final = torch.load(tmp_path / "final.pt")

    model = training.make_model()
    optimizer = HVAdam(model.parameters(), lr=0.02, **options)
    for step in range(30):
        optimizer.zero_grad()
        x, y = training.batch(step)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    for name, p in model.named_parameters():
        torch.testing.assert_close(final[name], p.detach(), rtol=1e-12, atol=1e-12)
