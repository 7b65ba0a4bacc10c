# SPDX-License-Identifier: Apache-2.0
"""Schur forms, and eigenvalues of general matrices: the complex form by shifted QR sweeps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .matrix import adjoint, column, diagonal, loop, positions, row, vector_times, with_row
from .orthogonal import hessenberg_form
from .real_schur import real_schur
from .rotation import deflated, rotated
from .two import complex_eigenvalues_of_two, eigenvalues_of_two

_SWEEPS = 30  # for each row, as in LAPACK; two or three are usual


def schur(
    a: jax.Array, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any = None
) -> tuple[jax.Array, ...]:
    if sort_eig_vals:
        raise NotImplementedError("sorted eigenvalues have no decomposition")
    form, vectors = complex_schur(a) if jnp.iscomplexobj(a) else real_schur(a)
    return (form, vectors) if compute_schur_vectors else (form,)


def eig(
    a: jax.Array,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    use_magma: bool | None = None,  # until jax 0.8
    implementation: Any = None,
    enable_eigvec_derivs: bool = False,  # jax 0.10
) -> tuple[jax.Array, ...]:
    """(values, left vectors, right vectors), the vectors as they are asked for."""
    is_value_alone = not (compute_left_eigenvectors or compute_right_eigenvectors)
    if is_value_alone and a.shape[-1] == 2:
        return (complex_eigenvalues_of_two(a) if jnp.iscomplexobj(a) else eigenvalues_of_two(a),)
    form, q = complex_schur(a) if jnp.iscomplexobj(a) else _without_blocks(*real_schur(a))
    results = [diagonal(form)]
    if compute_left_eigenvectors:  # v^H a = w v^H is a^H v = conj(w) v
        mirrored = jnp.flip(adjoint(form), (-1, -2))
        results.append(_unit(q @ jnp.flip(_eigenvectors(mirrored), (-1, -2))))
    if compute_right_eigenvectors:
        results.append(_unit(q @ _eigenvectors(form)))
    return tuple(results)


def _without_blocks(t: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A real Schur form as a complex one. Of conjugate eigenvalues the one above is the first.

    A block ((a, b), (c, a)) has the eigenvalues a +- is with s^2 = -bc, and (b, is) is a vector of
    the first. So the rotation of all blocks at once is real on its diagonal, imaginary beside it.
    """
    at = positions(t.shape[-1])
    is_above, is_below = at == at[:, None] + 1, at + 1 == at[:, None]

    def at_next(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(is_below, x[..., None, :], 0), axis=-1, dtype=x.dtype)

    b = jnp.sum(jnp.where(is_above, t, 0), axis=-1)
    c = jnp.sum(jnp.where(is_below, t, 0), axis=-2)
    is_block, is_end = c != 0, at_next(c) != 0
    s = jnp.sqrt(jnp.abs(b)) * jnp.sqrt(jnp.abs(c))
    length = jnp.where(is_block, jnp.hypot(b, s), 1)
    cosine, sine = jnp.where(is_block, b / length, 0), s / length
    inside = jnp.where(is_block | is_end, cosine + at_next(cosine), 1)
    beside = jnp.where(is_below, sine[..., None, :], jnp.where(is_above, sine[..., None], 0))
    turn = lax.complex(jnp.where(at == at[:, None], inside[..., None], 0), beside)
    values = lax.complex(diagonal(t), s - at_next(s))
    form = jnp.triu(adjoint(turn) @ t @ turn, 1)
    return jnp.where(at == at[:, None], values[..., None], form), q @ turn


def complex_schur(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(t, q): a = q t q^H with an upper triangle t."""
    size = a.shape[-1]
    form, q = hessenberg_form(a)
    if size == 1:
        return form, q

    def is_unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        sweep, last, _, _ = state
        return (sweep < _SWEEPS * size) & jnp.any(last > 0)

    def sweep(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        count, last, h, q = state
        shift = _shift(h, last, count)
        h, q = _chased(h, q, last, shift)
        h, last = _unfinished(h)
        return count + 1, last, h, q

    h, last = _unfinished(form)
    start: tuple[jax.Array, ...] = jnp.int32(0), last, h, q
    _, _, h, q = lax.while_loop(is_unfinished, sweep, start)
    return jnp.triu(h), q


def _unfinished(h: jax.Array) -> tuple[jax.Array, jax.Array]:
    """h without what is negligible below the diagonal, and its last row that is not done."""
    h, is_left = deflated(h)
    return h, jnp.max(jnp.where(is_left, positions(h.shape[-1]), 0), axis=-1)


def _shift(h: jax.Array, last: jax.Array, count: jax.Array) -> jax.Array:
    """The eigenvalue of the last two rows that is next to the last one (J. Wilkinson)."""
    at = positions(h.shape[-1])

    def at_end(i: int, j: int) -> jax.Array:
        is_here = (at[:, None] == last[..., None, None] - i) & (at == last[..., None, None] - j)
        return jnp.sum(jnp.where(is_here, h, 0), axis=(-1, -2))

    a, b, c, d = at_end(1, 1), at_end(1, 0), at_end(0, 1), at_end(0, 0)
    half = 0.5 * (a - d)
    root = jnp.sqrt(half * half + b * c)
    root = jnp.where(jnp.real(jnp.conj(half) * root) > 0, -root, root)
    is_stuck = count % 10 == 9  # a cycle is left by another shift
    return jnp.where(is_stuck, d + jnp.abs(c), d + half + root)


def _chased(
    h: jax.Array, q: jax.Array, last: jax.Array, shift: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One implicit QR step on the rows up to `last`."""
    at = positions(h.shape[-1])
    start = column(h, 0) - jnp.where(at == 0, shift[..., None], 0)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        h, q, source = state
        x = lax.dynamic_index_in_dim(source, k, axis=-1, keepdims=False)
        y = lax.dynamic_index_in_dim(source, k + 1, axis=-1, keepdims=False)
        length = jnp.sqrt(jnp.square(jnp.abs(x)) + jnp.square(jnp.abs(y)))
        is_idle = (k >= last) | (length == 0)
        safe = jnp.where(is_idle, 1, length).astype(h.dtype)
        h, q = rotated(h, q, k, jnp.where(is_idle, 1, x / safe), jnp.where(is_idle, 0, y / safe))
        return h, q, jnp.where(at > k, column(h, k), 0)

    h, q, _ = loop(h.shape[-1] - 1, step, (h, q, start))
    return h, q


def _eigenvectors(t: jax.Array) -> jax.Array:
    """Columns x with t x = t[k, k] x, by substitution from below, for all k at once."""
    size = t.shape[-1]
    at = positions(size)
    values, above = diagonal(t), jnp.triu(t, 1)
    floor = jnp.finfo(t.dtype).eps * jnp.max(jnp.abs(t), axis=(-1, -2), initial=0)[..., None]

    def step(n: jax.Array, x: jax.Array) -> jax.Array:
        i = size - 1 - n
        own = lax.dynamic_index_in_dim(values, i, axis=-1)
        apart = own - values
        apart = jnp.where(jnp.abs(apart) <= floor, jnp.where(floor == 0, 1, floor), apart)
        inside = -vector_times(row(above, i), x) / apart
        return with_row(x, i, jnp.where(at > i, inside, jnp.where(at == i, 1, 0)))

    return loop(size, step, jnp.zeros_like(t))


def _unit(v: jax.Array) -> jax.Array:
    """Columns of length one with a real largest element, as LAPACK has them."""
    length = jnp.sqrt(jnp.sum(jnp.square(jnp.abs(v)), axis=-2, keepdims=True))
    size = jnp.abs(v)
    largest = jnp.take_along_axis(v, jnp.argmax(size, axis=-2)[..., None, :], axis=-2)
    return v * jnp.conj(largest) / (jnp.abs(largest) * length)
