# SPDX-License-Identifier: Apache-2.0
"""16-bit floats are computed in 32 bits and rounded once, as XLA does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Function = Callable[..., jax.Array]


def in_float32(fn: Function) -> Function:
    @functools.wraps(fn)
    def computed(*operands: jax.Array, **params: Any) -> jax.Array:
        dtype = operands[0].dtype
        if dtype.itemsize > 2:
            return fn(*operands, **params)
        return fn(*(x.astype(jnp.float32) for x in operands), **params).astype(dtype)

    return computed
