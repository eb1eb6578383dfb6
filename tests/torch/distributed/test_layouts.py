"""The same numbers on one process and on many, however the parameters lie."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ranks import layouts, training
from ranks.pool import Pool
from torch import Tensor, nn

from hvadam import HVAdam

TOLERANCE = 1e-12  # relative to the largest parameter, float64, after 50 steps
NATIVE_TOLERANCE = 2e-6  # relative to the largest element, float32, one step from equal states

# The quick ones stand for the rest: nothing sharded, everything, and all kinds side by side.
LAYOUTS = [
    pytest.param(name, marks=() if name in ("ddp", "fsdp2", "mixed") else pytest.mark.slow)
    for name in training.LAYOUTS
]


def furthest(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    assert ours.keys() == theirs.keys()
    scale = max(x.abs().max().item() for x in theirs.values())
    return max((ours[name] - theirs[name]).abs().max().item() for name in theirs) / scale


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fifty_steps_equal_one_process(pool: Pool, layout: str) -> None:
    alone = training.train(None)
    for result in pool.run(training.train, 4, layout):
        assert furthest(result["params"], alone["params"]) < TOLERANCE
        assert result["communicated"] == (0 if layout == "ddp" else 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_meter_reads_the_same_on_one_process(pool: Pool, layout: str) -> None:
    alone, _ = layouts.metered(None)
    for reading, communicated in pool.run(layouts.metered, 4, layout):
        assert reading == pytest.approx(alone, abs=1e-9)
        assert communicated == (0 if layout == "ddp" else 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clipping_takes_one_more_collective(pool: Pool, layout: str) -> None:
    options = {"max_grad_norm": 0.05}
    alone = training.train(None, options)
    for result in pool.run(training.train, 4, layout, options):
        assert furthest(result["params"], alone["params"]) < TOLERANCE
        assert result["communicated"] == (0 if layout == "ddp" else 2)


def test_a_grad_scaler_takes_one_more_collective(pool: Pool) -> None:
    assert pool.run(layouts.collectives_under_a_scaler, 2, "fsdp2") == [(2, 1)] * 2
    assert pool.run(layouts.collectives_under_a_scaler, 2, "ddp") == [(0, 0)] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"scope": "group"},
        {"scope": "tensor"},
        {"bounds": (-0.5, 0.5), "weight_decay_mode": "coupled"},
        {"kernel": "loop"},
        {"kernel": "foreach"},
    ],
    ids=str,
)
def test_every_option_is_exact_when_sharded(pool: Pool, options: dict[str, Any]) -> None:
    alone = training.train(None, options)
    for result in pool.run(training.train, 2, "fsdp2", options):
        assert furthest(result["params"], alone["params"]) < TOLERANCE
        assert result["communicated"] == 1


def test_gradients_accumulate(pool: Pool) -> None:
    alone = training.train(None)
    for result in pool.run(training.train, 2, "fsdp2", None, 50, 2):
        assert furthest(result["params"], alone["params"]) < TOLERANCE


@pytest.mark.parametrize("kernel", ["loop", "foreach"])
def test_equal_gradients_give_equal_bits(pool: Pool, kernel: str) -> None:
    alone = layouts.with_given_gradients(kernel, sharded=False)
    for result in pool.run(layouts.with_given_gradients, 4, kernel, True):
        for ours, theirs in zip(result, alone, strict=True):
            assert torch.equal(ours, theirs)


def test_native_steps_agree_from_equal_states(pool: Pool) -> None:
    alone = layouts.one_teacher_forced_step(sharded=False)
    for result in pool.run(layouts.one_teacher_forced_step, 4, True):
        for ours, theirs in zip(result, alone, strict=True):
            scale = theirs.abs().max().item()
            torch.testing.assert_close(ours, theirs, rtol=0, atol=NATIVE_TOLERANCE * scale)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.05}], ids=str)
@pytest.mark.parametrize("layout", ["zero_redundancy", "fsdp1", "pipeline"])
def test_shard_group_tells_what_tensors_do_not(
    pool: Pool, layout: str, options: dict[str, Any]
) -> None:
    alone = _train_plainly(options)
    for result in pool.run(getattr(layouts, layout), 2, options):
        assert furthest(result, alone) < TOLERANCE


@pytest.mark.slow
def test_shard_group_spans_sharded_stages(pool: Pool) -> None:
    alone = _train_plainly({})
    for result in pool.run(layouts.pipeline, 4, {}, True):
        assert furthest(result, alone) < TOLERANCE


def test_copies_share_the_shard_group_and_pickles_drop_it(pool: Pool) -> None:
    for shared, kept_out, words, refused in pool.run(layouts.copies_of_a_shard_group, 2):
        assert shared
        assert kept_out
        assert len(words) == 1
        assert "a process group cannot be pickled" in words[0]
        assert "set optimizer.shard_group before it steps" in refused


def test_diagnostics_never_communicate(pool: Pool) -> None:
    found, other = pool.run(layouts.diagnostics_on_one_rank, 2)
    assert other is None
    assert found["global"]["step"] == 3
    assert found["global"]["hidden_norm"] > 0
    assert "adaptive_step_norm" not in found["global"]


@pytest.mark.parametrize("what", ["shape", "count", "scope", "betas", "checkpoint"])
def test_ranks_that_disagree_all_raise_the_same(pool: Pool, what: str) -> None:
    errors = pool.errors(layouts.disagreeing_layouts, 3, what)
    assert len({*errors}) == 1
    assert "HVAdam: ranks 0 and 1 disagree on what they optimize" in errors[0]


def test_what_one_rank_refuses_all_refuse(pool: Pool) -> None:
    errors = pool.errors(layouts.disagreeing_layouts, 3, "partial")
    assert len({*errors}) == 1
    assert "a parameter must not be a Partial DTensor" in errors[0]
    for error in pool.errors(layouts.disagreeing_layouts, 3, "shard_group"):
        assert "shard_group must hold all ranks that parameters lie on" in error


def test_a_rank_without_gradients_moves_on_with_the_others(pool: Pool) -> None:
    (_, ours), (_, theirs) = pool.run(layouts.one_rank_without_gradients, 2)
    assert torch.equal(ours, theirs)
    assert ours[0] == 4


@pytest.mark.parametrize("layout", ["fsdp2", "replicated and sharded", "shard_group"])
def test_an_inf_on_one_rank_skips_the_step_on_all(pool: Pool, layout: str) -> None:
    for changed, before, after in pool.run(layouts.inf_on_one_rank, 2, layout):
        assert not changed
        if layout == "fsdp2":  # torch tells the scalers of all ranks; ShardedGradScaler does too
            assert after < before


def test_bfloat16_state_shards(pool: Pool) -> None:
    for first, last in pool.run(layouts.low_bit_state, 2, "bfloat16"):
        assert last < first


def test_int8_state_of_sharded_parameters_is_refused(pool: Pool) -> None:
    for error in pool.errors(layouts.low_bit_state, 2, "int8"):
        assert 'state_dtype="int8" is for parameters that are whole' in error


def _train_plainly(options: dict[str, Any]) -> dict[str, Tensor]:
    """One process, all parameters in one group."""
    model = training.make_model()
    optimizer = HVAdam(model.parameters(), lr=0.02, **options)
    for step in range(50):
        optimizer.zero_grad()
        x, y = training.batch(step)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return {name: training.whole(p) for name, p in model.named_parameters()}
