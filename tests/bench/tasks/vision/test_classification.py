"""Image classification: batches, epochs, normalisation and measures."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_problems import smoke_images as problem
from torch import nn

from hvadam_bench.data import DataError
from hvadam_bench.data.images import ImageData
from hvadam_bench.tasks._images import first
from hvadam_bench.tasks.vision import classification
from hvadam_bench.tasks.vision.classification import ImageBatch, ImageProblem
from hvadam_bench.tasks.vision.pictures import InMemory, Parts, synthetic


def test_evaluation_averages_over_images_in_eval_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem("cifar10_vgg11")
    model = one.networks["model"]
    whole = one.evaluate("valid")
    assert model.training
    monkeypatch.setattr(classification, "_EVALUATION_BATCH", 7)  # 20 images: the last batch is of 6
    assert one.evaluate("valid") == pytest.approx(whole)
    pictures, indices = one.parts["valid"]
    with torch.no_grad():
        logits = model.eval()(one._normalised(pictures.centred(indices).float()))
    right = logits.argmax(1) == pictures.labels[indices]
    loss = nn.functional.cross_entropy(logits, pictures.labels[indices])
    assert whole == pytest.approx(
        {"accuracy": 100 * right.double().mean().item(), "loss": loss.item()}
    )
    one.evaluate("test")
    assert not model.training  # as it was


def test_a_glance_is_at_the_first_validation_images() -> None:
    one = problem("cifar10_resnet8")
    assert one.curve_images == 10
    pictures, indices = one.parts["valid"]
    glanced = one.glance()
    assert glanced != one.evaluate("valid")
    one.parts["valid"] = pictures, indices[:10]
    assert glanced == one.evaluate("valid")
    one.curve_images = None
    assert one.glance() == one.evaluate("valid")
    with pytest.raises(ValueError, match="curve_images must be at least 1, got 0"):
        problem("cifar10_resnet8", curve_images=0)


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_batches_are_the_same_whenever_asked_for(protocol: str) -> None:
    one, again = (problem("cifar10_vit_b16", protocol, seed=3) for _ in range(2))
    other = problem("cifar10_vit_b16", protocol, seed=4)
    steps = [(7, 0), (2, 1), (one.steps - 1, 2), (2, 0)]
    first = [one.batch(*which) for which in steps]
    for which, batch in reversed(list(zip(steps, first, strict=True))):
        assert torch.equal(again.batch(*which).images, batch.images)
        assert torch.equal(again.batch(*which).labels, batch.labels)
        assert not torch.equal(other.batch(*which).images, batch.images)
    assert torch.equal(
        one.networks["model"].state_dict()["positions"],
        again.networks["model"].state_dict()["positions"],
    )


def numbered(count: int) -> Parts:
    """Black images whose labels are their own numbers."""
    data = synthetic(count, 20)
    train = InMemory(data.train, 32, margin=4)
    train.labels = torch.arange(count)
    return Parts(train, InMemory(data.test, 32, margin=4), 10)


def settings(**changes: Any) -> dict[str, Any]:
    return {"epochs": 2, "batch_size": 32, "weight_decay": 0.0, **changes}


def seen(one: ImageProblem, steps: range) -> list[int]:
    return sorted(label for step in steps for label in one.batch(step).labels.tolist())


def test_an_epoch_is_the_training_part_and_validation_is_never_drawn() -> None:
    one = ImageProblem(
        lambda classes: nn.Linear(1, 1), numbered(200), settings(milestones=[]), 0, "standard"
    )
    assert one.steps == 2 * 6  # 180 images in batches of 32, the last of 20
    kept = [number for number in range(200) if number % 10 != 9]
    for epoch in range(2):
        assert seen(one, range(6 * epoch, 6 * epoch + 6)) == kept
    assert one.parts["valid"][1].tolist() == list(range(9, 200, 10))
    assert not torch.equal(one.batch(0).labels, one.batch(6).labels)


def test_inherited_epochs_are_three_passes_over_everything() -> None:
    one = ImageProblem(
        lambda classes: nn.Linear(1, 1),
        numbered(96),
        settings(milestones=[1]),
        0,
        "inherited",
        loaders=3,
    )
    assert one.steps == 2 * 3 * 3
    for loader in range(3):  # each pass is in an order of its own
        assert seen(one, range(loader, 9, 3)) == list(range(96))
    assert not torch.equal(one.batch(0).labels, one.batch(1).labels)
    assert [one.lr_factor(step) for step in (8, 9)] == [1.0, 0.1]
    assert one.parts["valid"][0] is one.parts["test"][0]


def test_normalisation_is_the_published_one() -> None:
    one = problem("cifar100_resnet34")  # CIFAR-10's constants, as published
    levels = torch.tensor([0.0, 127.5, 255.0]).view(3, 1, 1, 1).expand(3, 3, 2, 2)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.2023, 0.1994, 0.2010]).view(1, 3, 1, 1)
    torch.testing.assert_close(one._normalised(levels), (levels / 255 - mean) / deviation)


def test_variants_differ_on_the_same_pictures() -> None:
    one = problem("cifar10_resnet34")
    plain, *others = (one.batch(5, variant) for variant in range(3))
    for other in others:
        assert torch.equal(other.labels, plain.labels)
        assert not torch.equal(other.images, plain.images)


def test_averaging_contenders_can_ask_for_any_variant() -> None:
    one = problem("fashion_mnist_cnn")
    assert torch.equal(one.batch(0, 3).images, one.batch(0, 0).images)


def test_enlarged_images() -> None:
    data = synthetic(20, 10)
    large = InMemory(data.train, 64, margin=4).centred(torch.arange(2))
    assert large.dtype == torch.uint8
    assert large.shape == (2, 3, 64, 64)
    small = InMemory(data.train, 32, margin=4).centred(torch.arange(2)).float()
    shrunk = nn.functional.avg_pool2d(large.float(), 2)
    assert (shrunk - small).abs().mean() < 20


@pytest.mark.parametrize(("protocol", "examples"), [("standard", 180), ("inherited", 200)])
def test_batches_are_no_larger_than_the_training_set(protocol: str, examples: int) -> None:
    assert problem("cifar10_vit_b16", protocol, batch_size=examples).steps >= 3
    with pytest.raises(ValueError, match=rf"batch_size must be at most {examples}, .* got 201"):
        problem("cifar10_vit_b16", protocol, batch_size=201)


def test_parts_of_a_data_set_are_refused_at_paper_scale() -> None:
    data = synthetic(100, 10)
    partial = ImageData(data.train, data.test, 10, missing=("data_batch_5.bin",))
    assert len(first("cifar10", partial, 50, None).train) == 50
    for count in (None, 101):
        with pytest.raises(DataError, match=r"cifar10: .*data_batch_5\.bin are missing"):
            first("cifar10", partial, count, None)


@pytest.mark.parametrize("name", ["fashion_mnist_60k", "cifar10_resnet8"])
def test_half_the_steps_are_the_same_training_at_half_length(name: str) -> None:
    whole, half = problem(name, steps=40), problem(name, steps=20)
    assert (whole.steps, half.steps) == (40, 20)
    assert max(map(whole.lr_factor, range(40))) == max(map(half.lr_factor, range(20))) == 1
    assert whole.lr_factor(40) == half.lr_factor(20) == pytest.approx(0)
    assert whole.lr_factor(0) == half.lr_factor(0) * 0.5  # a rise of two steps, and of one
    middle = [one.lr_factor(one.rising + (one.steps - one.rising) // 2) for one in (whole, half)]
    assert middle == pytest.approx([0.5, 0.5], abs=0.05)
    assert torch.equal(whole.batch(7).images, half.batch(7).images)


def test_channels_side_by_side_are_the_same_images() -> None:
    one = problem("cifar10_resnet8")
    batch = one.batch(0).images
    assert batch.is_contiguous(memory_format=torch.channels_last)
    one.format = torch.contiguous_format
    assert one.batch(0).images.is_contiguous()
    assert torch.equal(one.batch(0).images, batch)
    # Weights stay as optimizers expect them.
    [update] = one.updates(ImageBatch(batch, one.batch(0).labels))
    update.loss.backward()
    for parameter in one.model.parameters():
        assert parameter.is_contiguous()
        assert parameter.grad is not None
        assert parameter.grad.is_contiguous()


def test_the_parts_of_the_test_split_make_up_its_accuracy() -> None:
    own = problem("fashion_mnist_60k", test_images=100)
    accuracy = own.evaluate("test")["accuracy"]
    parts = own.test_parts()
    assert len(parts) == classification.PARTS
    assert sum(parts) / len(parts) == pytest.approx(accuracy)
    assert set(parts) <= {0.0, 50.0, 100.0}  # of two images each
