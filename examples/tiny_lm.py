"""What the two distributed examples train: a small character-level transformer on embedded text.

Nothing here is about the optimizer. The text is the opening of Lewis Carroll's *Alice's Adventures
in Wonderland* (1865, public domain).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TEXT = """\
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to
do: once or twice she had peeped into the book her sister was reading, but it had no pictures or
conversations in it, "and what is the use of a book," thought Alice "without pictures or
conversations?"

So she was considering in her own mind (as well as she could, for the hot day made her feel very
sleepy and stupid), whether the pleasure of making a daisy-chain would be worth the trouble of
getting up and picking the daisies, when suddenly a White Rabbit with pink eyes ran close by her.

There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to
hear the Rabbit say to itself, "Oh dear! Oh dear! I shall be late!" (when she thought it over
afterwards, it occurred to her that she ought to have wondered at this, but at the time it all
seemed quite natural); but when the Rabbit actually took a watch out of its waistcoat-pocket, and
looked at it, and then hurried on, Alice started to her feet, for it flashed across her mind that
she had never before seen a rabbit with either a waistcoat-pocket, or a watch to take out of it, and
burning with curiosity, she ran across the field after it, and fortunately was just in time to see
it pop down a large rabbit-hole under the hedge.
"""

VOCABULARY = sorted(set(TEXT))
TOKENS = torch.tensor([VOCABULARY.index(character) for character in TEXT])
CONTEXT = 32  # characters that the model sees
WIDTH = 64
HEADS = 4


class Block(nn.Module):
    """Causal attention, then a two-layer network, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        heads = (
            y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for y in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class TinyLM(nn.Module):
    """Predicts the next character; ``forward`` returns the mean loss over the batch."""

    def __init__(self, blocks: int = 2) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(VOCABULARY), WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(VOCABULARY))

    def forward(self, window: Tensor) -> Tensor:
        inputs, targets = window[:, :-1], window[:, 1:]
        x = self.characters(inputs) + self.positions.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def batch(step: int, size: int, rank: int, world: int) -> Tensor:
    """This rank's share of the batch of a step: every ``world``-th of its windows of characters.

    It depends on the step alone, so that a resumed run sees what it would have seen, and one
    process sees the same windows as many do together.
    """
    generator = torch.Generator().manual_seed(step)
    starts = torch.randint(len(TOKENS) - CONTEXT, (size,), generator=generator)[rank::world]
    return TOKENS[starts[:, None] + torch.arange(CONTEXT + 1)]


def param_groups(model: nn.Module) -> list[dict[str, object]]:
    """Weight decay for matrices, none for biases and norms; one optimizer takes both."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
