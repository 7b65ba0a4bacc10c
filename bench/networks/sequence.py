# SPDX-License-Identifier: Apache-2.0
"""Networks on sequences."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from networks.network import Network, as_function, of_module
from networks.transformer import Block

VOCABULARY, WIDTH, HEADS, TOKENS = 8192, 512, 8, 128
CACHE = 1024


class Decoder(nnx.Module):
    """A GPT-style decoder: learned positions, a causal mask, logits of the last token."""

    def __init__(self, rngs: nnx.Rngs, width: int = WIDTH, vocabulary: int = VOCABULARY):
        self.embed = nnx.Embed(vocabulary, width, rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (TOKENS, width)))
        self.blocks = nnx.List([Block(width, HEADS, rngs) for _ in range(6)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embed(tokens) + self.positions[...]
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.embed.attend(self.norm(x)[:, -1])


class Encoder(nnx.Module):
    """A BERT-like encoder: three embeddings, a mask of padding, post-norm blocks."""

    def __init__(self, rngs: nnx.Rngs, layers: int = 6, width: int = 384, heads: int = 6):
        self.words = nnx.Embed(VOCABULARY, width, rngs=rngs)
        self.segments = nnx.Embed(2, width, rngs=rngs)
        self.positions = nnx.Embed(TOKENS, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.pooler = nnx.Linear(width, width, rngs=rngs)

    def __call__(self, tokens: jax.Array, lengths: jax.Array) -> jax.Array:
        places = jnp.arange(tokens.shape[1])
        x = self.words(tokens) + self.segments(jnp.zeros_like(tokens)) + self.positions(places)
        mask = (places < lengths[:, None])[:, None, None, :]
        x = self.norm(x)
        for block in self.blocks:
            x = block(x, mask)
        return jnp.tanh(self.pooler(x[:, 0]))


def stacked_weights(layers: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> np.ndarray:
        return rng.standard_normal((layers, *shape), dtype=np.float32) / np.sqrt(shape[0])

    return {
        "qkv": weight(WIDTH, 3 * WIDTH),
        "out": weight(WIDTH, WIDTH),
        "up": weight(WIDTH, 4 * WIDTH),
        "down": weight(4 * WIDTH, WIDTH),
        "norm1": 1 + weight(WIDTH) / 8,
        "norm2": 1 + weight(WIDTH) / 8,
    }


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return scale * x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def heads_of(x: jax.Array) -> list[jax.Array]:
    return [part.reshape(*part.shape[:-1], HEADS, -1) for part in jnp.split(x, 3, axis=-1)]


def feed_forward(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
    return x + jax.nn.gelu(rms_norm(x, w["norm2"]) @ w["up"]) @ w["down"]


def scanned_decoder(layers: int = 8) -> Callable[[jax.Array], jax.Array]:
    """Layers with stacked weights under scan, as large models are written."""
    stack = stacked_weights(layers)

    def layer(x: jax.Array, w: dict[str, jax.Array]) -> tuple[jax.Array, None]:
        q, k, v = heads_of(rms_norm(x, w["norm1"]) @ w["qkv"])
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return feed_forward(x + mixed.reshape(x.shape) @ w["out"], w), None

    return lambda x: jax.lax.scan(layer, x, stack)[0]


def decoding_step(layers: int = 4) -> Callable[..., Any]:
    """One token, with a cache of keys and values that goes in and out."""
    stack = stacked_weights(layers)

    def step(x: jax.Array, keys: jax.Array, values: jax.Array, place: jax.Array) -> Any:
        new_keys, new_values = [], []
        mask = jnp.arange(CACHE) <= place
        for index in range(layers):
            w = {name: weight[index] for name, weight in stack.items()}
            q, k, v = heads_of(rms_norm(x, w["norm1"]) @ w["qkv"])
            start = (0, place, 0, 0)
            new_keys.append(jax.lax.dynamic_update_slice(keys[index], k, start))
            new_values.append(jax.lax.dynamic_update_slice(values[index], v, start))
            mixed = jax.nn.dot_product_attention(
                q, new_keys[-1], new_values[-1], mask=mask[None, None, None]
            )
            x = feed_forward(x + mixed.reshape(x.shape) @ w["out"], w)
        return x, jnp.stack(new_keys), jnp.stack(new_values)

    return step


class Recurrent(nnx.Module):
    """An LSTM and a GRU, one behind the other."""

    def __init__(self, rngs: nnx.Rngs, features: int = 64, units: int = 128):
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(features, units, rngs=rngs))
        self.gru = nnx.RNN(nnx.GRUCell(units, units, rngs=rngs))
        self.head = nnx.Linear(units, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.head(self.gru(self.lstm(x))[:, -1])


class Mamba(nnx.Module):
    """A selective state space: every step has a decay of its own, which the input chooses."""

    def __init__(self, rngs: nnx.Rngs, width: int = 256, state: int = 16):
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.select = nnx.Linear(width, 2 * state + width, rngs=rngs)
        self.decay = nnx.Param(jnp.log(jnp.tile(jnp.arange(1.0, state + 1), (width, 1))))
        self.down = nnx.Linear(width, width, rngs=rngs)
        self.state = state

    def __call__(self, x: jax.Array) -> jax.Array:
        value, gate = jnp.split(self.up(x), 2, axis=-1)
        value = nnx.silu(value)
        into, out, step = jnp.split(self.select(value), (self.state, 2 * self.state), axis=-1)
        step = nnx.softplus(step)
        decays = jnp.exp(-jnp.exp(self.decay[...]) * step[..., None])
        inputs = (step * value)[..., None] * into[:, :, None, :]

        def advance(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> Any:
            state = now[0] * state + now[1]
            return state, state

        first = jnp.zeros_like(inputs[:, 0])
        _, states = jax.lax.scan(advance, first, (decays.swapaxes(0, 1), inputs.swapaxes(0, 1)))
        read = jnp.einsum("tbds,bts->btd", states, out)
        return x + self.down(read * nnx.silu(gate))


TOKENS_INPUT = ((1, TOKENS), "int32")
CACHE_INPUT = ((4, 1, CACHE, HEADS, WIDTH // HEADS), "float32")

NETWORKS = (
    Network("decoder", of_module(Decoder), (TOKENS_INPUT,), VOCABULARY),
    Network("decoder, scanned layers", scanned_decoder, (((1, TOKENS, WIDTH), "float32"),)),
    Network(
        "decoding step",
        decoding_step,
        (((1, 1, WIDTH), "float32"), CACHE_INPUT, CACHE_INPUT, ((), "int32")),
        CACHE - 1,
    ),
    Network("encoder", of_module(Encoder), (TOKENS_INPUT, ((1,), "int32")), TOKENS),
    Network("LSTM and GRU", as_function(of_module(Recurrent)), (((1, 100, 64), "float32"),)),
    Network("Mamba", of_module(Mamba), (((1, TOKENS, 256), "float32"),)),
)
