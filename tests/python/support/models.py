# SPDX-License-Identifier: Apache-2.0
"""Small networks, as users write them in each library."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

module_list = getattr(nnx, "List", list)  # Flax 0.11 takes plain lists


class NnxMlp(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(4, 8, rngs=rngs)
        self.out = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(nnx.relu(self.hidden(x)))


class NnxCnn(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(3, 8, (3, 3), strides=(2, 2), rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.head = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.gelu(self.norm(self.conv(x)))
        x = nnx.max_pool(x, (2, 2), strides=(2, 2))
        return self.head(x.mean((1, 2)))


class NnxBlock(nnx.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class NnxViT(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, depth: int = 2, width: int = 16, patch: int = 4) -> None:
        self.patch = nnx.Conv(3, width, (patch, patch), (patch, patch), padding="VALID", rngs=rngs)
        self.cls = nnx.Param(jax.random.normal(rngs.params(), (1, 1, width)))
        self.position = nnx.Param(jax.random.normal(rngs.params(), (1, 17, width)))
        blocks = [NnxBlock(width, 2, rngs) for _ in range(depth)]
        self.blocks = module_list(blocks)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.patch(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        cls = jnp.broadcast_to(self.cls[...], (x.shape[0], 1, x.shape[-1]))
        x = jnp.concatenate([cls, x], axis=1) + self.position[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class LinenMlp(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.silu(nn.Dense(8)(x))
        return nn.softmax(nn.Dense(3)(x))


class LinenCnn(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(8, (3, 3), padding="SAME")(x)
        x = nn.avg_pool(nn.relu(nn.GroupNorm(4)(x)), (2, 2), (2, 2))
        return nn.Dense(5)(x.reshape(x.shape[0], -1))


class EquinoxBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.RMSNorm
    mlp: eqx.nn.MLP

    def __init__(self, width: int, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(2, width, key=keys[0])
        self.norm = eqx.nn.RMSNorm(width)
        self.mlp = eqx.nn.MLP(width, width, 2 * width, 1, activation=jax.nn.silu, key=keys[1])

    def __call__(self, x: Any) -> Any:
        y = jax.vmap(self.norm)(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(x)


class EquinoxRnn(eqx.Module):
    """A cell of Equinox over a sequence, as its documentation writes it."""

    cell: eqx.nn.GRUCell | eqx.nn.LSTMCell
    reverse: bool = False

    def __call__(self, xs: Any) -> Any:
        zero = jnp.zeros(self.cell.hidden_size)
        is_lstm = isinstance(self.cell, eqx.nn.LSTMCell)

        def step(state: Any, x: Any) -> tuple[Any, Any]:
            state = self.cell(x, state)
            return state, state[0] if is_lstm else state

        init = (zero, zero) if is_lstm else zero
        return jax.lax.scan(step, init, xs, reverse=self.reverse)


def pure(module: nnx.Module) -> Any:
    """An nnx module whose call changes its state, such as an RNN, as a function without state."""
    graph, state = nnx.split(module)
    return lambda *xs: nnx.merge(graph, jax.tree.map(lambda leaf: leaf, state))(*xs)
