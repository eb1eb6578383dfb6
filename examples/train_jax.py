"""Train a small language model of tiny Shakespeare's characters with HVAdam, JAX and Optax.

    python examples/train_jax.py input.txt

The text is not part of this repository: ``input.txt`` of "tiny Shakespeare" (char-rnn), or any
other text.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hvadam.jax import hvadam

CONTEXT = 64  # characters that the model sees
WIDTH = 64
HEADS = 4
BLOCKS = 2
BATCH = 32
LOG_EVERY = 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a character model with HVAdam in JAX.")
    parser.add_argument("text", type=Path, help="a file of text: tiny Shakespeare's input.txt")
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    text = args.text.read_text(encoding="utf-8")
    vocabulary = sorted(set(text))
    tokens = np.array([vocabulary.index(character) for character in text], np.int32)

    params = make_model(jax.random.key(0), len(vocabulary))
    # Clipping comes before, the schedule moves both parts of the step, and only matrices decay.
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        hvadam(
            optax.warmup_cosine_decay_schedule(0.0, 3e-3, args.steps // 10, args.steps),
            weight_decay=0.01,
            mask=lambda params: jax.tree.map(lambda x: x.ndim > 1, params),
        ),
    )
    state = optimizer.init(params)

    # What a step replaces is donated: it works in place.
    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, windows: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, windows)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    random = np.random.default_rng(0)
    for i in range(args.steps):
        starts = random.integers(0, len(tokens) - CONTEXT - 1, BATCH)
        windows = jnp.asarray(tokens[starts[:, None] + np.arange(CONTEXT + 1)])
        params, state, loss = step(params, state, windows)
        if i % LOG_EVERY == 0 or i == args.steps - 1:
            aligned = float(optax.tree.get(state, "alignment"))
            print(f"step {i}  loss {float(loss):.3f}  alignment {aligned:.2f}")


def make_model(key: jax.Array, characters: int) -> Any:
    """Return the parameters of a small transformer."""
    keys = iter(jax.random.split(key, 2 + 4 * BLOCKS))

    def matrix(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) / np.sqrt(shape[0])

    blocks = [
        {
            "qkv": matrix(WIDTH, 3 * WIDTH),
            "out": matrix(WIDTH, WIDTH),
            "wide": matrix(WIDTH, 4 * WIDTH),
            "narrow": matrix(4 * WIDTH, WIDTH),
            "scales": jnp.ones((2, 1, WIDTH)),
        }
        for _ in range(BLOCKS)
    ]
    embedding = 0.02 * jax.random.normal(next(keys), (characters, WIDTH))
    positions = 0.02 * jax.random.normal(next(keys), (CONTEXT, WIDTH))
    return {"blocks": blocks, "embedding": embedding, "positions": positions}


def loss_of(params: Any, windows: jax.Array) -> jax.Array:
    """Return the mean cross-entropy of the next character."""
    inputs, targets = windows[:, :-1], windows[:, 1:]
    x = params["embedding"][inputs] + params["positions"]
    for block in params["blocks"]:
        first, second = block["scales"]
        q, k, v = (
            part.reshape(*part.shape[:2], HEADS, -1)
            for part in jnp.split(first * normalize(x) @ block["qkv"], 3, axis=-1)
        )
        attended = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + attended.reshape(x.shape) @ block["out"]
        x = x + jax.nn.gelu(second * normalize(x) @ block["wide"]) @ block["narrow"]
    logits = normalize(x) @ params["embedding"].T
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def normalize(x: jax.Array) -> jax.Array:
    """Return vectors scaled to a mean square of 1."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)


if __name__ == "__main__":
    main()
