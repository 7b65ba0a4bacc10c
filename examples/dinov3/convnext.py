# SPDX-License-Identifier: Apache-2.0
"""The ConvNeXt models of DINOv3's release: features of a grid, their mean as class token."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .vit import Features


@dataclasses.dataclass(frozen=True)
class ConvNeXtConfig:
    depths: tuple[int, int, int, int]
    widths: tuple[int, int, int, int]
    channels: int = 3
    layer_scale: float = 1e-6
    eps: float = 1e-6
    patch_size: int = 32  # what one token of the last stage covers


def per_position(layer: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """A layer of features on (height, width, features)."""
    return jax.vmap(jax.vmap(layer))(x)


def channels_last(x: jax.Array) -> jax.Array:
    return jnp.moveaxis(x, 0, -1)


def channels_first(x: jax.Array) -> jax.Array:
    return jnp.moveaxis(x, -1, 0)


class ConvBlock(eqx.Module):
    dwconv: eqx.nn.Conv2d
    norm: eqx.nn.LayerNorm
    pwconv1: eqx.nn.Linear
    pwconv2: eqx.nn.Linear
    gamma: jax.Array

    def __init__(self, width: int, config: ConvNeXtConfig, *, key: jax.Array):
        keys = jax.random.split(key, 3)
        self.dwconv = eqx.nn.Conv2d(width, width, 7, padding=3, groups=width, key=keys[0])
        self.norm = eqx.nn.LayerNorm(width, eps=config.eps)
        self.pwconv1 = eqx.nn.Linear(width, 4 * width, key=keys[1])
        self.pwconv2 = eqx.nn.Linear(4 * width, width, key=keys[2])
        self.gamma = jnp.full(width, config.layer_scale)

    def __call__(self, x: jax.Array) -> jax.Array:
        def mlp(features: jax.Array) -> jax.Array:
            hidden = jax.nn.gelu(self.pwconv1(self.norm(features)), approximate=False)
            return self.gamma * self.pwconv2(hidden)

        return x + channels_first(per_position(mlp, channels_last(self.dwconv(x))))


class Downsample(eqx.Module):
    """A norm and a convolution that halves the grid; the first stage has them the other way."""

    norm: eqx.nn.LayerNorm
    conv: eqx.nn.Conv2d
    norm_first: bool = eqx.field(static=True)

    def __init__(self, from_width: int, width: int, stride: int, eps: float, *, key: jax.Array):
        self.norm_first = stride == 2
        self.norm = eqx.nn.LayerNorm(from_width if self.norm_first else width, eps=eps)
        self.conv = eqx.nn.Conv2d(from_width, width, stride, stride=stride, key=key)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.conv(self._normalized(x)) if self.norm_first else self._normalized(self.conv(x))

    def _normalized(self, x: jax.Array) -> jax.Array:
        return channels_first(per_position(self.norm, channels_last(x)))


class ConvNeXt(eqx.Module):
    downsample_layers: list[Downsample]
    stages: list[list[ConvBlock]]
    norm: eqx.nn.LayerNorm
    config: ConvNeXtConfig = eqx.field(static=True)

    def __init__(self, config: ConvNeXtConfig, *, key: jax.Array):
        c = config
        self.config = c
        keys = iter(jax.random.split(key, len(c.depths) + sum(c.depths)))
        befores, strides = (c.channels, *c.widths[:-1]), (4, 2, 2, 2)
        self.downsample_layers = [
            Downsample(before, width, stride, c.eps, key=next(keys))
            for before, width, stride in zip(befores, c.widths, strides, strict=True)
        ]
        self.stages = [
            [ConvBlock(width, c, key=next(keys)) for _ in range(depth)]
            for depth, width in zip(c.depths, c.widths, strict=True)
        ]
        self.norm = eqx.nn.LayerNorm(c.widths[-1], eps=c.eps)

    def hidden_states(self, image: jax.Array) -> list[jax.Array]:
        """The features after each stage: (features, height, width)."""
        x, states = image, []
        for downsample, stage in zip(self.downsample_layers, self.stages, strict=True):
            x = downsample(x)
            for block in stage:
                x = block(x)
            states.append(x)
        return states

    def __call__(self, image: jax.Array) -> Features:
        x = self.hidden_states(image)[-1]
        tokens = channels_last(x).reshape(-1, x.shape[0])
        tokens = jnp.concatenate([x.mean(axis=(1, 2))[None], tokens])
        tokens = jax.vmap(self.norm)(tokens)
        return Features(tokens[0], tokens[1:1], tokens[1:])
