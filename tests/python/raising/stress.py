# SPDX-License-Identifier: Apache-2.0
"""Ten graphs whose layouts disagree with each other, with an upper bound on what that may cost."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from raising.libraries import lazy
from raising.table import Row
from support.cases import f32


class Weights:
    """Random weights, scaled to keep the variance; the same ones each time."""

    def __init__(self):
        self._random = np.random.default_rng(0)

    def __call__(self, *shape):
        fan_in = max(1, int(np.prod(shape[:-1])))
        return (self._random.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)

    def many(self, *shapes):
        return [self(*shape) for shape in shapes]


def convolution(x, kernel, stride=1, groups=1):
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def layer_norm(x, scale, bias):
    middle = x - x.mean(-1, keepdims=True)
    return middle / jnp.sqrt((middle**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def self_attention(x, wq, wk, wv, wo, heads=4):
    """Attention over the last axis but one; axes before it are a batch."""
    q, k, v = ((x @ w).reshape(*x.shape[:-1], heads, -1) for w in (wq, wk, wv))
    attend = jax.nn.dot_product_attention
    for _ in range(x.ndim - 3):
        attend = jax.vmap(attend)
    return attend(q, k, v).reshape(x.shape) @ wo


def feed_forward(x, up, down):
    return jax.nn.gelu(x @ up) @ down


def convnext(blocks=3, width=32):
    """Convolutions in NHWC and a layer norm over channels between them."""
    w = Weights()
    stem, head = w.many((4, 4, 3, width), (width, 10))
    shapes = (
        (7, 7, 1, width),
        (width,),
        (width,),
        (width,),
        (width, 4 * width),
        (4 * width, width),
    )
    layers = [w.many(*shapes) for _ in range(blocks)]

    def fn(x):
        x = convolution(x, stem, 4)
        for depthwise, shift, scale, bias, up, down in layers:
            y = convolution(x, depthwise, groups=width) + shift
            x = x + feed_forward(layer_norm(y, scale, bias), up, down)
        return x.mean((1, 2)) @ head

    return fn


def mixer(blocks=2, width=32, tokens=64):
    """Dense layers over tokens and over channels in turn."""
    w = Weights()
    stem = w(4, 4, 3, width)
    shapes = ((width,), (width,), (tokens, 128), (128, tokens), (width,), (width,), (width, 128))
    layers = [[*w.many(*shapes), w(128, width)] for _ in range(blocks)]

    def fn(x):
        x = convolution(x, stem, 4).reshape(x.shape[0], tokens, width)
        for s1, b1, up1, down1, s2, b2, up2, down2 in layers:
            y = layer_norm(x, s1, b1).swapaxes(1, 2)
            x = x + feed_forward(y, up1, down1).swapaxes(1, 2)
            x = x + feed_forward(layer_norm(x, s2, b2), up2, down2)
        return x.mean(1)

    return fn


def unet(width=16):
    """One level down and up, with a skip connection."""
    w = Weights()
    first, middle, last, head = w.many(
        (3, 3, 3, width), (3, 3, width, 2 * width), (3, 3, 3 * width, width), (1, 1, width, 5)
    )
    shifts = w.many((width,), (2 * width,), (width,))

    def fn(x):
        skip = nnx.relu(convolution(x, first) + shifts[0])
        y = nnx.max_pool(skip, (2, 2), (2, 2))
        y = nnx.relu(convolution(y, middle) + shifts[1])
        y = jnp.concatenate([skip, y.repeat(2, 1).repeat(2, 2)], -1)
        return convolution(nnx.relu(convolution(y, last) + shifts[2]), head)

    return fn


def group_norms(width=32, groups=4):
    """Convolutions with group norms between them."""
    w = Weights()
    first, second, third = w.many(*[(3, 3, c, width) for c in (3, width, width)])
    affine = [w.many((width,), (width,)) for _ in range(2)]

    def group_norm(x, scale, bias):
        y = x.reshape(*x.shape[:3], groups, -1)
        middle = y - y.mean((1, 2, 4), keepdims=True)
        y = middle / jnp.sqrt((middle**2).mean((1, 2, 4), keepdims=True) + 1e-5)
        return y.reshape(x.shape) * scale + bias

    def fn(x):
        x = convolution(x, first)
        y = convolution(jax.nn.silu(group_norm(x, *affine[0])), second)
        return x + convolution(jax.nn.silu(group_norm(y, *affine[1])), third)

    return fn


def heads_first(blocks=2, width=64, heads=4):
    """Projections by einsum to (batch, heads, time, size)."""
    w = Weights()
    size = width // heads
    shapes = (*[(heads, width, size)] * 3, (heads, size, width), (width,), (width,))
    layers = [w.many(*shapes) for _ in range(blocks)]

    def fn(x):
        for wq, wk, wv, wo, scale, bias in layers:
            y = layer_norm(x, scale, bias)
            q, k, v = (jnp.einsum("btc,hcd->bhtd", y, p) for p in (wq, wk, wv))
            y = jax.nn.softmax(q @ k.mT / 4) @ v
            x = x + jnp.einsum("bhtd,hdc->btc", y, wo)
        return x

    return fn


def axial(blocks=2, width=32):
    """Attention along rows, then along columns."""
    w = Weights()
    shapes = (*[(width, width)] * 4, (width,), (width,))
    layers = [w.many(*shapes) for _ in range(2 * blocks)]

    def fn(x):
        for *projections, scale, bias in layers:
            x = x + self_attention(layer_norm(x, scale, bias), *projections)
            x = x.swapaxes(1, 2)
        return x

    return fn


def swin(blocks=2, width=32, window=4):
    """Attention inside windows of an image."""
    w = Weights()
    shapes = (*[(width, width)] * 4, (width,), (width,), (width, 64), (64, width))
    layers = [w.many(*shapes) for _ in range(blocks)]

    def fn(x):
        b, height, width, c = x.shape
        grid = (height // window, width // window)
        for *projections, scale, bias, up, down in layers:
            y = layer_norm(x, scale, bias).reshape(b, grid[0], window, grid[1], window, c)
            y = y.transpose(0, 1, 3, 2, 4, 5).reshape(-1, window * window, c)
            y = self_attention(y, *projections).reshape(b, *grid, window, window, c)
            x = x + y.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
            x = x + feed_forward(x, up, down)
        return x

    return fn


def channels_first(blocks=2, width=32):
    """Attention on (channels, time) under a vmap whose axis moves from last to second."""
    w = Weights()
    layers = [w.many(*[(width, width)] * 4, (width,), (width,)) for _ in range(blocks)]

    def one(x):
        x = x.T[None]
        for *projections, scale, bias in layers:
            x = x + self_attention(layer_norm(x, scale, bias), *projections)
        return x[0].T

    return jax.vmap(one, in_axes=2, out_axes=1)


def nchw(width=16):
    """ONNX's own layout: nothing to move."""
    w = Weights()
    first, second = w.many((width, 3, 3, 3), (width, width, 3, 3))

    def fn(x):
        x = jax.nn.relu(lax.conv(x, first, (1, 1), "SAME"))
        return jax.nn.relu(lax.conv(x, second, (1, 1), "SAME")).mean((2, 3))

    return fn


def gradient():
    """Transposed operands of the backward pass."""

    def loss(a, b, x):
        return (jnp.tanh(x @ a) @ b).sum() ** 2

    return jax.grad(loss, argnums=(0, 1))


def row(name, make, inputs, price, **at_most):
    return Row("layout", "by hand", name, lazy(make), inputs, {}, at_most=at_most, price=price)


IMAGE = [f32(2, 32, 32, 3, lo=-1, hi=1)]
SMALL = [f32(2, 16, 16, 3, lo=-1, hi=1)]
ROWS = [
    row("ConvNeXt", convnext, IMAGE, 48, Transpose=7, Reshape=0),
    row("MLP-Mixer", mixer, IMAGE, 29, Transpose=2, Reshape=1),
    row("U-Net", unet, SMALL, 19, Transpose=2, Reshape=2),
    row("group norms", group_norms, SMALL, 24, Transpose=2, Reshape=4),
    row("heads first", heads_first, [f32(2, 10, 64)], 14, Transpose=0, Reshape=0),
    row("axial attention", axial, [f32(2, 6, 8, 32)], 48, Transpose=4, Reshape=8),
    row("windowed attention", swin, [f32(2, 8, 8, 32)], 42, Transpose=2, Reshape=8),
    row("channels first", channels_first, [f32(32, 12, 3)], 20, Transpose=2, Reshape=0),
    row("NCHW", nchw, [f32(2, 3, 16, 16)], 5, Transpose=0, Reshape=0),
    row("gradient", gradient, [f32(16, 32), f32(32, 8), f32(5, 16)], 20, Transpose=1, Reshape=1),
]
