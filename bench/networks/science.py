# SPDX-License-Identifier: Apache-2.0
"""Networks of control and science."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from networks.network import Network, of_module

NODES, EDGES = 256, 1024


class Mlp(nnx.Module):
    def __init__(self, sizes: tuple[int, ...], rngs: nnx.Rngs):
        self.layers = nnx.List([nnx.Linear(*pair, rngs=rngs) for pair in pairwise(sizes)])

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers[:-1]:
            x = nnx.tanh(layer(x))
        return self.layers[-1](x)


class GraphNetwork(nnx.Module):
    """Three rounds of messages along the edges, summed at their ends."""

    def __init__(self, rngs: nnx.Rngs, width: int = 64, rounds: int = 3):
        sizes = (2 * width, 128, width)
        self.messages = nnx.List([Mlp(sizes, rngs) for _ in range(rounds)])
        self.updates = nnx.List([Mlp(sizes, rngs) for _ in range(rounds)])

    def __call__(self, x: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
        for message, update in zip(self.messages, self.updates, strict=True):
            sent = message(jnp.concatenate([x[senders], x[receivers]], axis=-1))
            received = jax.ops.segment_sum(sent, receivers, NODES)
            x = x + update(jnp.concatenate([x, received], axis=-1))
        return x.mean(axis=0)


class NeuralOde(nnx.Module):
    """Runge-Kutta of fourth order over a network, 50 steps."""

    def __init__(self, rngs: nnx.Rngs):
        self.field = Mlp((16, 64, 64, 16), rngs)

    def __call__(self, y: jax.Array) -> jax.Array:
        h, field = 0.02, self.field

        def step(_: int, y: Any) -> Any:
            k1 = field(y)
            k2 = field(y + h / 2 * k1)
            k3 = field(y + h / 2 * k2)
            k4 = field(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return jax.lax.fori_loop(0, 50, step, y)


INDICES = ((EDGES,), "int32")

NETWORKS = (
    Network(
        "MLP policy",
        of_module(lambda rngs: Mlp((17, 256, 256, 6), rngs)),
        (((1, 17), "float32"),),
    ),
    Network(
        "graph network",
        of_module(GraphNetwork),
        (((NODES, 64), "float32"), INDICES, INDICES),
        NODES,
    ),
    Network("neural ODE", of_module(NeuralOde), (((8, 16), "float32"),)),
)
