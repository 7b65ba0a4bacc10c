# SPDX-License-Identifier: Apache-2.0
"""What both QR algorithms for eigenvalues share: rotations of neighbours, and when to stop."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .matrix import column, diagonal, positions, row, with_column, with_row


def rotated(
    h: jax.Array, q: jax.Array, k: jax.Array, c: jax.Array, s: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(g h g^H, q g^H) for the rotation g of rows k and k + 1."""
    c, s = c[..., None], s[..., None]
    upper, lower = row(h, k), row(h, k + 1)
    h = with_row(h, k, jnp.conj(c) * upper + jnp.conj(s) * lower)
    h = with_row(h, k + 1, c * lower - s * upper)
    return _columns_rotated(h, k, c, s), _columns_rotated(q, k, c, s)


def _columns_rotated(a: jax.Array, k: jax.Array, c: jax.Array, s: jax.Array) -> jax.Array:
    left, right = column(a, k), column(a, k + 1)
    a = with_column(a, k, c * left + s * right)
    return with_column(a, k + 1, jnp.conj(c) * right - jnp.conj(s) * left)


def deflated(h: jax.Array) -> tuple[jax.Array, jax.Array]:
    """h with zeros for what is negligible below the diagonal; which rows keep an element there."""
    at = positions(h.shape[-1])
    size = jnp.abs(diagonal(h))
    near = size + jnp.roll(size, 1, axis=-1)
    below = jnp.roll(jnp.abs(_subdiagonal(h)), 1, axis=-1)  # h[i, i - 1] at i
    is_left = (below > jnp.finfo(h.dtype).eps * near) & (at > 0)
    is_kept = (at[:, None] <= at) | ((at[:, None] == at + 1) & is_left[..., :, None])
    return jnp.where(is_kept, h, 0), is_left


def _subdiagonal(h: jax.Array) -> jax.Array:
    """h[i + 1, i] at i; zero at the end."""
    at = positions(h.shape[-1])
    return jnp.sum(jnp.where(at[:, None] == at + 1, h, 0), axis=-2)
