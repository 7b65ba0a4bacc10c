# SPDX-License-Identifier: Apache-2.0
"""XLA's RngBitGenerator in words of 32 bits: Philox 4x32 and Threefry 2x32 of a counter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .random import threefry2x32

Words = Sequence[jax.Array]


def rng_bit_generator(
    key: jax.Array, *, shape: Sequence[int], dtype: Any, algorithm: Any, out_sharding: Any = None
) -> tuple[jax.Array, jax.Array]:
    """(the next key, bits): a key is the words of a 64-bit key and of a 64-bit counter."""
    if key.size * key.dtype.itemsize != 16:
        raise NotImplementedError("a key has four words of 32 bits, or two of 64 bits")
    words = _words(key)
    is_wide = jnp.dtype(dtype).itemsize == 8
    generate = _threefry if algorithm.name == "RNG_THREE_FRY" else _philox  # XLA's default on CPU
    count, bits = generate(words, tuple(shape), is_wide)
    counter = _sum(words[2:], jnp.uint32(count))
    return _key([*words[:2], *counter], key), bits.astype(dtype)


def _words(key: jax.Array) -> list[jax.Array]:
    if key.dtype == jnp.uint32:
        return [key[i] for i in range(4)]
    halves = [key.astype(jnp.uint32), (key >> 32).astype(jnp.uint32)]
    return [halves[i % 2][i // 2] for i in range(4)]


def _key(words: Words, like: jax.Array) -> jax.Array:
    if like.dtype == jnp.uint32:
        return jnp.stack(words)
    return jnp.stack([_joined(*words[:2]), _joined(*words[2:])])


def _joined(low: jax.Array, high: jax.Array) -> jax.Array:
    return low.astype(jnp.uint64) | (high.astype(jnp.uint64) << 32)


def _sum(words: Words, addend: jax.Array) -> list[jax.Array]:
    """Words of a long number, the lowest first, plus a number of one word."""
    total = []
    for word in words:
        total.append(word + addend)
        addend = (total[-1] < addend).astype(jnp.uint32)
    return total


def _philox(words: Words, shape: tuple[int, ...], is_wide: bool) -> tuple[int, jax.Array]:
    """Four words for each number of the counter, whose upper half is the key."""
    size = math.prod(shape)
    count = -(-size * (2 if is_wide else 1) // 4)
    counter = _sum([*words[2:], *words[:2]], lax.iota(jnp.uint32, count))
    found = _philox4x32(jnp.broadcast_arrays(*counter), words[:2])
    if is_wide:
        found = [_joined(*found[:2]), _joined(*found[2:])]
    return count, jnp.stack(found, axis=1).reshape(-1)[:size].reshape(shape)


def _philox4x32(counter: Words, key: Words) -> list[jax.Array]:
    """J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = _product(x0, 0xD2511F53)
        high1, low1 = _product(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = k0 + jnp.uint32(0x9E3779B9), k1 + jnp.uint32(0xBB67AE85)
    return [x0, x1, x2, x3]


def _product(x: jax.Array, factor: int) -> tuple[jax.Array, jax.Array]:
    """The high and the low word of x * factor, by halves of 16 bits."""
    x_low, x_high = x & 0xFFFF, x >> 16
    low, high = jnp.uint32(factor & 0xFFFF), jnp.uint32(factor >> 16)
    middle = x_high * low + ((x_low * low) >> 16)
    other = x_low * high + (middle & 0xFFFF)
    return x_high * high + (middle >> 16) + (other >> 16), x * jnp.uint32(factor)


def _threefry(words: Words, shape: tuple[int, ...], is_wide: bool) -> tuple[int, jax.Array]:
    """Two words for each number of the counter: a wide number, or neighbours along one axis."""
    if is_wide or not shape:
        size = math.prod(shape)
        low, high = _threefry_pairs(words, size)
        return size, (_joined(low, high) if is_wide else low).reshape(shape)
    axis = next((i for i, size in enumerate(shape) if size % 2 == 0), shape.index(max(shape)))
    halved = (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    pairs = [x.reshape(halved) for x in _threefry_pairs(words, math.prod(halved))]
    padded = (*shape[:axis], 2 * halved[axis], *shape[axis + 1 :])
    bits = jnp.stack(pairs, axis=axis + 1).reshape(padded)
    return math.prod(halved), lax.slice_in_dim(bits, 0, shape[axis], axis=axis)


def _threefry_pairs(words: Words, count: int) -> Sequence[jax.Array]:
    low, high = _sum(words[2:], lax.iota(jnp.uint32, count))
    return threefry2x32(*words[:2], low, high)
