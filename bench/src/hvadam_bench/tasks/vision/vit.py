"""The vision transformer, and how published weights get into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, scaled_dot_product_attention

Weights = dict[str, Tensor]


class ViT(nn.Module):
    """A vision transformer: patches through pre-norm blocks, and a token that classifies.

    The defaults are ViT-B/16. Weights start Xavier-uniform, position embeddings as N(0, 0.02²),
    the class token and the head at 0.

    Args:
        classes: Outputs.
        size: Height and width of the images.
        patch: Height and width of a patch.
        dim: Features of a token.
        depth: Blocks.
        heads: Attention heads in a block.
        dropout: After each half of a block.

    Example:
        >>> tiny = ViT(classes=10, size=32, patch=8, dim=16, depth=2, heads=2)
        >>> tiny(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

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


def load_pretrained(model: ViT, path: Path) -> None:
    """Start a model from a checkpoint of the same architecture, all but its head.

    The layouts of three publishers are known: the original `.npz` of the paper's authors, and the
    state dicts of pytorch_pretrained_vit and timm. Position embeddings of another image size are
    interpolated. The head stays new: fine-tuning is for other classes.

    Raises:
        ValueError: the file is of none of these layouts, or of another architecture.
    """
    try:
        raw = _read(path)
    except Exception as error:  # torch and NumPy raise whatever their unpicklers meet
        raise ValueError(
            f"vit: {path} cannot be read as a checkpoint ({error}); fetch it again."
        ) from error
    weights = _translate(raw, path)
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


def _read(path: Path) -> Weights:
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    return dict(loaded.get("state_dict", loaded))


def _translate(raw: Weights, path: Path) -> Weights:
    """Return weights under our names and in our shapes, told by the name of the class token."""
    layouts: dict[str, Callable[[Weights], Weights]] = {
        "cls": _from_jax,
        "class_token": _from_pytorch_pretrained_vit,
        "cls_token": _from_timm,
    }
    for token, translate in layouts.items():
        if token in raw:
            return translate(raw)
    raise ValueError(
        f"vit: {path} has no class token, one of {', '.join(layouts)}; it "
        "must be the authors' .npz or a state dict of pytorch_pretrained_vit or timm."
    )


def _from_timm(raw: Weights) -> Weights:
    names = {
        "cls_token": "token",
        "pos_embed": "positions",
        r"patch_embed\.proj\.": "patches.",
        r"\.attn\.qkv\.": ".qkv.",
        r"\.attn\.proj\.": ".out.",
        r"\.mlp\.fc": ".mlp",
    }
    return {_rename(name, names): value for name, value in raw.items()}


def _from_pytorch_pretrained_vit(raw: Weights) -> Weights:
    names = {
        "class_token": "token",
        r"positional_embedding\.pos_embedding": "positions",
        r"patch_embedding\.": "patches.",
        r"transformer\.": "",
        r"\.proj\.": ".out.",
        r"\.pwff\.fc": ".mlp",
        r"\.attn\.proj_": ".",
    }
    return _join_qkv({_rename(name, names): value for name, value in raw.items()})


def _from_jax(raw: Weights) -> Weights:
    """Turn kernels of (inputs, outputs), with attention heads as an axis of their own."""
    names = {
        "^cls$": "token",
        "Transformer/posembed_input/pos_embedding": "positions",
        "^embedding/": "patches/",
        "Transformer/encoder_norm": "norm",
        "Transformer/encoderblock_": "blocks/",
        "LayerNorm_0": "norm1",
        "LayerNorm_2": "norm2",
        r"MlpBlock_3/Dense_0": "mlp1",
        r"MlpBlock_3/Dense_1": "mlp2",
        "MultiHeadDotProductAttention_1/out": "out",
        r"MultiHeadDotProductAttention_1/(query|key|value)": r"\1",
        r"/(query|key|value)/": lambda found: f"/{found[1][0]}/",
        "kernel|scale": "weight",
        "/": ".",
    }
    weights = {}
    for name, value in raw.items():
        renamed = _rename(name, names)
        if renamed == "patches.weight":
            value = value.permute(3, 2, 0, 1)
        elif re.search(r"\.[qkv]\.weight$", renamed):
            value = value.flatten(1).T
        elif re.search(r"\.[qkv]\.bias$", renamed):
            value = value.flatten()
        elif renamed.endswith(".out.weight"):
            value = value.flatten(0, 1).T
        elif renamed.endswith(".weight") and value.dim() == 2:
            value = value.T
        weights[renamed] = value
    return _join_qkv(weights)


def _join_qkv(weights: Weights) -> Weights:
    joined = {k: v for k, v in weights.items() if not re.search(r"\.[qkv]\.(weight|bias)$", k)}
    for name in weights:
        if match := re.fullmatch(r"(.*)\.q\.(weight|bias)", name):
            block, kind = match.groups()
            joined[f"{block}.qkv.{kind}"] = torch.cat(
                [weights[f"{block}.{part}.{kind}"] for part in "qkv"]
            )
    return joined


def _rename(name: str, rules: Mapping[str, str | Callable[[re.Match[str]], str]]) -> str:
    for pattern, new in rules.items():
        name = re.sub(pattern, new, name)
    return name


def _resize_positions(positions: Tensor, length: int) -> Tensor:
    """Resize positions bilinearly on the grid of patches; the token's own is kept."""
    if positions.shape[1] == length:
        return positions
    token, grid = positions[:, :1], positions[:, 1:]
    old, new = (round((n - 1) ** 0.5) for n in (positions.shape[1], length))
    square = grid.reshape(1, old, old, -1).permute(0, 3, 1, 2)
    resized = interpolate(square, (new, new), mode="bilinear", align_corners=True)
    return torch.cat((token, resized.flatten(2).transpose(1, 2)), dim=1)
