# SPDX-License-Identifier: Apache-2.0
"""Random keys as arrays of their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import _jax


def over_key_data(primitive: Any) -> Callable[..., Any]:
    """What a primitive that only moves elements does to keys: the same to each word of theirs."""

    def moved(*operands: Any, **params: Any) -> Any:
        impl = next(_jax.key_impl(x.dtype) for x in operands if _jax.is_key(x.dtype))
        in_axes = [-1 if _jax.is_key(x.dtype) else None for x in operands]
        words = [jax.random.key_data(x) if _jax.is_key(x.dtype) else x for x in operands]
        bind = jax.vmap(lambda *xs: primitive.bind(*xs, **params), in_axes, out_axes=-1)
        if primitive.name in _COMPARISONS:
            return _COMPARISONS[primitive.name](bind(*words), axis=-1)
        return jax.tree.map(lambda data: wrap(data, impl), bind(*words))

    return moved


def wrap(data: jax.Array, impl: Any) -> jax.Array:
    return jax.random.wrap_key_data(data, impl=impl)


_COMPARISONS: dict[str, Callable[..., jax.Array]] = {"eq": jnp.all, "ne": jnp.any}
