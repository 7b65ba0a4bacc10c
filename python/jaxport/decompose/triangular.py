# SPDX-License-Identifier: Apache-2.0
"""Cholesky factors and triangular systems."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .matrix import (
    column,
    diagonal,
    element,
    is_lower,
    loop,
    outer,
    positions,
    row,
    times_vector,
    transposed,
    vector_times,
    with_column,
    with_row,
)
from .widen import in_float32


def cholesky(a: jax.Array) -> jax.Array:
    """Column by column; all NaN when a matrix is not positive definite.

    As LAPACK does, it reads the lower triangle only, and the upper one stays as it is.
    """
    size = a.shape[-1]

    def step(j: jax.Array, factor: jax.Array) -> jax.Array:
        rest = column(a, j) - times_vector(factor, jnp.conj(row(factor, j)))
        pivot = jnp.sqrt(jnp.real(element(rest, j)))[..., None]
        below = jnp.where(positions(size) >= j, rest / pivot.astype(a.dtype), 0)
        return with_column(factor, j, below)

    factor = loop(size, step, jnp.zeros_like(a))
    is_factor = jnp.all(jnp.real(diagonal(factor)) > 0, axis=-1)[..., None, None]
    return jnp.where(is_factor, jnp.where(is_lower(a), factor, a), jnp.nan)


def cholesky_update(r: jax.Array, w: jax.Array) -> jax.Array:
    """The upper factor of r^T r + w w^T, by one rotation for each row."""
    size = r.shape[-1]

    def step(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        factor, rest = state
        old = row(factor, k)
        x, y = element(old, k), element(rest, k)
        length = jnp.hypot(x, y)
        is_kept = y == 0
        safe = jnp.where(is_kept, 1, length)
        c, s = jnp.where(is_kept, 1, x / safe), jnp.where(is_kept, 0, y / safe)
        return with_row(factor, k, c * old + s * rest), c * rest - s * old

    return loop(size, step, (r, w))[0]


def symmetric_product(a: jax.Array, c: jax.Array, *, alpha: float, beta: float) -> jax.Array:
    return alpha * jnp.matmul(a, transposed(a)) + beta * c


@in_float32
def triangular_solve(
    a: jax.Array,
    b: jax.Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> jax.Array:
    """Every variant as forward substitution in a lower triangle."""
    if conjugate_a:
        a = jnp.conj(a)
    if not left_side:  # x a = b is a^T x^T = b^T
        b = transposed(b)
    if transpose_a == left_side:
        a, lower = transposed(a), not lower
    if lower:
        x = _forward(a, b, unit_diagonal)
    else:  # in reversed order an upper triangle is a lower one
        x = jnp.flip(_forward(jnp.flip(a, (-1, -2)), jnp.flip(b, -2), unit_diagonal), -2)
    return x if left_side else transposed(x)


def _forward(a: jax.Array, b: jax.Array, unit_diagonal: bool) -> jax.Array:
    below, pivots = jnp.tril(a, -1), diagonal(a)

    def step(i: jax.Array, x: jax.Array) -> jax.Array:
        rest = row(b, i) - vector_times(row(below, i), x)
        return with_row(x, i, rest if unit_diagonal else rest / element(pivots, i)[..., None])

    return loop(a.shape[-1], step, jnp.zeros_like(b))


def lu(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gaussian elimination with the largest pivot: factors, pivots (0-based), permutation."""
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    at = positions(rows)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        a, pivots, order = state
        size = jnp.where(at >= k, _magnitude(column(a, k)), -1)
        pivot = jnp.argmax(size, axis=-1).astype(jnp.int32)
        is_pivot = at == pivot[..., None]
        a = _swapped(a, k, is_pivot)
        order = _swapped(order[..., None], k, is_pivot)[..., 0]
        values, top = column(a, k), row(a, k)
        divisor = element(values, k)[..., None]
        factors = jnp.where(divisor == 0, values, values / jnp.where(divisor == 0, 1, divisor))
        factors = jnp.where(at > k, factors, 0)
        rest = jnp.where(positions(columns) > k, top, 0)
        a = a - outer(factors, rest)
        a = with_column(a, k, jnp.where(at > k, factors, values))
        return a, jnp.where(positions(steps) == k, pivot[..., None], pivots), order

    batch = a.shape[:-2]
    start = a, jnp.zeros((*batch, steps), jnp.int32), jnp.broadcast_to(at, (*batch, rows))
    return loop(steps, step, start)


def _magnitude(x: jax.Array) -> jax.Array:
    # LAPACK compares complex pivots by |re| + |im|.
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def _swapped(a: jax.Array, k: jax.Array, is_pivot: jax.Array) -> jax.Array:
    """Row k and the row that is_pivot marks change places."""
    mark = is_pivot[..., None]
    pivot_row = jnp.sum(jnp.where(mark, a, 0), axis=-2, dtype=a.dtype)
    return with_row(jnp.where(mark, row(a, k)[..., None, :], a), k, pivot_row)


def lu_pivots_to_permutation(pivots: jax.Array, *, permutation_size: int) -> jax.Array:
    order = jnp.broadcast_to(positions(permutation_size), (*pivots.shape[:-1], permutation_size))

    def step(k: jax.Array, order: jax.Array) -> jax.Array:
        is_pivot = positions(permutation_size) == element(pivots, k)[..., None]
        return _swapped(order[..., None], k, is_pivot)[..., 0]

    return loop(pivots.shape[-1], step, order)
