# SPDX-License-Identifier: Apache-2.0
"""Cholesky factors and triangular systems."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._jax import is_symbolic
from .matrix import (
    adjoint,
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

    As LAPACK does, it reads the lower triangle and of the diagonal the real parts only, and the
    upper triangle stays as it is.
    """
    size = a.shape[-1]
    if jnp.iscomplexobj(a):
        a = jnp.where(_is_diagonal(a), jnp.real(a).astype(a.dtype), a)
    if size == 1:
        pivots = jnp.real(a)
        return jnp.where(pivots > 0, jnp.sqrt(pivots), jnp.nan).astype(a.dtype)
    factor, pivots = _by_columns(a) if is_symbolic(size) or size == 0 else _by_rows(a)
    is_factor = jnp.all(pivots > 0, axis=-1)[..., None, None]
    return jnp.where(is_factor, jnp.where(is_lower(a), factor, a), jnp.nan)


def _by_rows(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(factor, pivots) by a = r^H d^-1 r: a step takes row k of r from what is left of a."""
    below = jnp.tril(a, -1)
    full = jnp.where(is_lower(a), a, adjoint(below))

    def step(left: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array]:
        top = row(left, k)
        return left - outer(jnp.conj(top), top / element(top, k)[..., None]), top

    _, rows = lax.scan(step, full, positions(a.shape[-1]))
    rows = jnp.moveaxis(rows, 0, -2)
    pivots = jnp.real(diagonal(rows))
    roots = jnp.sqrt(pivots)[..., None, :].astype(a.dtype)
    # An infinite pivot has an infinite root, and would be divided by it.
    return jnp.where(_is_diagonal(a), roots, adjoint(rows) / roots), pivots


def _is_diagonal(a: jax.Array) -> jax.Array:
    at = positions(a.shape[-1])
    return at[:, None] == at


def _by_columns(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    size = a.shape[-1]

    def step(j: jax.Array, factor: jax.Array) -> jax.Array:
        rest = column(a, j) - times_vector(factor, jnp.conj(row(factor, j)))
        pivot = jnp.sqrt(jnp.real(element(rest, j)))[..., None]
        below = jnp.where(positions(size) >= j, rest / pivot.astype(a.dtype), 0)
        return with_column(factor, j, below)

    factor = loop(size, step, jnp.zeros_like(a))
    return factor, jnp.real(diagonal(factor))


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
    """Every variant as a system a x = b."""
    if conjugate_a:
        a = jnp.conj(a)
    if not left_side:  # x a = b is a^T x^T = b^T
        b = transposed(b)
    if transpose_a == left_side:
        a, lower = transposed(a), not lower
    x = _solved(a, b, lower, unit_diagonal)
    return x if left_side else transposed(x)


# Up to which size which form is used: row by row without a loop, the inverse by doubling, the same
# for the blocks on the diagonal. Microseconds beside those of a loop over rows, b with n columns:
# 16 and 25 (n = 3); 17 and 47 (8), 20 and 88 (16), 33 and 192 (32); 74 and 519 (64).
_UNROLLED, _DOUBLED, _BLOCKED = 3, 32, 256
_BLOCK = 16


def _solved(a: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    size = a.shape[-1]
    if is_symbolic(size) or size == 0 or size > _BLOCKED or jnp.iscomplexobj(a):
        return _row_by_row(a, b, lower, unit_diagonal)
    if size <= _UNROLLED:
        return _unrolled(a, b, lower, unit_diagonal)
    solved = _by_inverse if size <= _DOUBLED else _by_blocks
    x = solved(a, b, lower, unit_diagonal)
    return lax.cond(
        _is_solution(_triangle(a, lower, unit_diagonal), x, b),
        lambda *_: x,
        lambda a, b: _row_by_row(a, b, lower, unit_diagonal),
        a,
        b,
    )


def _triangle(a: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    outside = 1 if unit_diagonal else 0
    half = jnp.tril(a, -outside) if lower else jnp.triu(a, outside)
    return half + np.eye(a.shape[-1], dtype=a.dtype) if unit_diagonal else half


def _is_solution(a: jax.Array, x: jax.Array, b: jax.Array) -> jax.Array:
    """|a x - b| <= c n eps (|a| |x| + |b|) in each element, which substitution always keeps.

    An inverse may lose it: where it is large, or leaves the range of numbers. Its zeros also spread
    infinities and NaN, which substitution leaves in their rows; they fail both comparisons.
    """
    reach = jnp.matmul(jnp.abs(a), jnp.abs(x)) + jnp.abs(b)
    limit = reach * (8 * a.shape[-1] * float(jnp.finfo(a.dtype).eps))
    return jnp.all((jnp.abs(jnp.matmul(a, x) - b) <= limit) & (reach < jnp.inf))


def _unrolled(a: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    places = list(range(a.shape[-1]))
    x: dict[int, jax.Array] = {}
    for i in places if lower else reversed(places):
        rest, line = b[..., i : i + 1, :], a[..., i : i + 1, :]
        for j, known in x.items():
            rest = rest - line[..., j : j + 1] * known
        x[i] = rest if unit_diagonal else rest / line[..., i : i + 1]
    return jnp.concatenate([x[i] for i in places], axis=-2)


def _by_inverse(a: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    return jnp.matmul(inverse_of_triangle(a, lower, unit_diagonal), b)


def inverse_of_triangle(a: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    """Of blocks ((p, 0), (c, q)) the inverse has -q^-1 c p^-1 in the corner; blocks double."""
    size = a.shape[-1]
    x = jnp.eye(size, dtype=a.dtype)
    if not unit_diagonal:
        x = x / diagonal(a)[..., None, :]
    at, half = np.arange(size), 1
    while half < size:
        is_same = at[:, None] // (2 * half) == at // (2 * half)
        corners = (is_same & (at[:, None] // half > at // half)).astype(a.dtype)
        corner = a * (corners if lower else corners.T)
        is_identity = unit_diagonal and half == 1
        x = x - (corner if is_identity else jnp.matmul(x, jnp.matmul(corner, x)))
        half *= 2
    return x


def _by_blocks(a: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    """Substitution of blocks; those on the diagonal are inverted at once."""
    size, batch = a.shape[-1], a.shape[:-2]
    more = -size % _BLOCK
    if more:  # rows of the identity
        sides = [(0, 0)] * len(batch)
        a = jnp.pad(a, [*sides, (0, more), (0, more)])
        a = a + np.diag(np.repeat([0, 1], [size, more])).astype(a.dtype)
        b = jnp.pad(b, [*sides, (0, more), (0, 0)])
    spans = [slice(i, i + _BLOCK) for i in range(0, size, _BLOCK)]
    blocks = jnp.stack([a[..., s, s] for s in spans], axis=-3)
    inverses = inverse_of_triangle(blocks, lower, unit_diagonal)
    x: list[jax.Array] = []
    for n in range(len(spans)) if lower else reversed(range(len(spans))):
        rest = b[..., spans[n], :]
        if x:
            others = slice(0, n * _BLOCK) if lower else slice((n + 1) * _BLOCK, size + more)
            known = jnp.concatenate(x, axis=-2)
            rest = rest - jnp.matmul(a[..., spans[n], others], known)
        found = jnp.matmul(inverses[..., n, :, :], rest)
        x = [*x, found] if lower else [found, *x]
    return jnp.concatenate(x, axis=-2)[..., :size, :]


def _row_by_row(a: jax.Array, b: jax.Array, lower: bool, unit_diagonal: bool) -> jax.Array:
    if not lower:  # in reversed order an upper triangle is a lower one
        found = _row_by_row(jnp.flip(a, (-1, -2)), jnp.flip(b, -2), True, unit_diagonal)
        return jnp.flip(found, -2)
    below, pivots = jnp.tril(a, -1), diagonal(a)

    def step(i: jax.Array, x: jax.Array) -> jax.Array:
        rest = row(b, i) - vector_times(row(below, i), x)
        return with_row(x, i, rest if unit_diagonal else rest / element(pivots, i)[..., None])

    return loop(a.shape[-1], step, jnp.zeros_like(b))
