# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues and singular values of real matrices with one or two columns, by formulas.

Squares are taken of numbers that were divided by the largest one: they neither over- nor underflow.
Sums and differences of elements are products with constant matrices: one node for all of them, and
a NaN or an infinity makes everything NaN, as in JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .matrix import transposed


def _times(x: jax.Array, matrix: list[list[float]]) -> jax.Array:
    return jnp.matmul(x, np.array(matrix, x.dtype))


def _scaled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(x / scale, scale): the largest element of the last axis becomes one; zeros stay zeros."""
    info = jnp.finfo(x.dtype)
    # Not a sum: ONNX Runtime 1.31 drops an Add of a number that is 0 in f32.
    scale = jnp.maximum(jnp.max(jnp.abs(x), axis=-1, keepdims=True), float(info.tiny / info.eps))
    return x / scale, scale


def _length(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def eigh_of_two(a: jax.Array, lower: bool) -> tuple[jax.Array, jax.Array]:
    """(vectors, values) of ((a, b), (b, d)): (a + d) / 2 -+ hypot((a - d) / 2, b).

    With h for half of a - d and t = |h| + hypot(h, b), which does not cancel, (t, b) is a vector of
    the value on the side of the larger diagonal element, and (-b, t) one of the other value.
    """
    batch = a.shape[:-2]
    elements = jnp.take(a.reshape(*batch, 4), np.array([0, 3, 2 if lower else 1]), axis=-1)
    parts = _times(elements, [[0.5, 0.5, 0], [0.5, -0.5, 0], [0, 0, 1]])
    mean = parts[..., :1]
    pair, scale = _scaled(parts[..., 1:])
    length = _length(pair)
    nothing = float(jnp.finfo(a.dtype).eps) ** 2  # equal values, no b: vectors of the identity
    ray = jnp.where(np.array([True, False]), jnp.abs(pair) + (length + nothing), pair)
    ray = ray / _length(ray)
    falling = _times(ray, [[0, 1, 1, 0], [-1, 0, 0, 1]])
    rising = _times(ray, [[1, 0, 0, 1], [0, 1, -1, 0]])
    vectors = jnp.where(pair[..., :1] > 0, falling, rising).reshape(*batch, 2, 2)
    return vectors, mean + length * scale * np.array([-1, 1], a.dtype)


def values_of_two_columns(a: jax.Array) -> jax.Array:
    """Singular values to the digits of the larger one, which a product a^T a would not give."""
    rows = a.shape[-2]
    flat, scale = _scaled(a.reshape(*a.shape[:-2], 2 * rows))
    return (_of_square(flat) if rows == 2 else _of_tall(flat.reshape(a.shape))) * scale


def _of_square(flat: jax.Array) -> jax.Array:
    """Half of hypot(a + d, b - c) +- hypot(a - d, b + c)."""
    mixed = _times(flat, [[1, 0, 1, 0], [0, 1, 0, 1], [0, -1, 0, 1], [1, 0, -1, 0]])
    lengths = jnp.sqrt(jnp.sum(jnp.square(mixed.reshape(*flat.shape[:-1], 2, 2)), axis=-1))
    return jnp.abs(_times(lengths, [[0.5, 0.5], [0.5, -0.5]]))


def _of_tall(a: jax.Array) -> jax.Array:
    """The larger from a^T a; the product of both is the area that the columns span.

    Its square is the sum of the squares of all x_i y_j - x_j y_i.
    """
    batch = a.shape[:-2]
    gram = jnp.matmul(transposed(a), a).reshape(*batch, 4)
    gap = _length(_times(gram, [[1, 0], [0, 1], [0, 1], [-1, 0]]))
    larger = jnp.sqrt(0.5 * (_times(gram, [[1], [0], [0], [1]]) + gap))
    minors = jnp.matmul(_times(a, [[0, 1], [-1, 0]]), transposed(a))
    area = jnp.sqrt(0.5 * jnp.sum(minors * minors, axis=(-1, -2)))[..., None]
    smaller = area / jnp.maximum(larger, float(jnp.finfo(a.dtype).eps) ** 2)
    return jnp.concatenate([larger, smaller], axis=-1)


def eigenvalues_of_two(a: jax.Array) -> jax.Array:
    """(d + z, d - bc / z) with z = h + sign(h) sqrt(h^2 + bc), h = (a - d) / 2 (LAPACK lanv2).

    Where h^2 + bc is negative, the values are conjugate, that with the positive part first.
    """
    batch = a.shape[:-2]
    flat, scale = _scaled(a.reshape(*batch, 4))
    mixed = _times(flat, [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0.5, -0.5, 0, 0]])
    mean, half, b, c = (mixed[..., i : i + 1] for i in range(4))
    product = b * c
    square = half * half + product
    root = jnp.sqrt(jnp.abs(square))
    z = half + jnp.where(half < 0, -root, root)
    low = mean - half
    both = jnp.where(np.array([True, False]), z, -product / jnp.where(z == 0, 1, z))
    real = jnp.where(square < 0, mean, low + both)
    imaginary = jnp.where(square < 0, root, 0) * np.array([1, -1], a.dtype)
    return jax.lax.complex(real * scale, imaginary * scale)


def complex_eigenvalues_of_two(a: jax.Array) -> jax.Array:
    """The same of complex numbers; the sign of the root is that which does not cancel in z."""
    size = jnp.maximum(jnp.abs(a.real), jnp.abs(a.imag))
    scale = jnp.max(size, axis=(-1, -2), keepdims=True)
    scale = jnp.where(scale == 0, 1, scale)
    a = jax.lax.complex(a.real / scale, a.imag / scale)
    half, low = 0.5 * (a[..., 0, :1] - a[..., 1, 1:]), a[..., 1, 1:]
    product = a[..., 0, 1:] * a[..., 1, :1]
    root = jnp.sqrt(half * half + product)
    is_against = half.real * root.real + half.imag * root.imag < 0
    z = half + jnp.where(is_against, -root, root)
    values = jnp.concatenate([low + z, low - product / jnp.where(z == 0, 1, z)], axis=-1)
    return jax.lax.complex(values.real * scale[..., 0], values.imag * scale[..., 0])
