"""The vision transformer, and how published weights get into it."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, scaled_dot_product_attention


class ViT(nn.Module):
    """A vision transformer: patches through pre-norm blocks, and a token that classifies.

    The defaults are ViT-B/16. Weights start Xavier-uniform, position embeddings as N(0, 0.02²),
    the class token and the head at 0. Dropout is after each half of a block.

    References:
        Dosovitskiy et al., arXiv:2010.11929, equations 1-4 and Table 1.
    """

    def __init__(
        self,
        classes: int,
        size: int = 224,
        patch: int = 16,
        dim: int = 768,
        depth: int = 12,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.empty(1, 1 + (size // patch) ** 2, dim))
        self.blocks = nn.Sequential(*(_Block(dim, heads, dropout) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)
        nn.init.normal_(self.positions, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.zeros_(self.head.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.token.expand(len(images), -1, -1), patches), dim=1)
        return self.head(self.norm(self.blocks(tokens + self.positions)[:, 0]))


class _Block(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp1 = nn.Linear(dim, 4 * dim)
        self.mlp2 = nn.Linear(4 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, dim)
        x = x + self.dropout(self.out(attended))
        hidden = nn.functional.gelu(self.mlp1(self.norm2(x)))
        return x + self.dropout(self.mlp2(hidden))


# What pytorch_pretrained_vit calls things, and what they are here.
_NAMES = {
    "class_token": "token",
    r"positional_embedding\.pos_embedding": "positions",
    r"patch_embedding\.": "patches.",
    r"transformer\.": "",
    r"\.proj\.": ".out.",
    r"\.pwff\.fc": ".mlp",
}


def load_pretrained(model: ViT, path: Path) -> None:
    """Start a model from a state dict of pytorch_pretrained_vit, all but its head.

    Position embeddings of another image size are interpolated. The head stays new: fine-tuning is
    for other classes.

    Raises:
        ValueError: the file is of another layout, or of another architecture.
    """
    try:
        raw = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever its unpickler meets
        raise ValueError(
            f"vit: {path} cannot be read as a checkpoint ({error}); fetch it again."
        ) from error
    if "class_token" not in raw:
        raise ValueError(
            f"vit: {path} has no class token; it must be a state dict of pytorch_pretrained_vit."
        )
    weights = _translated(raw)
    own = {name: value for name, value in model.state_dict().items() if name[:5] != "head."}
    if "positions" in weights:
        weights["positions"] = _resize_positions(weights["positions"], own["positions"].shape[1])
    for name, value in own.items():
        if name not in weights or weights[name].shape != value.shape:
            found = tuple(weights[name].shape) if name in weights else "nothing"
            raise ValueError(
                f"vit: {path} must hold {tuple(value.shape)} for {name!r}, "
                f"got {found}; is it a ViT of this size?"
            )
    model.load_state_dict({name: weights[name] for name in own}, strict=False)


def _translated(raw: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights by our names; those of queries, keys and values are one."""
    weights = {}
    for name, value in raw.items():
        for theirs, ours in _NAMES.items():
            name = re.sub(theirs, ours, name)
        if (found := re.fullmatch(r"(.*)\.attn\.proj_q\.(.*)", name)) is not None:
            block, kind = found.groups()
            parts = [raw[f"transformer.{block}.attn.proj_{part}.{kind}"] for part in "qkv"]
            name, value = f"{block}.qkv.{kind}", torch.cat(parts)
        weights[name] = value
    return weights


def _resize_positions(positions: Tensor, length: int) -> Tensor:
    """Resize positions bilinearly on the grid of patches; the token's own is kept."""
    if positions.shape[1] == length:
        return positions
    token, grid = positions[:, :1], positions[:, 1:]
    old, new = (round((n - 1) ** 0.5) for n in (positions.shape[1], length))
    square = grid.reshape(1, old, old, -1).permute(0, 3, 1, 2)
    resized = interpolate(square, (new, new), mode="bilinear", align_corners=True)
    return torch.cat((token, resized.flatten(2).transpose(1, 2)), dim=1)
