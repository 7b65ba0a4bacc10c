# SPDX-License-Identifier: Apache-2.0
"""Jacobi sweeps of real matrices with a known size, with few nodes in a round.

Rows i and i + n/2 are a pair. A round turns all pairs at once and then moves the rows on, so that
they meet new partners; turning and moving is one product with a matrix J. After n - 1 rounds every
pair has met, and each row is back at its place. An odd size gets one more row of zeros, which no
round mixes with the others.

The angle may be inexact: the sine and the cosine of any angle make an orthogonal J.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .matrix import diagonal, identity_like, transposed

_SWEEPS = 20  # convergence is quadratic: 5 to 8 sweeps are usual for up to 64 rows
_NOTHING = 1.3571113e-38  # beside a difference that may be zero

Pair = tuple[jax.Array, jax.Array]


class _Round(NamedTuple):
    """Constants of a round: J = cos * kept + sin * mixed, both along columns."""

    kept: np.ndarray
    mixed: np.ndarray
    gap: np.ndarray  # a row of diagonal elements times this: second less first of each pair
    beside: np.ndarray  # where the pairs are above the diagonal
    double: np.ndarray  # a row of these elements times this: -2 times the element of each pair


@functools.cache
def _round(size: int) -> _Round:
    half, eye = size // 2, np.eye(size, dtype=np.float32)
    top, bottom = list(range(half)), list(range(half, size))
    if half > 1:  # the first row stays, the others go round
        top, bottom = [0, bottom[0], *top[1:-1]], [*bottom[1:], top[-1]]
    source = top + bottom
    partners = np.roll(np.arange(size), half)
    sign = np.where(np.arange(size) < half, 1, -1).astype(np.float32)[:, None]
    turned = sign * eye[partners]  # the first row gains the second, the second loses the first
    both = eye + eye[partners]
    return _Round(eye[source], turned[source], -sign * both, np.eye(size, k=half), -2 * both)


def eigenvectors(a: jax.Array) -> Pair:
    """(values, vectors as rows), not sorted, of symmetric matrices."""
    size = a.shape[-1]
    a = _even(a, both=True)
    enough = jnp.max(jnp.abs(a), axis=(-1, -2), initial=0) * _noise(a)
    outside = 1 - np.eye(a.shape[-1], dtype=a.dtype)

    def is_left(a: jax.Array) -> jax.Array:
        off = jnp.max(jnp.abs(a * outside), axis=(-1, -2))
        return jnp.any(~(off <= enough))  # NaN never ends: it spreads

    def turned(a: jax.Array, v: jax.Array) -> Pair:
        j = _turn(a)
        return jnp.matmul(jnp.matmul(j, a), transposed(j)), jnp.matmul(j, v)

    a, v = _swept(turned, is_left, a, identity_like(a, a.shape[-1], a.shape[-1]))
    return diagonal(a)[..., :size], v[..., :size, :size]


def orthogonal_rows(x: jax.Array, with_turns: bool = True) -> Pair:
    """(v x, v) with an orthogonal v so that the rows of v x are orthogonal."""
    rows = x.shape[-2]
    x = _even(x, both=False)
    size = x.shape[-2]
    noise = _noise(x)
    nothing = jnp.square(jnp.max(jnp.abs(x), axis=(-1, -2), keepdims=True, initial=0) * noise)
    outside = 1 - np.eye(size, dtype=x.dtype)

    def is_left(x: jax.Array) -> jax.Array:
        gram = jnp.matmul(x, transposed(x))
        length = jnp.sqrt(diagonal(gram))
        enough = noise * length[..., :, None] * length[..., None, :] + nothing
        return jnp.any(~(jnp.abs(gram * outside) <= enough))

    def turned(x: jax.Array, v: jax.Array) -> Pair:
        j = _turn(jnp.matmul(x, transposed(x)))
        return jnp.matmul(j, x), jnp.matmul(j, v) if with_turns else v

    x, v = _swept(turned, is_left, x, identity_like(x, size, size))
    return x[..., :rows, :], v[..., :rows, :rows]


def _noise(a: jax.Array) -> float:
    """What rounding leaves of a zero, beside the largest element."""
    return 2 * math.sqrt(a.shape[-2]) * float(jnp.finfo(a.dtype).eps)


def _even(a: jax.Array, both: bool) -> jax.Array:
    """With a row of zeros, and a column too, at the end where the number of rows is odd."""
    more = a.shape[-2] % 2
    if not more:
        return a
    return jnp.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, more), (0, more if both else 0)])


def _turn(a: jax.Array) -> jax.Array:
    """J for a symmetric matrix: a pair's element beside the diagonal becomes zero in J a J^T."""
    constants = _Round(*(x.astype(a.dtype) for x in _round(a.shape[-1])))
    gap = jnp.matmul(diagonal(a)[..., None, :], constants.gap)
    # Both rows of a pair must see the same number: rounding leaves a[i, j] and a[j, i] apart.
    beside = jnp.sum(a * constants.beside, axis=-2, keepdims=True)
    double = jnp.matmul(beside, constants.double)
    cosine, sine = _half_angle(double / (gap + np.array(_NOTHING, a.dtype)))
    return cosine * constants.kept + sine * constants.mixed


def _half_angle(tangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cosine, sine) of half of the angle with this tangent."""
    if tangent.dtype == jnp.float32:
        angle = 0.5 * jnp.arctan(tangent)
        return jnp.cos(angle), jnp.sin(angle)
    # ONNX Runtime has Atan in f32 only. Beyond 1e150 the square is infinite, the half is 1 already.
    tangent = jnp.clip(tangent, -1e150, 1e150)
    half = tangent / (1 + jnp.sqrt(1 + tangent * tangent))
    cosine = 1 / jnp.sqrt(1 + half * half)
    return cosine, cosine * half


def _swept(
    turned: Callable[[jax.Array, jax.Array], Pair],
    is_left: Callable[[jax.Array], jax.Array],
    a: jax.Array,
    v: jax.Array,
) -> Pair:
    """Whole sweeps, one at least, until nothing is left to do."""
    rounds = a.shape[-2] - 1

    def sweep(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        count, _, a, v = state
        a, v = lax.fori_loop(0, rounds, lambda _, pair: turned(*pair), (a, v))
        return count + 1, is_left(a), a, v

    def goes_on(state: tuple[jax.Array, ...]) -> jax.Array:
        return (state[0] < _SWEEPS) & state[1]

    start: tuple[jax.Array, ...] = jnp.int32(0), jnp.bool_(True), a, v
    _, _, a, v = lax.while_loop(goes_on, sweep, start)
    return a, v
