# SPDX-License-Identifier: Apache-2.0
"""Operations on arrays: reductions, norms, products, convolutions, movements."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from operations.operation import Array, family, integers, normal, uniform

TOKENS = (normal(197, 384),)
IMAGE = (normal(1, 32, 32, 64),)
KERNEL = normal(3, 3, 64, 64, seed=1) / np.float32(24)
WEIGHTS = normal(384, 1536, seed=1) / np.float32(20)
TABLE = normal(1000, 256)
NHWC = ("NHWC", "HWIO", "NHWC")


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def rms_norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def group_norm(x):
    grouped = x.reshape(*x.shape[:-1], 8, -1)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    deviation = lax.rsqrt(grouped.var((1, 2, 4), keepdims=True) + 1e-5)
    return ((grouped - mean) * deviation).reshape(x.shape)


def conv(strides: int = 1, groups: int = 1):
    return lambda x, w: lax.conv_general_dilated(
        x, w, (strides, strides), "SAME", dimension_numbers=NHWC, feature_group_count=groups
    )


def gradient_of_strided_conv(x, w, g):
    return jax.vjp(lambda a: conv(strides=2)(a, w), x)[1](g)[0]


def kernel_gradient(x, w, g):
    return jax.vjp(lambda a: conv()(x, a), w)[1](g)[0]


def transposed_conv(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def average_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def causal_attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def distances(x, y):
    return jnp.sum((x[:, None] - y[None]) ** 2, -1)


def resize(method: str):
    return lambda x: jax.image.resize(x, (1, 64, 64, 64), method)


def scores(q, k):
    return jnp.einsum("bhqd,bhkd->bhqk", q, k)


def queries(*shape: int) -> tuple[Array, ...]:
    return tuple(normal(*shape, seed=seed) for seed in range(3))


OPERATIONS = (
    *family(
        "reductions",
        ("sum of rows, 197x1536", lambda x: x.sum(-1), (normal(197, 1536),)),
        ("sum of columns, 197x1536", lambda x: x.sum(0), (normal(197, 1536),)),
        ("max of rows, 197x1536", lambda x: x.max(-1), (normal(197, 1536),)),
        ("mean over H, W, 1x7x7x1280", lambda x: x.mean((1, 2)), (normal(1, 7, 7, 1280),)),
        ("mean over H, W, 8x14x14x256", lambda x: x.mean((1, 2)), (normal(8, 14, 14, 256),)),
        ("mean of tokens, 1x196x384", lambda x: x.mean(1), (normal(1, 196, 384),)),
        ("sum over (1, 3), 4x56x56x64", lambda x: x.sum((1, 3)), (normal(4, 56, 56, 64),)),
        ("var over (0, 2), 8x64x32x16", lambda x: x.var((0, 2)), (normal(8, 64, 32, 16),)),
        ("var of rows, 197x384", lambda x: x.var(-1), TOKENS),
        ("L2 norm of rows, 197x384", lambda x: jnp.linalg.norm(x, axis=-1), TOKENS),
        ("logsumexp of rows, 197x384", lambda x: jax.nn.logsumexp(x, axis=-1), TOKENS),
        ("argmax of rows, 64x1000", lambda x: x.argmax(-1), (normal(64, 1000),)),
        ("prod of rows, 197x384", lambda x: x.prod(-1), TOKENS),
        ("any of rows, 197x384", lambda x: (x > 4).any(-1), TOKENS),
        ("cumsum of rows, 256x512", lambda x: x.cumsum(-1), (normal(256, 512),)),
        ("cumsum, 100000", lambda x: x.cumsum(), (normal(100000),)),
        ("cummax of rows, 64x512", lambda x: lax.cummax(x, axis=1), (normal(64, 512),)),
        ("softmax, 197x197x6", lambda x: jax.nn.softmax(x, -1), (normal(6, 197, 197),)),
        ("log_softmax, 64x1000", lambda x: jax.nn.log_softmax(x, -1), (normal(64, 1000),)),
    ),
    *family(
        "norms",
        ("layer norm, 197x384", layer_norm, TOKENS),
        ("RMS norm, 197x384", rms_norm, TOKENS),
        ("group norm, 1x32x32x64", group_norm, IMAGE),
        ("unit length, 197x384", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), TOKENS),
    ),
    *family(
        "products",
        ("matmul, 256x256x256", jnp.matmul, (normal(256, 256), normal(256, 256, seed=1))),
        ("linear, 197x384 to 1536", lambda x: x @ WEIGHTS, TOKENS),
        ("linear, 1x384 to 1536", lambda x: x @ WEIGHTS, (normal(1, 384),)),
        ("matrix and vector, 512x2048", jnp.matmul, (normal(512, 2048), normal(2048))),
        ("scores of heads, 1x6x197x64", scores, queries(1, 6, 197, 64)[:2]),
        ("outer, 512x512", jnp.outer, (normal(512), normal(512, seed=1))),
        ("kron, 16x16, 16x16", jnp.kron, (normal(16, 16), normal(16, 16, seed=1))),
        ("distances, 128x128x32", distances, (normal(128, 32), normal(128, 32, seed=1))),
        ("attention, 1x197x6x64", jax.nn.dot_product_attention, queries(1, 197, 6, 64)),
        ("causal attention, 1x256x8x64", causal_attention, queries(1, 256, 8, 64)),
    ),
    *family(
        "convolutions",
        ("conv 3x3, 1x32x32x64", conv(), (*IMAGE, KERNEL)),
        ("conv 3x3 stride 2, 1x32x32x64", conv(strides=2), (*IMAGE, KERNEL)),
        ("depthwise 3x3, 1x32x32x64", conv(groups=64), (*IMAGE, normal(3, 3, 1, 64))),
        (
            "gradient of conv 3x3 stride 2",
            gradient_of_strided_conv,
            (*IMAGE, KERNEL, normal(1, 16, 16, 64)),
        ),
        ("gradient of the kernel", kernel_gradient, (*IMAGE, KERNEL, *IMAGE)),
        ("transposed conv 3x3 stride 2", transposed_conv, (normal(1, 16, 16, 64), KERNEL)),
        ("max pool 2x2, 1x32x32x64", max_pool, IMAGE),
        ("average pool 2x2, 1x32x32x64", average_pool, IMAGE),
        ("resize nearest 2x, 1x32x32x64", resize("nearest"), IMAGE),
        ("resize linear 2x, 1x32x32x64", resize("linear"), IMAGE),
    ),
    *family(
        "movements and indexing",
        ("transpose, 8x64x256", lambda x: x.transpose(0, 2, 1), (normal(8, 64, 256),)),
        ("concatenate, 197x384", lambda x: jnp.concatenate([x, x + 1], -1), TOKENS),
        ("pad, 1x32x32x64", lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), IMAGE),
        ("roll, 197x384", lambda x: jnp.roll(x, 3, 1), TOKENS),
        ("flip, 197x384", lambda x: x[:, ::-1], TOKENS),
        ("repeat, 256x64", lambda x: jnp.repeat(x, 4, 1), (normal(256, 64),)),
        ("tril, 512x512", jnp.tril, (normal(512, 512),)),
        (
            "embedding, 1000x256",
            lambda table, i: table[i],
            (normal(1000, 256), integers(4, 64, hi=1000)),
        ),
        (
            "embedding that fills, 1000x256",
            lambda i: jnp.take(TABLE, i, axis=0),
            (integers(4, 64, hi=1000),),
        ),
        (
            "take_along_axis, 197x384",
            lambda x, i: jnp.take_along_axis(x, i, -1),
            (*TOKENS, integers(197, 16, hi=384)),
        ),
        ("one_hot, 64 of 1000", lambda i: jax.nn.one_hot(i, 1000), (integers(64, hi=1000),)),
        (
            "x.at[i].add(y), 1000x64",
            lambda x, i, y: x.at[i].add(y),
            (normal(1000, 64), integers(256, hi=1000), normal(256, 64)),
        ),
        (
            "segment_sum, 4096 to 64",
            lambda x, i: jax.ops.segment_sum(x, i, 64),
            (normal(4096, 16), integers(4096, hi=64)),
        ),
        (
            "dynamic_slice, 197x384",
            lambda x, i: lax.dynamic_slice(x, (i, 0), (16, 384)),
            (*TOKENS, np.array(7, np.int32)),
        ),
        (
            "dynamic_update_slice, 197x384",
            lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)),
            (*TOKENS, normal(16, 384), np.array(7, np.int32)),
        ),
        ("nonzero, 4096", lambda x: jnp.nonzero(x < 0.5, size=4096)[0], (uniform(4096),)),
    ),
)
