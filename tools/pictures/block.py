# SPDX-License-Identifier: Apache-2.0
"""The program that most pictures show, as a user may write it; its lines are in the pictures."""

import jax
import jax.numpy as jnp


def block(x, w):
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    x = (x - mean) / jnp.sqrt(variance + 1e-6)
    q, k, v = jnp.split(x @ w, 3, axis=-1)
    q, k, v = heads(q), heads(k), heads(v)
    scores = q @ k.mT / 4.0
    p = jnp.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    y = (p @ v).swapaxes(1, 2).reshape(x.shape)
    return jax.nn.gelu(y, approximate=False)


def heads(a):
    return a.reshape(*a.shape[:2], 4, 16).swapaxes(1, 2)
