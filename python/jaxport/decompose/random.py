# SPDX-License-Identifier: Apache-2.0
"""jax.random: JAX's own functions, so that the bits are JAX's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .. import _jax
from .keys import wrap


def threefry2x32(*operands: jax.Array) -> Sequence[jax.Array]:
    # Unrolled: 20 rounds of five cheap ops are faster than an ONNX Loop, and constants fold.
    return _jax.private("threefry2x32")(*operands, use_rolled_loops=False)


def iota_2x32_shape(*, shape: Sequence[Any]) -> tuple[jax.Array, jax.Array]:
    """The high and the low words of the positions in an array; there are less than 2**32."""
    low = lax.reshape(lax.iota(jnp.uint32, math.prod(shape)), shape)
    return jnp.zeros(shape, jnp.uint32), low


def random_seed(seeds: jax.Array, *, impl: Any) -> jax.Array:
    return wrap(_mapped(impl.seed, seeds.ndim)(seeds), impl)


def random_split(keys: jax.Array, *, shape: Sequence[int]) -> jax.Array:
    impl = _jax.key_impl(keys.dtype)
    split = _mapped(lambda words: impl.split(words, shape), keys.ndim)
    return wrap(split(jax.random.key_data(keys)), impl)


def random_bits(keys: jax.Array, *, bit_width: int, shape: Sequence[Any]) -> Any:
    impl = _jax.key_impl(keys.dtype)
    bits = _mapped(lambda words: impl.random_bits(words, bit_width, shape), keys.ndim)
    return bits(jax.random.key_data(keys))


def random_fold_in(keys: jax.Array, data: jax.Array) -> jax.Array:
    impl = _jax.key_impl(keys.dtype)
    shape = lax.broadcast_shapes(keys.shape, data.shape)
    words = jax.random.key_data(keys)
    words = jnp.broadcast_to(words, (*shape, *words.shape[keys.ndim :]))
    fold_in = _mapped(impl.fold_in, len(shape))
    return wrap(fold_in(words, jnp.broadcast_to(data, shape)), impl)


def random_gamma(keys: jax.Array, a: jax.Array, *, log_space: bool) -> Any:
    return _jax.private("random_gamma")(keys, a, log_space=log_space, use_vmap=True)


def _mapped(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """fn over `count` leading axes."""
    for _ in range(count):
        fn = jax.vmap(fn)
    return fn
