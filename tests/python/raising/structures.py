# SPDX-License-Identifier: Apache-2.0
"""Whole networks and blocks: how many nodes, and how few of them move data."""

from __future__ import annotations

import math

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from raising.libraries import (
    HAS_EQUIMO,
    HAS_KERAS,
    KEY,
    filled,
    lazy,
    over_batch,
    with_equinox,
    with_keras,
    with_linen,
    with_nnx,
)
from raising.stress import Weights
from raising.table import Row
from support.cases import f32, i32
from support.models import NnxBlock, module_list

WIDTH, HEADS = 24, 3
TOKENS = [f32(2, 5, WIDTH)]
BLOCK = {"Attention": 1, "LayerNormalization": 2, "Gelu": 1, "Softmax": 0}


class VisionTransformer(nnx.Module):
    """ViT-B's structure: 12 blocks of 12 heads, a mean at the end."""

    def __init__(self, rngs):
        self.patch = nnx.Conv(3, 48, (8, 8), (8, 8), rngs=rngs)
        self.position = nnx.Param(jax.random.normal(rngs.params(), (1, 16, 48)))
        self.blocks = module_list([NnxBlock(48, 12, rngs) for _ in range(12)])
        self.norm = nnx.LayerNorm(48, rngs=rngs)
        self.head = nnx.Linear(48, 10, rngs=rngs)

    def __call__(self, x):
        x = self.patch(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.position[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(HEADS, deterministic=True)(y)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))


class EquinoxBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norms: list
    mlp: eqx.nn.MLP

    def __init__(self):
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=KEY)
        self.norms = [eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)]
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, 1, jax.nn.gelu, key=KEY)

    def __call__(self, x):
        y = jax.vmap(self.norms[0])(x)
        x = x + self.attention(y, y, y)
        return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))


def keras_layers(keras):
    layers = keras.layers
    return [
        layers.LayerNormalization(),
        layers.MultiHeadAttention(HEADS, WIDTH // HEADS),
        layers.LayerNormalization(),
        layers.Dense(4 * WIDTH, activation="gelu"),
        layers.Dense(WIDTH),
    ]


def keras_block(parts, x):
    norm_1, attention, norm_2, up, down = parts
    y = norm_1(x)
    x = x + attention(y, y)
    return x + down(up(norm_2(x)))


class Bottleneck(nnx.Module):
    def __init__(self, features, width, stride, rngs):
        def layer(inputs, outputs, size, step):
            convolution = nnx.Conv(
                inputs, outputs, (size, size), (step, step), use_bias=False, rngs=rngs
            )
            return module_list(
                [convolution, nnx.BatchNorm(outputs, use_running_average=True, rngs=rngs)]
            )

        self.layers = module_list(
            [
                layer(features, width, 1, 1),
                layer(width, width, 3, stride),
                layer(width, 4 * width, 1, 1),
            ]
        )
        is_same = stride == 1 and features == 4 * width
        self.skip = None if is_same else layer(features, 4 * width, 1, stride)

    def __call__(self, x):
        y = x
        for i, (convolution, norm) in enumerate(self.layers):
            y = norm(convolution(y))
            y = nnx.relu(y) if i < 2 else y
        if self.skip is not None:
            x = self.skip[1](self.skip[0](x))
        return nnx.relu(x + y)


class ResNet50(nnx.Module):
    """ResNet-50's structure, narrower."""

    def __init__(self, rngs, width=8):
        self.stem = nnx.Conv(3, width, (7, 7), (2, 2), use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(width, use_running_average=True, rngs=rngs)
        blocks, features = [], width
        for stage, depth in enumerate((3, 4, 6, 3)):
            for i in range(depth):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Bottleneck(features, width * 2**stage, stride, rngs))
                features = 4 * width * 2**stage
        self.blocks = module_list(blocks)
        self.head = nnx.Linear(features, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.stem(x)))
        x = nnx.max_pool(x, (3, 3), (2, 2), "SAME")
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


def decoder(blocks=2, width=64, heads=8, groups=2, words=50):
    """Rotary embeddings, grouped heads, RMS norms and a gated feed-forward layer."""
    w = Weights()
    size = width // heads
    shapes = (
        (width, heads, size), (width, groups, size), (width, groups, size), (heads, size, width),
        (width,), (width,), (width, 4 * width), (width, 4 * width), (4 * width, width),
    )  # fmt: skip
    layers = [w.many(*shapes) for _ in range(blocks)]
    table, head = w(words, width), w(width, words)

    def rms_norm(x, scale):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    def rotary(x):
        angle = jnp.arange(x.shape[1])[:, None] / 1e4 ** (jnp.arange(size // 2) * 2 / size)
        cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
        lo, hi = jnp.split(x, 2, -1)
        return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)

    def attention(x, wq, wk, wv, wo):
        q, k, v = (jnp.einsum("btc,chd->bthd", x, p) for p in (wq, wk, wv))
        q = rotary(q).reshape(*q.shape[:2], groups, -1, size)
        scores = jnp.einsum("btkgd,bskd->bkgts", q, rotary(k)) / math.sqrt(size)
        scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -1e30)
        y = jnp.einsum("bkgts,bskd->btkgd", jax.nn.softmax(scores), v)
        return jnp.einsum("bthd,hdc->btc", y.reshape(*x.shape[:2], heads, size), wo)

    def fn(ids):
        x = jnp.take(table, ids, axis=0, mode="clip")
        for *projections, norm_1, norm_2, gate, up, down in layers:
            x = x + attention(rms_norm(x, norm_1), *projections)
            y = rms_norm(x, norm_2)
            x = x + (jax.nn.silu(y @ gate) * (y @ up)) @ down
        return x @ head

    return fn


def dinov3():
    """Equimo's DINOv3 with two blocks; its features come without the last norm."""
    import equimo.models

    model = equimo.models.dinov3_vits16_pretrain_lvd1689m(pretrained=False, depths=[2])
    arrays, rest = eqx.partition(eqx.nn.inference_mode(model, True), eqx.is_inexact_array)
    model = eqx.combine(filled(arrays), rest)
    key = jax.random.key(0)
    return lambda x: model.features(x, key=key, inference=True)


def row(library, name, fn, inputs, ops, moves, nodes=None, **at_most):
    return Row("model", library, name, fn, inputs, ops, moves, nodes, at_most=at_most)


DECODER = {"Attention": 2, "RotaryEmbedding": 4, "RMSNormalization": 4, "Gather": 1}
ROWS = [
    row(
        "nnx",
        "12-layer ViT",
        with_nnx(VisionTransformer),
        [f32(2, 32, 32, 3)],
        {"Attention": 12, "LayerNormalization": 25, "Gelu": 12},
        moves=53,  # of these 51 Reshapes around rows, in place of 72 Adds
        nodes=230,
    ),
    row("nnx", "ViT block", with_nnx(lambda r: NnxBlock(WIDTH, HEADS, r)), TOKENS, BLOCK, moves=5),
    row("linen", "ViT block", with_linen(LinenBlock(), (2, 5, WIDTH)), TOKENS, BLOCK, moves=5),
    row(
        "equinox",
        "ViT block, vmap",
        with_equinox(EquinoxBlock, over_batch(lambda m, x: m(x))),
        TOKENS,
        BLOCK,
        moves=5,
    ),
    row(
        "nnx",
        "ResNet-50, NHWC",
        with_nnx(ResNet50),
        [f32(1, 64, 64, 3)],
        {"Conv": 53, "Relu": 49, "Add": 16, "Mul": 0, "Transpose": 1},
        moves=1,
    ),
    row("by hand", "decoder", lazy(decoder), [i32(2, 6, lo=0, hi=49)], DECODER, moves=0),
    row("by hand", "decoder, symbolic", lazy(decoder), [i32("B", "T", lo=0, hi=49)], DECODER, 12),
]
if HAS_KERAS:
    ROWS.append(
        row(
            "keras",
            "ViT block",
            with_keras(keras_layers, keras_block, (2, 5, WIDTH)),
            TOKENS,
            BLOCK,
            moves=5,
        )
    )
if HAS_EQUIMO:
    OPS = {"Attention": 2, "RotaryEmbedding": 4, "LayerNormalization": 4, "Gelu": 2}
    ROWS.append(row("equimo", "DINOv3, 2 blocks", lazy(dinov3), [f32(3, 64, 64)], OPS, moves=9))
