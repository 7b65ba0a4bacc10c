# SPDX-License-Identifier: Apache-2.0
"""LU factors with the largest pivot of each column, and the permutations of LAPACK's pivots."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._jax import is_symbolic
from .matrix import column, element, loop, outer, positions, row, with_column, with_row

Factors = tuple[jax.Array, jax.Array, jax.Array]


def lu(a: jax.Array) -> Factors:
    """Gaussian elimination with the largest pivot: factors, pivots (0-based), permutation."""
    if any(map(is_symbolic, a.shape[-2:])) or 0 in a.shape[-2:]:
        return _by_swaps(a)
    if a.shape[-2:] == (1, 1):
        zeros = jnp.zeros(a.shape[:-1], jnp.int32)
        return a, zeros, zeros
    if a.shape[-2:] == (2, 2):
        return _of_two(a)
    return _in_place(a)


def _of_two(a: jax.Array) -> Factors:
    size = _magnitude(a[..., :1])
    is_swapped = size[..., 1:, :] > size[..., :1, :]
    ordered = jnp.where(is_swapped, jnp.flip(a, -2), a)
    top, low = ordered[..., :1, :], ordered[..., 1:, :]
    factor = low[..., :1] / _safe(top[..., :1])
    corner = low[..., 1:] - factor * top[..., 1:]
    both = jnp.concatenate([top, jnp.concatenate([factor, corner], axis=-1)], axis=-2)

    def chosen(swapped: list[int], kept: list[int]) -> jax.Array:
        yes, no = (np.array(x, np.int32) for x in (swapped, kept))
        return jnp.where(is_swapped[..., 0], yes, no)

    return both, chosen([1, 1], [0, 1]), chosen([1, 0], [0, 1])


def _in_place(a: jax.Array) -> Factors:
    """Rows stay where they are: a step takes the best of those that no step has taken."""
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    at = positions(rows)

    def step(state: tuple[jax.Array, jax.Array], k: jax.Array) -> Any:
        a, is_taken = state
        values = column(a, k)
        size = _magnitude(values)
        largest = jnp.max(jnp.where(is_taken, -1, size), axis=-1, keepdims=True)
        # The first that is neither smaller nor taken; so it is with NaN too.
        pivot = jnp.argmin((size < largest) | is_taken, axis=-1).astype(jnp.int32)
        is_pivot = at == pivot[..., None]
        top = _row_at(a, pivot, is_pivot)
        is_taken = is_taken | is_pivot
        factors = jnp.where(is_taken, 0, values / _safe(element(top, k))[..., None])
        return (a - outer(factors, top), is_taken), (factors, top, pivot)

    start = a, jnp.zeros(a.shape[:-1], bool)
    _, (factors, tops, order) = lax.scan(step, start, positions(steps))
    factors, tops = jnp.moveaxis(factors, 0, -1), jnp.moveaxis(tops, 0, -2)
    order = jnp.moveaxis(order, 0, -1)
    pivots, rest = _swaps(order, rows)
    if rows > steps:
        order = jnp.concatenate([order, rest[..., steps:]], axis=-1)
    low = _rows_at(factors, order)
    if columns > steps:
        low = jnp.pad(low, [(0, 0)] * (a.ndim - 1) + [(0, columns - steps)])
    if rows > steps:
        tops = jnp.pad(tops, [(0, 0)] * (a.ndim - 2) + [(0, rows - steps), (0, 0)])
    is_below = at[:, None] > positions(columns)
    return jnp.where(is_below, low, tops), pivots, order


def _row_at(a: jax.Array, i: jax.Array, is_here: jax.Array) -> jax.Array:
    """Row i of each matrix."""
    if a.ndim == 2:
        return row(a, i)
    return jnp.sum(jnp.where(is_here[..., None], a, 0), axis=-2, dtype=a.dtype)


def _rows_at(a: jax.Array, order: jax.Array) -> jax.Array:
    if a.ndim == 2:
        return a.at[order].get(mode="promise_in_bounds")
    return jnp.take_along_axis(a, order[..., None], axis=-2)


def _swaps(order: jax.Array, rows: int) -> tuple[jax.Array, jax.Array]:
    """(pivots, rows after the last swap): which swaps bring the rows into this order."""
    at = positions(rows)

    def step(current: jax.Array, taken: tuple[jax.Array, jax.Array]) -> Any:
        k, chosen = taken
        is_here = (current == chosen[..., None]) & (at >= k)
        place = jnp.sum(jnp.where(is_here, at, 0), axis=-1, dtype=jnp.int32)
        moved = lax.dynamic_index_in_dim(current, k, axis=-1)
        return jnp.where(is_here, moved, current), place

    start = jnp.broadcast_to(at, (*order.shape[:-1], rows))
    steps = order.shape[-1]
    rest, pivots = lax.scan(step, start, (positions(steps), jnp.moveaxis(order, -1, 0)))
    return jnp.moveaxis(pivots, 0, -1), rest


def _by_swaps(a: jax.Array) -> Factors:
    """For any size, symbolic ones too."""
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
        factors = jnp.where(at > k, values / _safe(element(values, k))[..., None], 0)
        rest = jnp.where(positions(columns) > k, top, 0)
        a = a - outer(factors, rest)
        a = with_column(a, k, jnp.where(at > k, factors, values))
        return a, jnp.where(positions(steps) == k, pivot[..., None], pivots), order

    batch = a.shape[:-2]
    start = a, jnp.zeros((*batch, steps), jnp.int32), jnp.broadcast_to(at, (*batch, rows))
    return loop(steps, step, start)


def _safe(pivot: jax.Array) -> jax.Array:
    """The largest of a column is 0 where all are: they stay 0."""
    return jnp.where(pivot == 0, 1, pivot)


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
