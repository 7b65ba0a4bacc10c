# SPDX-License-Identifier: Apache-2.0
"""The real Schur form: double shifts (J. Francis), so that conjugate eigenvalues stay together."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .matrix import column, element, loop, outer, positions, times_vector, vector_times
from .orthogonal import hessenberg_form
from .rotation import deflated, rotated

_SWEEPS = 30  # for each row, as in LAPACK; two or three are usual

State = tuple[jax.Array, ...]


def real_schur(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(t, q): a = q t q^T, where t is upper triangular but for blocks of two rows.

    A block has conjugate eigenvalues and equal diagonal elements.
    """
    size = a.shape[-1]
    form, q = hessenberg_form(a)
    if size == 1:
        return form, q
    if size == 2:  # no block of more than two rows
        return _standardised(0, (deflated(form)[0], q))

    def is_unfinished(state: State) -> jax.Array:
        count, last, *_ = state
        return (count < _SWEEPS * size) & jnp.any(last > 0)

    def sweep(state: State) -> State:
        count, last, first, h, q = state
        h, q = _chased(h, q, first, last, _start(h, first, last, count))
        h, first, last = _unfinished_rows(h)
        return count + 1, last, first, h, q

    h, first, last = _unfinished_rows(form)
    start: State = jnp.int32(0), last, first, h, q
    *_, h, q = lax.while_loop(is_unfinished, sweep, start)
    return loop(size - 1, _standardised, (h, q))


def _unfinished_rows(h: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """h with negligible elements gone; first and last row of the last block of more than two."""
    at = positions(h.shape[-1])
    h, is_linked = deflated(h)  # a row with the one before it
    is_third = is_linked & jnp.roll(is_linked, 1, axis=-1) & (at > 1)
    last = jnp.max(jnp.where(is_third, at, 0), axis=-1)
    is_first = ~is_linked & (at < last[..., None])
    return h, jnp.max(jnp.where(is_first, at, 0), axis=-1), last


def _start(h: jax.Array, first: jax.Array, last: jax.Array, count: jax.Array) -> jax.Array:
    """The first column of (h - r)(h - s) in the block, r and s the eigenvalues at its end."""
    at = positions(h.shape[-1])

    def near(row: jax.Array, i: int, j: int) -> jax.Array:
        is_here = (at[:, None] == row[..., None, None] + i) & (at == row[..., None, None] + j)
        return jnp.sum(jnp.where(is_here, h, 0), axis=(-1, -2))

    below = near(last, 0, -1)
    total = near(last, -1, -1) + near(last, 0, 0)
    product = near(last, -1, -1) * near(last, 0, 0) - near(last, -1, 0) * below
    is_stuck = count % 10 == 9  # a cycle is left by another pair
    other = jnp.abs(below) + jnp.abs(near(last, -1, -2))
    total = jnp.where(is_stuck, 1.5 * other, total)
    product = jnp.where(is_stuck, other * other, product)
    a, c = near(first, 0, 0), near(first, 1, 0)
    entries = (
        a * a + near(first, 0, 1) * c - total * a + product,
        c * (a + near(first, 1, 1) - total),
        c * near(first, 2, 1),
    )
    places = [jnp.where(at == first[..., None] + i, x[..., None], 0) for i, x in enumerate(entries)]
    return places[0] + places[1] + places[2]


def _chased(
    h: jax.Array, q: jax.Array, first: jax.Array, last: jax.Array, start: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One implicit double QR step on the rows from `first` to `last`, by reflections."""
    at = positions(h.shape[-1])

    def step(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        h, q = state
        before = column(h, jnp.maximum(k - 1, 0))
        source = jnp.where((first == k)[..., None], start, before)
        is_active = ((first <= k) & (k < last))[..., None]
        x = jnp.where(is_active & (at >= k) & (at <= k + 2) & (at <= last[..., None]), source, 0)
        head = element(x, k)
        length = jnp.sqrt(jnp.sum(x * x, axis=-1))
        v = x + jnp.where(at == k, jnp.copysign(length, head)[..., None], 0)
        square = jnp.sum(v * v, axis=-1)
        scaled = v * jnp.where(square == 0, 0, 2 / jnp.where(square == 0, 1, square))[..., None]
        h = h - outer(scaled, vector_times(v, h))
        return h - outer(times_vector(h, v), scaled), q - outer(times_vector(q, v), scaled)

    return loop(h.shape[-1] - 1, step, (h, q))


def _standardised(k: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Rows k and k + 1: real eigenvalues part, others get equal diagonal elements."""
    h, q = state
    left, right = column(h, k), column(h, k + 1)
    a, b, c, d = element(left, k), element(right, k), element(left, k + 1), element(right, k + 1)
    half = 0.5 * (a - d)
    square = half * half + b * c
    z = half + jnp.copysign(jnp.sqrt(jnp.maximum(square, 0)), half)
    length = jnp.hypot(b + c, a - d)
    cosine = jnp.sqrt(0.5 * (1 + jnp.abs(b + c) / jnp.where(length == 0, 1, length)))
    sine = -half / jnp.where(length == 0, 1, length * cosine) * jnp.copysign(1, b + c)
    is_real = square >= 0
    x, y = jnp.where(is_real, z, cosine), jnp.where(is_real, c, sine)
    norm = jnp.where(c == 0, 1, jnp.hypot(x, y))
    h, q = rotated(h, q, k, jnp.where(c == 0, 1, x / norm), jnp.where(c == 0, 0, y / norm))
    at = positions(h.shape[-1])
    is_gone = (at[:, None] == k + 1) & (at == k) & is_real[..., None, None]
    return jnp.where(is_gone, 0, h), q
