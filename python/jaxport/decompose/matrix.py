# SPDX-License-Identifier: Apache-2.0
"""What the decompositions of matrices share. All work on the last two axes, over any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._jax import is_symbolic


def positions(size: Any) -> jax.Array:
    return lax.iota(jnp.int32, size)


def loop(count: Any, step: Callable[[Any, Any], Any], start: Any) -> Any:
    """fori_loop from 0. JAX traces the step of a loop that never runs, which may index nothing."""
    if not is_symbolic(count) and count <= 0:
        return start
    return lax.fori_loop(0, count, step, start)


def row(a: jax.Array, i: Any) -> jax.Array:
    """Row i, which may be a value of a loop."""
    return lax.dynamic_index_in_dim(a, i, axis=-2, keepdims=False)


def column(a: jax.Array, j: Any) -> jax.Array:
    return lax.dynamic_index_in_dim(a, j, axis=-1, keepdims=False)


def element(x: jax.Array, i: Any) -> jax.Array:
    return lax.dynamic_index_in_dim(x, i, axis=-1, keepdims=False)


def with_row(a: jax.Array, i: Any, value: jax.Array) -> jax.Array:
    return jnp.where(positions(a.shape[-2])[:, None] == i, value[..., None, :], a)


def with_column(a: jax.Array, j: Any, value: jax.Array) -> jax.Array:
    return jnp.where(positions(a.shape[-1]) == j, value[..., :, None], a)


def with_element(x: jax.Array, i: Any, value: jax.Array) -> jax.Array:
    return jnp.where(positions(x.shape[-1]) == i, value[..., None], x)


def diagonal(a: jax.Array) -> jax.Array:
    """The diagonal of square matrices, by a mask: other elements may be anything."""
    return jnp.sum(jnp.where(_is_diagonal(a), a, 0), axis=-1, dtype=a.dtype)


def is_lower(a: jax.Array) -> jax.Array:
    """Where the lower triangle is, the diagonal included."""
    return positions(a.shape[-2])[:, None] >= positions(a.shape[-1])


def with_unit_diagonal(a: jax.Array) -> jax.Array:
    return jnp.where(_is_diagonal(a), jnp.ones((), a.dtype), a)


def _is_diagonal(a: jax.Array) -> jax.Array:
    return positions(a.shape[-2])[:, None] == positions(a.shape[-1])


def identity_like(a: jax.Array, rows: Any, columns: Any) -> jax.Array:
    """Identity matrices with the dtype and the batch of `a`."""
    return jnp.broadcast_to(jnp.eye(rows, columns, dtype=a.dtype), (*a.shape[:-2], rows, columns))


def transposed(a: jax.Array) -> jax.Array:
    return jnp.swapaxes(a, -1, -2)


def adjoint(a: jax.Array) -> jax.Array:
    return jnp.conj(transposed(a))


def outer(x: jax.Array, y: jax.Array) -> jax.Array:
    return x[..., :, None] * y[..., None, :]


def times_vector(a: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.matmul(a, x[..., None])[..., 0]


def vector_times(x: jax.Array, a: jax.Array) -> jax.Array:
    return jnp.matmul(x[..., None, :], a)[..., 0, :]
