# SPDX-License-Identifier: Apache-2.0
"""Householder reflections: QR, Hessenberg and tridiagonal form, with the signs of LAPACK.

A reflection is H = I - tau v v^H with v[k] = 1 and zeros above; a matrix keeps v below its
diagonal.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._jax import is_symbolic
from .matrix import (
    adjoint,
    column,
    diagonal,
    element,
    identity_like,
    is_lower,
    loop,
    outer,
    positions,
    times_vector,
    vector_times,
    with_column,
    with_element,
    with_unit_diagonal,
)
from .triangular import inverse_of_triangle


def _reflection(x: jax.Array, k: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(v, tau, beta): H^H x is x above k, beta at k and zero below (LAPACK larfg)."""
    at = positions(x.shape[-1])
    alpha = element(x, k)
    below = jnp.where(at > k, x, 0)
    tail = jnp.where(at >= k, x, 0)
    size = jnp.max(jnp.abs(tail), axis=-1, keepdims=True)
    scale = jnp.maximum(size, jnp.finfo(x.dtype).tiny)  # squares neither over- nor underflow
    length = scale[..., 0] * jnp.sqrt(jnp.sum(_squares(tail / scale), axis=-1))
    is_done = (jnp.max(jnp.abs(below), axis=-1) == 0) & (jnp.imag(alpha) == 0)
    beta = jnp.where(is_done, jnp.real(alpha), jnp.where(jnp.real(alpha) < 0, length, -length))
    gone = beta - alpha  # 0 where nothing is to be done
    tau = (gone / jnp.where(is_done, 1, beta)).astype(x.dtype)
    v = below / jnp.where(is_done, 1, -gone)[..., None]
    return with_element(v, k, jnp.ones_like(alpha)), tau, beta.astype(x.dtype)


def _squares(x: jax.Array) -> jax.Array:
    return jnp.square(jnp.abs(x)) if jnp.iscomplexobj(x) else x * x


def _from_left(a: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    """H a"""
    return a - outer(tau[..., None] * v, vector_times(jnp.conj(v), a))


def _from_right(a: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    """a H"""
    return a - outer(tau[..., None] * times_vector(a, v), jnp.conj(v))


def geqrf(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    if any(map(is_symbolic, a.shape[-2:])):
        start = a, jnp.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
        return loop(min(a.shape[-2:]), lambda k, state: _eliminated(state[0], state[1], k), start)
    r, vectors, taus = _triangle(a)
    sides, steps = [(0, 0)] * (a.ndim - 2), taus.shape[-1]
    wide = jnp.pad(vectors, [*sides, (0, 0), (0, a.shape[-1] - steps)])
    taus = jnp.pad(taus, [*sides, (0, min(a.shape[-2:]) - steps)])
    return jnp.where(_is_below(a), wide, r), taus


def _is_below(a: jax.Array) -> jax.Array:
    return positions(a.shape[-2])[:, None] > positions(a.shape[-1])


def _triangle(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(r, vectors, taus): what is below the diagonal of r is not zero, but has no meaning."""

    def step(a: jax.Array, k: Any) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        v, tau, _ = _reflection(column(a, k), k)
        return _from_left(a, v, jnp.conj(tau)), (v, tau)

    count = _reflections(a, *a.shape[-2:])
    if count <= 0:
        return a, a[..., :0], jnp.zeros((*a.shape[:-2], 0), a.dtype)
    if count == 1:
        r, (v, tau) = step(a, 0)
        return r, v[..., None], tau[..., None]
    r, (vectors, taus) = lax.scan(step, a, positions(count))
    return r, jnp.moveaxis(vectors, 0, -1), jnp.moveaxis(taus, 0, -1)


def _reflections(a: jax.Array, rows: Any, columns: Any) -> Any:
    """How many do something: one real number has nothing to reflect, its tau is 0."""
    if jnp.iscomplexobj(a) or is_symbolic(rows):
        return min(rows, columns)
    return min(rows - 1, columns)


def _eliminated(a: jax.Array, taus: jax.Array, k: Any) -> tuple[jax.Array, jax.Array]:
    """Reflects column k of `a` onto its diagonal element; the columns after it follow."""
    rows, columns = a.shape[-2:]
    x = column(a, k)
    v, tau, beta = _reflection(x, k)
    right = jnp.where(positions(columns) > k, _from_left(a, v, jnp.conj(tau)), a)
    kept = with_element(jnp.where(positions(rows) > k, v, x), k, beta)
    return with_column(right, k, kept), with_element(taus, k, tau)


def householder_product(a: jax.Array, taus: jax.Array) -> jax.Array:
    """The first columns of H_0 H_1 …"""
    count = taus.shape[-1]
    vectors = _vectors(a)
    if not is_symbolic(count):
        return _product(vectors[..., :count], taus, a.shape[-1])

    def step(i: jax.Array, q: jax.Array) -> jax.Array:
        k = count - 1 - i
        return _from_left(q, column(vectors, k), element(taus, k))

    return loop(count, step, identity_like(a, *a.shape[-2:]))


def _product(vectors: jax.Array, taus: jax.Array, columns: Any) -> jax.Array:
    """I - V T V^H with T = (I + D U)^-1 D, where D has taus and U is V^H V above its diagonal."""
    identity = identity_like(vectors, vectors.shape[-2], columns)
    count = taus.shape[-1]
    if count == 0:
        return identity
    mixed = adjoint(vectors[..., :columns, :])
    if count > 1:
        above = jnp.triu(jnp.matmul(adjoint(vectors), vectors), 1)
        inverse = inverse_of_triangle(taus[..., None] * above, lower=False, unit_diagonal=True)
        mixed = jnp.matmul(inverse, taus[..., None] * mixed)
    else:
        mixed = taus[..., None] * mixed
    return identity - jnp.matmul(vectors, mixed)


def _vectors(a: jax.Array) -> jax.Array:
    return with_unit_diagonal(jnp.tril(a, -1))


def ormqr(a: jax.Array, taus: jax.Array, c: jax.Array, *, left: bool, transpose: bool) -> jax.Array:
    """Q c, Q^H c, c Q or c Q^H for the Q of geqrf."""
    count = taus.shape[-1]
    vectors = _vectors(a)
    taus = jnp.conj(taus) if transpose else taus
    apply = _from_left if left else _from_right

    def step(i: jax.Array, c: jax.Array) -> jax.Array:
        k = count - 1 - i if left != transpose else i
        return apply(c, column(vectors, k), element(taus, k))

    return loop(count, step, c)


def qr(
    a: jax.Array, *, pivoting: bool, full_matrices: bool, use_magma: bool | None = None
) -> tuple[jax.Array, ...]:
    rows, columns = a.shape[-2:]
    if not (pivoting or any(map(is_symbolic, (rows, columns)))):
        r, vectors, taus = _triangle(a)
        size = rows if full_matrices else min(rows, columns)
        return _product(vectors, taus, size), jnp.triu(r[..., :size, :])
    order: tuple[jax.Array, ...] = ()
    if pivoting:
        factors, from_one, taus = geqp3(a, jnp.zeros((*a.shape[:-2], columns), jnp.int32))
        order = (from_one - 1,)
    else:
        factors, taus = geqrf(a)
    vectors = factors[..., :, : min(rows, columns)]
    if full_matrices and rows > columns:
        zeros = jnp.zeros((*a.shape[:-1], rows - columns), a.dtype)
        vectors = jnp.concatenate([vectors, zeros], axis=-1)
    q = householder_product(vectors, taus)
    return q, jnp.triu(factors[..., : q.shape[-1], :]), *order


def geqp3(
    a: jax.Array, jpvt: jax.Array, *, use_magma: bool | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """QR with the longest remaining column first, after those that jpvt marks; 1-based order."""
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    order = jnp.argsort(jpvt == 0, axis=-1, stable=True).astype(jpvt.dtype)
    a = jnp.take_along_axis(a, order[..., None, :], axis=-1)
    marked = jnp.sum(jpvt != 0, axis=-1)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        a, taus, order = state
        rest = jnp.where(positions(rows)[:, None] >= k, a, 0)
        lengths = jnp.sum(jnp.square(jnp.abs(rest)), axis=-2)
        longest = jnp.argmax(jnp.where(positions(columns) >= k, lengths, -1), axis=-1)
        longest = jnp.where(k < marked, k, longest)[..., None]
        at = positions(columns)
        swap = jnp.where(at == k, longest, jnp.where(at == longest, k, at))
        a = jnp.take_along_axis(a, swap[..., None, :], axis=-1)
        return *_eliminated(a, taus, k), jnp.take_along_axis(order, swap, axis=-1)

    start = a, jnp.zeros((*a.shape[:-2], steps), a.dtype), order
    a, taus, order = loop(steps, step, start)
    return a, order + 1, taus


def hessenberg(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Q^H a Q with zeros below the first subdiagonal, where the reflections are kept."""
    size = a.shape[-1]
    at = positions(size)

    def step(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, taus = state
        x = column(a, k)
        v, tau, beta = _reflection(x, k + 1)
        both = _from_left(_from_right(a, v, tau), v, jnp.conj(tau))
        kept = with_element(jnp.where(at > k + 1, v, x), k + 1, beta)
        both = with_column(jnp.where(at > k, both, a), k, kept)
        return both, with_element(taus, k, tau)

    start = a, jnp.zeros((*a.shape[:-2], size - 1), a.dtype)
    return loop(_reflections(a, size - 1, size - 1), step, start)


def hessenberg_form(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(h, q): a = q h q^H with zeros below the first subdiagonal of h."""
    size = a.shape[-1]
    form, taus = hessenberg(a)
    q = identity_like(a, size, size)
    count = _reflections(a, size - 1, size - 1)
    if is_symbolic(size) or count > 0:
        inner = householder_product(form[..., 1:, :-1], taus[..., :count])
        q = q.at[..., 1:, 1:].set(inner)
    return jnp.triu(form, -1), q


def tridiagonal(a: jax.Array, *, lower: bool) -> tuple[jax.Array, ...]:
    """Q^H a Q of a Hermitian matrix: (reflections, diagonal, off-diagonal, taus)."""
    if a.shape[-1] == 2 and not jnp.iscomplexobj(a):
        off = a[..., 1:, 0] if lower else a[..., 0, 1:]
        return a, diagonal(a), off, jnp.zeros_like(off)
    if not lower:  # in reversed order an upper triangle is a lower one
        found = tridiagonal(jnp.flip(a, (-1, -2)), lower=True)
        return jnp.flip(found[0], (-1, -2)), *(jnp.flip(x, -1) for x in found[1:])
    below = jnp.tril(a, -1)
    form, taus = hessenberg(jnp.tril(a) + jnp.conj(jnp.swapaxes(below, -1, -2)))
    off = jnp.real(diagonal(form[..., 1:, :-1]))
    return jnp.where(is_lower(a), form, a), jnp.real(diagonal(form)), off, taus


def tridiagonal_solve(
    dl: jax.Array, d: jax.Array, du: jax.Array, b: jax.Array, *, perturb_singular: bool = False
) -> jax.Array:
    """Elimination row by row with the larger of two pivots (LAPACK gtsv)."""
    if perturb_singular:
        raise NotImplementedError("perturb_singular has no decomposition")
    rows = [jnp.moveaxis(x, -1, 0)[..., None] for x in (dl, d, du)] + [jnp.moveaxis(b, -2, 0)]

    def eliminate(top: tuple[jax.Array, ...], low: tuple[jax.Array, ...]) -> Any:
        d0, du0, b0 = top
        dl1, d1, du1, b1 = low
        is_top = jnp.abs(d0) >= jnp.abs(dl1)
        pivot = (
            jnp.where(is_top, d0, dl1),
            jnp.where(is_top, du0, d1),
            jnp.where(is_top, 0, du1),
            jnp.where(is_top, b0, b1),
        )
        factor = jnp.where(is_top, dl1, d0) / pivot[0]
        rest = jnp.where(is_top, d1, du0), jnp.where(is_top, du1, 0), jnp.where(is_top, b1, b0)
        return tuple(x - factor * y for x, y in zip(rest, pivot[1:], strict=True)), pivot

    (d_last, _, b_last), pivots = lax.scan(
        eliminate, (rows[1][0], rows[2][0], rows[3][0]), tuple(x[1:] for x in rows)
    )

    def substitute(after: tuple[jax.Array, jax.Array], pivot: tuple[jax.Array, ...]) -> Any:
        x1, x2 = after
        d, du, du2, b = pivot
        x = (b - du * x1 - du2 * x2) / d
        return (x, x1), x

    last = b_last / d_last
    _, x = lax.scan(substitute, (last, jnp.zeros_like(last)), pivots, reverse=True)
    return jnp.moveaxis(jnp.concatenate([x, last[None]]), 0, -2)
