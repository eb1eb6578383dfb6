"""Sums over everything a hidden vector spans: over leaves, and over shards where JAX does not.

Under ``jit`` arrays are global and XLA adds the sums over devices by itself. Inside ``shard_map``
and ``pmap`` a leaf is one device's piece, so the sums need the names of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

Axes = tuple[str, ...]


def axes_of(leaves: Sequence[Array], axis_name: Axes | None) -> list[Axes]:
    """Return the mesh axes that each leaf is a piece along.

    Args:
        leaves: The hidden vector's.
        axis_name: The axes that the user names, None if none were.

    Raises:
        ValueError: Inside ``shard_map`` or ``pmap`` nothing was named, but leaves are, or may be,
            pieces: each device would silently have a hidden vector of its own.
    """
    manual = jax.sharding.get_abstract_mesh().manual_axes
    if not manual or axis_name == ():
        return [axis_name or ()] * len(leaves)
    # With check_vma=True JAX knows along which axes a value differs; else it claims none.
    tracked = any(_varying(jax.lax.axis_index(axis)) for axis in manual)
    if axis_name is None:
        found = {axis for leaf in leaves for axis in _varying(leaf)} if tracked else set(manual)
        if found:
            named = tuple(sorted(found))
            raise ValueError(
                f"HVAdam: inside shard_map or pmap over {named} a device sees its own pieces, and "
                f"axis_name must say so: axis_name={named} makes one hidden vector of all pieces, "
                "axis_name=() one per device, which is right where parameters are whole on each."
            )
        return [()] * len(leaves)
    if not tracked:  # all leaves must be pieces along all axes named
        return [axis_name] * len(leaves)
    return [tuple(axis for axis in axis_name if axis in _varying(leaf)) for leaf in leaves]


def total(rows: Sequence[tuple[Array, ...]], axes: Sequence[Axes], dtype: jnp.dtype) -> Array:
    """Return the sums of all leaves, one row per kind of sum, one column for each leaf.

    Args:
        rows: The sums of each leaf over its own elements.
        axes: The mesh axes that each leaf is a piece along.
        dtype: The dtype to add in.
    """
    columns = [jnp.stack([x.astype(dtype) for x in row]) for row in rows]
    made: list[Array] = [*columns]
    for distinct in sorted({own for own in axes if own}):
        places = [i for i, own in enumerate(axes) if own == distinct]
        summed = jax.lax.psum(jnp.stack([columns[i] for i in places], 1), distinct)
        for i, place in enumerate(places):
            made[place] = summed[:, i]
    return jnp.stack(made, 1)


def _varying(x: Array) -> frozenset[str]:
    """Return the manual axes along which a value is known to differ."""
    return jax.typeof(x).manual_axis_type.varying
