"""Published weights of the vision transformer, loaded and fine-tuned."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from made_problems import smoke_images as problem
from torch import Tensor, nn

from hvadam_bench import tasks
from hvadam_bench.data import DataError
from hvadam_bench.tasks.vision.vit import ViT, load_pretrained


def tiny_vit(seed: int, size: int = 32) -> ViT:
    torch.manual_seed(seed)
    vit = ViT(classes=5, size=size, patch=8, dim=8, depth=2, heads=2)
    for parameter in vit.parameters():
        nn.init.normal_(parameter)
    return vit


def as_pytorch_pretrained_vit(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {
        "class_token": weights["token"],
        "positional_embedding.pos_embedding": weights["positions"],
        "patch_embedding.weight": weights["patches.weight"],
        "patch_embedding.bias": weights["patches.bias"],
        "norm.weight": weights["norm.weight"],
        "norm.bias": weights["norm.bias"],
        "fc.weight": torch.zeros(1000, 8),
        "fc.bias": torch.zeros(1000),
    }
    places = {"norm1": "norm1", "proj": "out", "norm2": "norm2"}
    places |= {"pwff.fc1": "mlp1", "pwff.fc2": "mlp2"}
    for i in range(2):
        block = f"transformer.blocks.{i}"
        for kind in ("weight", "bias"):
            for theirs, ours in places.items():
                named[f"{block}.{theirs}.{kind}"] = weights[f"blocks.{i}.{ours}.{kind}"]
            for part, value in zip("qkv", weights[f"blocks.{i}.qkv.{kind}"].chunk(3), strict=True):
                named[f"{block}.attn.proj_{part}.{kind}"] = value
    return named


def test_published_weights_load(tmp_path: Path) -> None:
    source, model = tiny_vit(0), tiny_vit(1)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
    head = copy.deepcopy(model.head)
    load_pretrained(model, tmp_path / "vit.pth")
    for name, value in source.state_dict().items():
        if not name.startswith("head."):
            assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.head.weight, head.weight)  # new classes, new head


def test_position_embeddings_follow_the_image_size(tmp_path: Path) -> None:
    source, model = tiny_vit(0, size=48), tiny_vit(1, size=32)
    ramp = torch.linspace(0, 1, 6)
    with torch.no_grad():
        source.positions[0, 1:] = (ramp[:, None] + 10 * ramp).reshape(36, 1)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
    load_pretrained(model, tmp_path / "vit.pth")
    assert torch.equal(model.positions[:, 0], source.positions[:, 0])
    ramp = torch.linspace(0, 1, 4)
    torch.testing.assert_close(
        model.positions[0, 1:, 0].detach(), (ramp[:, None] + 10 * ramp).reshape(16)
    )


def test_wrong_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vit.pth"
    path.write_bytes(b"half a downl")
    with pytest.raises(ValueError, match=r"vit\.pth cannot be read as a checkpoint"):
        load_pretrained(tiny_vit(0), path)
    torch.save({"conv1.weight": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"vit\.pth has no class token"):
        load_pretrained(tiny_vit(0), path)
    other = ViT(classes=5, size=32, patch=8, dim=16, depth=2, heads=2)
    torch.save(as_pytorch_pretrained_vit(other.state_dict()), path)
    with pytest.raises(ValueError, match=r"must hold \(1, 1, 8\) for 'token', got \(1, 1, 16\)"):
        load_pretrained(tiny_vit(0), path)
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"put B_16_imagenet1k\.pth .* there"):
        problem("cifar10_vit_b16", weights="vit/B_16_imagenet1k.pth")


def test_fine_tuning_starts_from_the_weights(tmp_path: Path) -> None:
    shape = {key: tasks.get("cifar10_vit_b16").scales["smoke"][key] for key in ("size", "patch")}
    source = tiny_vit(0)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
    fine = problem("cifar10_vit_b16", weights=str(tmp_path / "vit.pth"), dim=8, **shape)
    assert torch.equal(fine.networks["model"].state_dict()["token"], source.token)
