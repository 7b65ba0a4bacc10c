# SPDX-License-Identifier: Apache-2.0
"""Comparisons in IEEE's total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def eq_to(x: jax.Array, y: jax.Array) -> jax.Array:
    return _rank(x) == _rank(y)


def le_to(x: jax.Array, y: jax.Array) -> jax.Array:
    return _rank(x) <= _rank(y)


def lt_to(x: jax.Array, y: jax.Array) -> jax.Array:
    return _rank(x) < _rank(y)


def _rank(x: jax.Array) -> jax.Array:
    """An integer in the order of x: bits of negative floats count downwards."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    bits = lax.bitcast_convert_type(x, jnp.dtype(f"int{8 * x.dtype.itemsize}"))
    return jnp.where(bits < 0, jnp.iinfo(bits.dtype).min + (-1 - bits), bits)
