# SPDX-License-Identifier: Apache-2.0
"""Programs into whose models faults are planted: one operation a line, so that lines are places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxport


def weights(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 0.5)


def perceptron(x):
    h = x @ weights(0, 12, 16)
    h = h + weights(1, 16)
    h = jax.nn.gelu(h)
    mean = jnp.mean(h, axis=-1, keepdims=True)
    centred = h - mean
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    root = jnp.sqrt(variance + 1e-5)
    normal = centred / root
    scaled = normal * weights(2, 16)
    h = jnp.tanh(scaled)
    logits = h @ weights(3, 16, 5)
    return jax.nn.log_softmax(logits, axis=-1), jnp.argmax(logits, axis=-1)


def attention(x):
    q = x @ weights(10, 16, 16)
    k = x @ weights(11, 16, 16)
    v = x @ weights(12, 16, 16)
    q = q.reshape(*q.shape[:-1], 4, 4)
    k = k.reshape(*k.shape[:-1], 4, 4)
    v = v.reshape(*v.shape[:-1], 4, 4)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    scores = jnp.clip(scores, -3.0, 3.0)
    shares = jax.nn.softmax(scores / 2.0, axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, v)
    mixed = mixed.reshape(*x.shape)
    y = x + mixed
    return y * jax.nn.sigmoid(y)


def images(x):
    y = lax.conv_general_dilated(
        x, weights(20, 3, 3, 3, 8), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = y + weights(21, 8)
    y = jax.nn.relu(y)
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    flipped = jnp.flip(y, axis=1)
    both = jnp.concatenate([y, flipped], axis=-1)
    pooled = jnp.mean(both, axis=(1, 2))
    scaled = pooled * weights(22, 16)
    return jnp.exp(scaled) - 1.5


def loops(x):
    def cell(state, row):
        total = state @ weights(30, 8, 8)
        total = total + row
        state = jnp.tanh(total)
        doubled = state * 2.0
        return state, doubled

    start = jnp.cos(x[0])
    last, rows = lax.scan(cell, start, x)
    mixed = rows * jnp.sin(last)

    def step(state):
        count, value = state
        value = value * 0.75
        value = value + last
        return count + 1, value

    _, value = lax.while_loop(lambda s: s[0] < 4, step, (0, last))
    total = jnp.sum(value)
    chosen = lax.cond(total > 0, lambda v: jnp.exp(v), lambda v: v * 0.5 - 1.0, mixed)
    return chosen + value, total


def randomness(key, x):
    first, second = jax.random.split(key)
    noise = jax.random.normal(first, x.shape)
    kept = jax.random.bernoulli(second, 0.7, x.shape)
    noisy = x + 0.1 * noise
    dropped = jnp.where(kept, noisy / 0.7, 0.0)
    return jnp.sin(dropped) @ weights(40, 6, 6)


def indexing(x, i):
    rows = jnp.take(weights(50, 10, 6), i, axis=0)
    summed = jnp.cumsum(x, axis=0)
    ordered = jnp.sort(summed, axis=-1)
    part = lax.dynamic_slice(ordered, (1, 2), (3, 4))
    best, places = lax.top_k(x, 3)
    filled = jnp.zeros((5, 6)).at[i[:2]].add(x[:2])
    outer = rows[:, :3] * best[:4]
    quotient = ordered / (1.0 + jnp.abs(filled[: ordered.shape[0]]))
    return part * 3.0, places, outer, quotient


def half(x):
    h = x.astype(jnp.bfloat16)
    h = h @ weights(60, 8, 8).astype(jnp.bfloat16)
    h = jnp.tanh(h)
    wide = h.astype(jnp.float32)
    y = wide * weights(61, 8)
    return y - jnp.max(y, axis=-1, keepdims=True)


@jaxport.onnx_function
def block(x):
    y = x @ weights(70, 8, 8)
    y = jax.nn.silu(y)
    return x + y


def called(x):
    y = block(x)
    y = y * 1.5
    y = block(y)
    norm = jnp.sqrt(jnp.sum(y * y, axis=-1, keepdims=True))
    return y / norm


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "attention": (attention, [f32(2, 5, 16)]),
    "called": (called, [f32(3, 8)]),
    "half": (half, [f32(5, 8)]),
    "images": (images, [f32(2, 6, 6, 3)]),
    "indexing": (indexing, [f32(4, 6), np.array([3, 1, 7, 2], np.int32)]),
    "loops": (loops, [f32(6, 8)]),
    "perceptron": (perceptron, [f32(4, 12)]),
    "randomness": (randomness, [jax.random.key(3), f32(4, 6)]),
}
