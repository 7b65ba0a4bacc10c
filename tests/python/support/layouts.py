# SPDX-License-Identifier: Apache-2.0
"""Networks whose parts want their values in different orders: what the layout assignment is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def _draws() -> Iterator[Callable[..., jax.Array]]:
    """Weights of about unit gain, one after the other."""
    for key in jax.random.split(jax.random.key(0), 100):
        yield (
            lambda *shape, key=key: (
                jax.random.normal(key, shape) / math.sqrt(max(1, math.prod(shape[:-1])))
            )
        )


class Weights:
    """The weights of one network: each call draws another."""

    def __init__(self) -> None:
        self._draws = _draws()

    def __call__(self, *shape: int) -> jax.Array:
        return next(self._draws)(*shape)

    def pair(self, size: int) -> tuple[jax.Array, jax.Array]:
        """A scale and a shift, neither of them trivial."""
        return 1 + self(size) / 4, self(size)


def conv(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * scale + shift


def attention(x: Any, query: Any, key: Any, value: Any, out: Any, heads: int = 4) -> Any:
    """Self-attention over the last axis but one; axes before it are batch."""
    split = [(x @ w).reshape(*x.shape[:-1], heads, -1) for w in (query, key, value)]
    attend = jax.nn.dot_product_attention
    for _ in range(x.ndim - 3):
        attend = jax.vmap(attend)
    return attend(*split).reshape(x.shape) @ out


def convnext(blocks: int = 3, width: int = 32) -> Callable[..., Any]:
    """Depthwise convolutions and MLPs over the features: two conversions in each block."""
    w = Weights()
    stem, head = w(4, 4, 3, width), w(width, 10)
    layers = [
        (
            w(7, 7, 1, width),
            w(width),
            *w.pair(width),
            w(width, 4 * width),
            w(4 * width),
            w(4 * width, width),
            w(width),
        )
        for _ in range(blocks)
    ]

    def network(x: Any) -> Any:
        x = conv(x, stem, 4)
        for depthwise, bias, scale, shift, up, up_bias, down, down_bias in layers:
            y = layer_norm(conv(x, depthwise, groups=width) + bias, scale, shift)
            x = x + jax.nn.gelu(y @ up + up_bias) @ down + down_bias
        return x.mean((1, 2)) @ head

    return network


def mixer(blocks: int = 2, width: int = 32, tokens: int = 64) -> Callable[..., Any]:
    """MLPs over the tokens and over the features in turn."""
    w = Weights()
    stem = w(4, 4, 3, width)
    layers = [
        (
            (*w.pair(width), w(tokens, 128), w(128, tokens)),
            (*w.pair(width), w(width, 128), w(128, width)),
        )
        for _ in range(blocks)
    ]

    def network(x: Any) -> Any:
        x = conv(x, stem, 4).reshape(x.shape[0], tokens, width)
        for (scale, shift, up, down), (scale2, shift2, up2, down2) in layers:
            y = jnp.swapaxes(layer_norm(x, scale, shift), 1, 2)
            x = x + jnp.swapaxes(jax.nn.gelu(y @ up) @ down, 1, 2)
            x = x + jax.nn.gelu(layer_norm(x, scale2, shift2) @ up2) @ down2
        return x.mean(1)

    return network


def unet(width: int = 16) -> Callable[..., Any]:
    """Down, up by repetition, and a concatenation of features."""
    w = Weights()
    first, down, up, last = (
        w(3, 3, 3, width),
        w(3, 3, width, 2 * width),
        w(3, 3, 3 * width, width),
        w(1, 1, width, 5),
    )
    biases = w(width), w(2 * width), w(width)

    def network(x: Any) -> Any:
        skip = nnx.relu(conv(x, first) + biases[0])
        y = nnx.relu(conv(nnx.max_pool(skip, (2, 2), (2, 2)), down) + biases[1])
        y = jnp.repeat(jnp.repeat(y, 2, 1), 2, 2)
        y = nnx.relu(conv(jnp.concatenate([skip, y], -1), up) + biases[2])
        return conv(y, last)

    return network


def group_norm_residual(width: int = 32, groups: int = 4) -> Callable[..., Any]:
    """A residual block of convolutions and group normalisations."""
    w = Weights()
    kernels = w(3, 3, 3, width), w(3, 3, width, width), w(3, 3, width, width)
    affine = w.pair(width), w.pair(width)

    def group_norm(x: Any, scale: Any, shift: Any) -> Any:
        y = x.reshape(*x.shape[:3], groups, -1)
        y = y - y.mean((1, 2, 4), keepdims=True)
        y = y / jnp.sqrt(jnp.square(y).mean((1, 2, 4), keepdims=True) + 1e-5)
        return y.reshape(x.shape) * scale + shift

    def network(x: Any) -> Any:
        x = conv(x, kernels[0])
        y = conv(jax.nn.silu(group_norm(x, *affine[0])), kernels[1])
        return x + conv(jax.nn.silu(group_norm(y, *affine[1])), kernels[2])

    return network


def heads_first(blocks: int = 2, width: int = 64, heads: int = 4) -> Callable[..., Any]:
    """Attention by einsum with heads before time, everywhere."""
    w = Weights()
    size = width // heads
    layers = [
        (
            [w(heads, width, size) for _ in range(3)],
            w(heads, size, width),
            *w.pair(width),
        )
        for _ in range(blocks)
    ]

    def network(x: Any) -> Any:
        for projections, out, scale, shift in layers:
            y = layer_norm(x, scale, shift)
            q, k, v = (jnp.einsum("btc,hcd->bhtd", y, p) for p in projections)
            scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(size)
            y = jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, -1), v)
            x = x + jnp.einsum("bhtd,hdc->btc", y, out)
        return x

    return network


def axial(blocks: int = 2, width: int = 32) -> Callable[..., Any]:
    """Attention along the rows of an image, then along its columns."""
    w = Weights()
    layers = [
        [([w(width, width) for _ in range(4)], w.pair(width)) for _ in range(2)]
        for _ in range(blocks)
    ]

    def network(x: Any) -> Any:
        for block in layers:
            for projections, affine in block:
                x = x + attention(layer_norm(x, *affine), *projections)
                x = jnp.swapaxes(x, 1, 2)
        return x

    return network


def windowed(blocks: int = 2, width: int = 32, window: int = 4) -> Callable[..., Any]:
    """Attention inside the windows of an image, and an MLP over the whole of it."""
    w = Weights()
    layers = [
        (
            [w(width, width) for _ in range(4)],
            w.pair(width),
            w(width, 2 * width),
            w(2 * width, width),
        )
        for _ in range(blocks)
    ]

    def network(x: Any) -> Any:
        batch, height, breadth, _ = x.shape
        tiles = batch, height // window, window, breadth // window, window, width
        windows = batch, height // window, breadth // window, window, window, width
        for projections, affine, up, down in layers:
            y = layer_norm(x, *affine).reshape(tiles).transpose(0, 1, 3, 2, 4, 5)
            y = attention(y.reshape(-1, window * window, width), *projections)
            x = x + y.reshape(windows).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
            x = x + jax.nn.gelu(x @ up) @ down
        return x

    return network


def features_first(blocks: int = 2, width: int = 32) -> Callable[..., Any]:
    """Attention on [features, time], mapped over the last axis and delivered along the second."""
    w = Weights()
    layers = [([w(width, width) for _ in range(4)], w.pair(width)) for _ in range(blocks)]

    def network(x: Any) -> Any:
        x = x.T
        for projections, affine in layers:
            x = x + attention(layer_norm(x, *affine), *projections)
        return x.T

    return jax.vmap(network, in_axes=2, out_axes=1)


def channels_first_cnn(width: int = 16) -> Callable[..., Any]:
    """Convolutions in the order that ONNX has."""
    w = Weights()
    kernels = w(width, 3, 3, 3), w(width, width, 3, 3)

    def network(x: Any) -> Any:
        for kernel in kernels:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME"))
        return x.mean((2, 3))

    return network


def mlp_gradient() -> Callable[..., Any]:
    """The gradient of a loss for both weights, which are inputs."""

    def loss(first: Any, second: Any, x: Any) -> Any:
        return jnp.square((jnp.tanh(x @ first) @ second).sum())

    return jax.grad(loss, argnums=(0, 1))
