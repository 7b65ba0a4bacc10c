# SPDX-License-Identifier: Apache-2.0
"""The parts of DINOv3's vision transformer: for one image, `jax.vmap` gives them a batch."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

Normalize = Literal["min", "max", "separate"]
Bias = tuple[bool, bool, bool]


class PatchEmbed(eqx.Module):
    """An image as a grid of tokens: a convolution whose stride is its kernel."""

    proj: eqx.nn.Conv2d

    def __init__(self, channels: int, width: int, patch_size: int, *, key: jax.Array):
        self.proj = eqx.nn.Conv2d(channels, width, patch_size, stride=patch_size, key=key)

    def __call__(self, image: jax.Array) -> jax.Array:
        return jnp.moveaxis(self.proj(image), 0, -1)  # height, width, features


def rotary_periods(head_size: int, base: float, dtype: jnp.dtype = jnp.float32) -> jax.Array:
    exponents = 2 * jnp.arange(head_size // 4, dtype=dtype) / (head_size // 2)
    return (base**exponents).astype(dtype)


class RotaryEmbedding(eqx.Module):
    """Angles for each patch: its height in the first half of the pairs, its width in the second.

    Coordinates run from -1 to 1 over the image, so that the angles do not depend on its size.
    """

    periods: jax.Array
    normalize: Normalize = eqx.field(static=True)

    def __init__(
        self,
        head_size: int,
        base: float = 100.0,
        normalize: Normalize = "separate",
        dtype: jnp.dtype = jnp.float32,
    ):
        self.periods = rotary_periods(head_size, base, dtype)
        self.normalize = normalize

    def __call__(self, height: int, width: int) -> tuple[jax.Array, jax.Array]:
        """The sines and cosines of all patches: (height * width, head size) each."""
        dtype = self.periods.dtype
        spans = {
            "max": (jnp.maximum(height, width),) * 2,
            "min": (jnp.minimum(height, width),) * 2,
            "separate": (height, width),
        }[self.normalize]
        centers = [
            (jnp.arange(size, dtype=dtype) + 0.5) / span
            for size, span in zip((height, width), spans, strict=True)
        ]
        grid = jnp.stack(jnp.meshgrid(*centers, indexing="ij"), axis=-1)
        coordinates = 2 * grid.reshape(height * width, 2) - 1
        periods = jax.lax.stop_gradient(self.periods)
        angles = 2 * jnp.pi * coordinates[:, :, None] / periods
        angles = jnp.tile(angles.reshape(height * width, -1), 2)
        return jnp.sin(angles), jnp.cos(angles)


def rotate_half(x: jax.Array) -> jax.Array:
    low, high = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([-high, low], axis=-1)


def rotate_patches(x: jax.Array, sin: jax.Array, cos: jax.Array) -> jax.Array:
    """Rotates the last tokens, those of patches; class and register tokens stay as they are."""
    prefix = x.shape[-2] - sin.shape[-2]
    patches = x[..., prefix:, :]
    rotated = patches * cos + rotate_half(patches) * sin
    return jnp.concatenate([x[..., :prefix, :], rotated], axis=-2)


class JointLinear(eqx.Module):
    """Queries, keys and values from one product; each of the three may have a bias or none."""

    weight: jax.Array
    biases: tuple[jax.Array | None, jax.Array | None, jax.Array | None]

    def __init__(self, width: int, bias: Bias, *, key: jax.Array):
        bound = width**-0.5
        keys = iter(jax.random.split(key, 1 + sum(bias)))
        self.weight = jax.random.uniform(
            next(keys), (3 * width, width), minval=-bound, maxval=bound
        )
        self.biases = tuple(
            jax.random.uniform(next(keys), (width,), minval=-bound, maxval=bound) if one else None
            for one in bias
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        y = self.weight @ x
        if all(one is None for one in self.biases):
            return y
        zeros = jnp.zeros(self.weight.shape[1], self.weight.dtype)
        return y + jnp.concatenate([zeros if one is None else one for one in self.biases])


class Attention(eqx.Module):
    qkv: JointLinear
    proj: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(
        self, width: int, heads: int, bias: Bias, proj_bias: bool = True, *, key: jax.Array
    ):
        key_qkv, key_proj = jax.random.split(key)
        self.qkv = JointLinear(width, bias, key=key_qkv)
        self.proj = eqx.nn.Linear(width, width, use_bias=proj_bias, key=key_proj)
        self.heads = heads

    def __call__(self, x: jax.Array, rope: tuple[jax.Array, jax.Array] | None) -> jax.Array:
        tokens, width = x.shape
        qkv = jax.vmap(self.qkv)(x).reshape(tokens, 3, self.heads, width // self.heads)
        q, k, v = jnp.moveaxis(qkv, 0, 2)  # each: heads, tokens, head size
        if rope is not None:
            q, k = rotate_patches(q, *rope), rotate_patches(k, *rope)
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / jnp.sqrt(q.shape[-1]).astype(x.dtype)
        y = jnp.einsum("hqk,hkd->qhd", jax.nn.softmax(scores, axis=-1), v)
        return jax.vmap(self.proj)(y.reshape(tokens, width))


class LayerScale(eqx.Module):
    gamma: jax.Array

    def __init__(self, width: int, value: float):
        self.gamma = jnp.full(width, value)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x * self.gamma


class Mlp(eqx.Module):
    fc1: eqx.nn.Linear
    fc2: eqx.nn.Linear

    def __init__(self, width: int, hidden: int, bias: bool = True, *, key: jax.Array):
        key_1, key_2 = jax.random.split(key)
        self.fc1 = eqx.nn.Linear(width, hidden, use_bias=bias, key=key_1)
        self.fc2 = eqx.nn.Linear(hidden, width, use_bias=bias, key=key_2)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.fc2(jax.nn.gelu(self.fc1(x), approximate=False))


class SwiGlu(eqx.Module):
    w1: eqx.nn.Linear
    w2: eqx.nn.Linear
    w3: eqx.nn.Linear

    def __init__(
        self, width: int, hidden: int, bias: bool = True, align: int = 8, *, key: jax.Array
    ):
        two_thirds = int(hidden * 2 / 3)
        inner = two_thirds + -two_thirds % align
        key_1, key_2, key_3 = jax.random.split(key, 3)
        self.w1 = eqx.nn.Linear(width, inner, use_bias=bias, key=key_1)
        self.w2 = eqx.nn.Linear(width, inner, use_bias=bias, key=key_2)
        self.w3 = eqx.nn.Linear(inner, width, use_bias=bias, key=key_3)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.w3(jax.nn.silu(self.w1(x)) * self.w2(x))


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    attn: Attention
    ls1: LayerScale | None
    norm2: eqx.nn.LayerNorm
    mlp: Mlp | SwiGlu
    ls2: LayerScale | None

    def __init__(
        self,
        width: int,
        attention: Attention,
        mlp: Mlp | SwiGlu,
        layer_scale: float | None,
        eps: float,
    ):
        self.norm1 = eqx.nn.LayerNorm(width, eps=eps)
        self.attn = attention
        self.ls1 = None if layer_scale is None else LayerScale(width, layer_scale)
        self.norm2 = eqx.nn.LayerNorm(width, eps=eps)
        self.mlp = mlp
        self.ls2 = None if layer_scale is None else LayerScale(width, layer_scale)

    def __call__(self, x: jax.Array, rope: tuple[jax.Array, jax.Array] | None) -> jax.Array:
        x = x + _scaled(self.ls1, self.attn(jax.vmap(self.norm1)(x), rope))
        return x + _scaled(self.ls2, jax.vmap(self.mlp)(jax.vmap(self.norm2)(x)))


def _scaled(scale: LayerScale | None, x: jax.Array) -> jax.Array:
    return x if scale is None else jax.vmap(scale)(x)


def join_tokens(prefix: Sequence[jax.Array | None], patches: jax.Array) -> jax.Array:
    """Class and register tokens in front of those of the patches."""
    return jnp.concatenate([*(one for one in prefix if one is not None), patches])
