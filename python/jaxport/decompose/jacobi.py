# SPDX-License-Identifier: Apache-2.0
"""Eigenvectors of symmetric matrices and singular vectors, by rotations of pairs of columns.

Real matrices of a known size have formulas (two.py) or sweeps of their own (sweeps.py). What is
left here is for complex numbers and symbolic sizes: round r of a sweep rotates all pairs (i, j)
with i + j = r modulo n at once, so that n rounds meet every pair. Each column knows its partner:
rotating is a gather and two products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._jax import is_symbolic
from .matrix import adjoint, diagonal, identity_like, positions, transposed
from .orthogonal import geqrf, householder_product
from .sweeps import eigenvectors, orthogonal_rows
from .two import eigh_of_two, values_of_two_columns

_SWEEPS = 20  # convergence is quadratic: 6 to 10 sweeps are usual for up to 1000 columns


def _partners(round_index: jax.Array, size: Any) -> jax.Array:
    return jnp.mod(round_index - positions(size), size)


def _rotation(
    own: jax.Array, other: jax.Array, shared: jax.Array, partners: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(c, s): the columns c x_i + s x_j of two partners are orthogonal.

    own and other are x_i^H x_i and x_j^H x_j, shared is x_i^H x_j. The formula is antisymmetric:
    the partner gets the same c and the opposite s, conjugated.
    """
    size = jnp.abs(shared)
    is_idle = (size == 0) | (partners == positions(own.shape[-1]))
    safe = jnp.where(is_idle, 1, size)
    tau = (other - own) / (2 * safe)
    first = jnp.where(positions(own.shape[-1]) < partners, 1, -1).astype(own.dtype)
    side = jnp.where(tau == 0, first, jnp.sign(tau))
    t = jnp.where(is_idle, 0, side / (jnp.abs(tau) + jnp.sqrt(1 + tau * tau)))
    c = 1 / jnp.sqrt(1 + t * t)
    return c.astype(shared.dtype), -t * c * jnp.conj(shared / safe)


def _rotated(a: jax.Array, across: jax.Array, c: jax.Array, s: jax.Array) -> jax.Array:
    return a * c[..., None, :] + across * s[..., None, :]


def _at(x: jax.Array, partners: jax.Array) -> jax.Array:
    return jnp.take(x, partners, axis=-1)


def eigh(
    a: jax.Array,
    *,
    lower: bool,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,
) -> tuple[jax.Array, jax.Array]:
    """(vectors, values) by two-sided rotations; values ascend."""
    size = a.shape[-1]
    first, end = subset_by_index or (0, size)
    has_formula = _is_known_real(a) and size in (1, 2)
    if has_formula and size == 1:
        return jnp.ones_like(a)[..., first:end], a[..., 0, first:end]
    if has_formula:
        vectors, values = eigh_of_two(a, lower)
        return vectors[..., first:end], values[..., first:end]
    below = jnp.tril(a, -1) if lower else adjoint(jnp.triu(a, 1))
    a = below + adjoint(below) + _diagonal_matrix(diagonal(a))
    if _is_known_real(a) and size > 0:
        scaled, scale = _scaled(a)
        values, v = eigenvectors(scaled)
        values, v = values * scale[..., 0], transposed(v)
    else:
        values, v = _eigenvectors_of_any(a)
    order = jnp.argsort(values, axis=-1)[..., first:end]
    return _columns(v, order), jnp.take_along_axis(values, order, axis=-1)


def _is_known_real(a: jax.Array) -> bool:
    return not (jnp.iscomplexobj(a) or any(map(is_symbolic, a.shape[-2:])))


def _eigenvectors_of_any(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    size = a.shape[-1]
    enough = (_scale(a) * jnp.finfo(a.dtype).eps)[..., None]

    def rotate(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        k, idle_rounds, a, v = state
        partners = _partners(jnp.mod(k, size), size)
        across = _at(a, partners)
        values, shared = jnp.real(diagonal(a)), diagonal(across)
        # Both partners must see the same number: rounding leaves a[i, j] and a[j, i] apart.
        shared = 0.5 * (shared + jnp.conj(_at(shared, partners)))
        is_done = (jnp.abs(shared) <= enough) | (partners == positions(size))
        c, s = _rotation(values, _at(values, partners), jnp.where(is_done, 0, shared), partners)
        a = adjoint(_rotated(a, across, c, s))
        a = adjoint(_rotated(a, _at(a, partners), c, s))
        v = _rotated(v, _at(v, partners), c, s)
        return k + 1, jnp.where(jnp.all(is_done), idle_rounds + 1, 0), a, v

    a, v = _until_idle(rotate, a)
    return jnp.real(diagonal(a)), v


def _until_idle(rotate: Callable[..., Any], a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rounds on (round, idle rounds, a, v) until a whole sweep changes nothing."""
    size = a.shape[-1]

    def is_unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        return (state[0] < _SWEEPS * size) & (state[1] < size)

    start = jnp.int32(0), jnp.int32(0), a, identity_like(a, size, size)
    _, _, a, v = lax.while_loop(is_unfinished, rotate, start)
    return a, v


def _diagonal_matrix(x: jax.Array) -> jax.Array:
    return jnp.eye(x.shape[-1], dtype=x.dtype) * x[..., None, :]


def _scale(a: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(a), axis=(-1, -2), initial=0)


def _scaled(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(a / scale, scale) with a largest element of one."""
    scale = _scale(a)[..., None, None]
    scale = jnp.where(scale == 0, 1, scale)
    return a / scale, scale


def _columns(a: jax.Array, order: jax.Array) -> jax.Array:
    return jnp.take_along_axis(a, order[..., None, :], axis=-1)


def svd(
    a: jax.Array,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,
) -> tuple[jax.Array, ...]:
    """(s,) or (s, u, v^H); one-sided rotations of the triangular factor. Values descend."""
    rows, columns = a.shape[-2:]
    if subset_by_index not in (None, (0, min(rows, columns))):
        raise NotImplementedError("subset_by_index has no decomposition")
    if rows < columns:
        found = svd(adjoint(a), full_matrices=full_matrices, compute_uv=compute_uv)
        return found if len(found) == 1 else (found[0], adjoint(found[2]), adjoint(found[1]))
    if _is_known_real(a) and rows == columns == 1:
        side = jnp.where(a == 0, 1, jnp.sign(a))  # NaN stays NaN
        return (jnp.abs(a[..., 0]), side, side * side)[: 3 if compute_uv else 1]
    if _is_known_real(a) and columns == 2 and not compute_uv:
        return (values_of_two_columns(a),)
    is_direct = _is_known_real(a) and rows == columns  # nothing to save by a triangle
    if is_direct:
        scaled, v = _orthogonal_columns(a, compute_uv)
    else:
        factors, taus = geqrf(a)
        scaled, v = _orthogonal_columns(jnp.triu(factors[..., :columns, :]), compute_uv)
    values, order = _descending(_lengths(scaled))
    if not compute_uv:
        return (values,)
    u = _completed(_columns(scaled, order), values)
    if not is_direct:
        q = _orthogonal_factor(factors, taus, rows if full_matrices else columns)
        u = jnp.concatenate([jnp.matmul(q[..., :columns], u), q[..., columns:]], axis=-1)
    return values, u, adjoint(_columns(v, order))


def _descending(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    order = jnp.argsort(-values, axis=-1)
    return jnp.take_along_axis(values, order, axis=-1), order


def _lengths(a: jax.Array) -> jax.Array:
    """The lengths of columns; squares neither over- nor underflow."""
    scaled, scale = _scaled(a)
    return scale[..., 0] * jnp.sqrt(jnp.sum(jnp.square(jnp.abs(scaled)), axis=-2))


def _orthogonal_columns(a: jax.Array, with_v: bool) -> tuple[jax.Array, jax.Array]:
    """(a v, v) with an orthogonal v so that the columns of a v are orthogonal."""
    size = a.shape[-1]
    if _is_known_real(a) and size > 0:
        scaled, scale = _scaled(a)
        x, v = orthogonal_rows(transposed(scaled), with_v)
        return transposed(x) * scale, transposed(v)
    eps = jnp.finfo(a.dtype).eps
    tiny = jnp.square(_scale(a) * eps)[..., None]

    def rotate(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        k, idle_rounds, a, v = state
        partners = _partners(jnp.mod(k, size), size)
        across = _at(a, partners)
        squares = jnp.sum(jnp.square(jnp.abs(a)), axis=-2)
        others = _at(squares, partners)
        shared = jnp.sum(jnp.conj(a) * across, axis=-2)
        is_done = jnp.abs(shared) <= eps * jnp.sqrt(squares * others) + tiny
        is_done = is_done | (partners == positions(size))
        c, s = _rotation(squares, others, jnp.where(is_done, 0, shared), partners)
        a, v = _rotated(a, across, c, s), _rotated(v, _at(v, partners), c, s)
        return k + 1, jnp.where(jnp.all(is_done), idle_rounds + 1, 0), a, v

    return _until_idle(rotate, a)


def _completed(scaled: jax.Array, values: jax.Array) -> jax.Array:
    """Columns of length one; those of zero length become orthogonal to the others."""
    floor = values[..., :1] * jnp.finfo(values.dtype).eps
    is_zero = values <= floor
    unit = jnp.where(is_zero[..., None, :], 0, scaled / jnp.where(is_zero, 1, values)[..., None, :])

    def completed(unit: jax.Array) -> jax.Array:
        return jnp.where(is_zero[..., None, :], householder_product(*geqrf(unit)), unit)

    return lax.cond(jnp.any(is_zero), completed, lambda unit: unit, unit)


def _orthogonal_factor(factors: jax.Array, taus: jax.Array, columns: Any) -> jax.Array:
    missing = columns - factors.shape[-1]
    zeros = jnp.zeros((*factors.shape[:-1], missing), factors.dtype)
    return householder_product(jnp.concatenate([factors, zeros], axis=-1), taus)
