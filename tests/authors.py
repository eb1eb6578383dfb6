"""The traces of the authors' implementation in golden/, cut into cases."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).parent / "golden" / "authors_traces.npz"
TOLERANCE = 1e-9  # relative to the largest parameter


@dataclass(frozen=True)
class Trace:
    """A run of the authors' code: gradients in, parameters out."""

    kind: str
    groups: list[list[int]]  # tensor indices per param group
    options: dict[str, Any]  # our names
    restarts: int
    theta0: list[np.ndarray]
    grads: list[list[np.ndarray]]
    kept: dict[int, np.ndarray]  # 1-based step -> all parameters after it, flat
    deltas: dict[int, np.ndarray]  # alignment average per group


def load() -> list[Trace]:
    """Read all traces."""
    with np.load(PATH) as data:
        arrays = dict(data)
    meta = json.loads(arrays["meta"].tobytes())
    shapes = [tuple(shape) for shape in meta["shapes"]]
    edges = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def split(flat: np.ndarray) -> list[np.ndarray]:
        return [x.reshape(s) for x, s in zip(np.split(flat, edges), shapes, strict=True)]

    traces: list[Trace] = []
    for i, case in enumerate(meta["cases"]):
        options = dict(case["args"])
        decoupled = options.pop("weight_decouple", False)
        options["weight_decay_mode"] = "decoupled" if decoupled else "coupled"
        options["betas"] = tuple(options.get("betas", (0.9, 0.999)))
        steps = arrays[f"c{i}_steps"].tolist()
        traces.append(
            Trace(
                kind=case["kind"],
                groups=case["groups"],
                options=options,
                restarts=case["restarts"],
                theta0=split(arrays[f"c{i}_theta0"]),
                grads=[split(g) for g in arrays[f"c{i}_grads"]],
                kept=dict(zip(steps, arrays[f"c{i}_thetas"], strict=True)),
                deltas=dict(zip(steps, arrays[f"c{i}_delta"], strict=True)),
            )
        )
    return traces
