# SPDX-License-Identifier: Apache-2.0
"""Attention as the libraries spell it."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from raising.libraries import (
    HAS_HAIKU,
    HAS_KERAS,
    KEY,
    over_batch,
    with_equinox,
    with_haiku,
    with_keras,
    with_linen,
    with_nnx,
)
from raising.table import Row
from support.cases import bf16, boolean, f32, i32

DPA = jax.nn.dot_product_attention
SELF = [f32(2, 5, 4, 8)] * 3
CROSS = [f32(2, 5, 4, 8), f32(2, 7, 4, 8), f32(2, 7, 4, 8)]
GROUPED = [f32(2, 5, 4, 8), f32(2, 5, 2, 8), f32(2, 5, 2, 8)]
SYMBOLIC = [f32("B", "T", 4, 8)] * 3
# The heads of (batch, time, heads, size) are merged before the op and split after it.
SPLIT_HEADS = 4


def row(library, name, fn, inputs, moves=0, nodes=None, **ops):
    wanted = {"Attention": 1, "Softmax": 0, "MatMul": 0, **ops}
    at_most = {"Transpose": 0} if moves <= SPLIT_HEADS else {}
    return Row("attention", library, name, fn, inputs, wanted, moves, nodes, at_most=at_most)


def layer(library, name, fn, inputs, moves=0, **ops):
    """A layer with projections, which are MatMul, Gemm or Einsum nodes."""
    wanted = {"Attention": 1, "Softmax": 0, **ops}
    return Row("attention", library, name, fn, inputs, wanted, moves)


def dpa(name, inputs, moves=SPLIT_HEADS, names=(), **arguments):
    """jax.nn.dot_product_attention with constants and with the inputs after v by their names."""

    def fn(q, k, v, *rest):
        return DPA(q, k, v, **dict(zip(names, rest, strict=True)), **arguments)

    return row("jax.nn", name, fn, inputs, moves)


JAX_NN = [
    dpa("plain", SELF),
    dpa("cross", CROSS),
    dpa("scale=", SELF, scale=0.3),
    dpa("bias=", [*CROSS, f32(2, 4, 5, 7)], names=["bias"]),
    dpa("bias= for all heads", [*CROSS, f32(1, 1, 5, 7)], names=["bias"]),
    dpa("bias= for each head", [*CROSS, f32(1, 4, 5, 7)], names=["bias"]),
    dpa("mask=", [*CROSS, boolean(2, 4, 5, 7)], names=["mask"]),
    dpa("mask= of keys", [*CROSS, boolean(2, 1, 1, 7)], names=["mask"], moves=5),
    dpa("mask= and bias=", [*CROSS, boolean(2, 1, 5, 7), f32(2, 4, 5, 7)], names=["mask", "bias"]),
    dpa("is_causal", SELF, is_causal=True),
    dpa("is_causal, more keys", CROSS, is_causal=True),
    dpa("is_causal and bias=", [*SELF, f32(1, 4, 5, 5)], names=["bias"], is_causal=True),
    dpa("is_causal and mask=", [*SELF, boolean(2, 1, 5, 5)], names=["mask"], is_causal=True),
    dpa("local_window_size=", SELF, local_window_size=2),
    dpa("local_window_size= (left, right)", SELF, local_window_size=(2, 1)),
    dpa("local_window_size= and is_causal", SELF, local_window_size=(2, 0), is_causal=True),
    dpa("query_seq_lengths=", [*SELF, i32(2, lo=1, hi=5)], names=["query_seq_lengths"], moves=8),
    dpa(
        "key_value_seq_lengths=",
        [*SELF, i32(2, lo=1, hi=5)],
        names=["key_value_seq_lengths"],
        moves=8,
    ),
    dpa(
        "both lengths, causal",
        [*SELF, i32(2, lo=1, hi=5), i32(2, lo=1, hi=5)],
        names=["query_seq_lengths", "key_value_seq_lengths"],
        moves=10,
        is_causal=True,
    ),
    dpa("grouped heads", GROUPED),
    dpa("grouped heads, causal", GROUPED, is_causal=True),
    dpa("grouped heads, mask=", [*GROUPED, boolean(2, 1, 5, 5)], names=["mask"], moves=5),
    dpa("grouped heads, bias=", [*GROUPED, f32(2, 4, 5, 5)], names=["bias"], moves=5),
    dpa("one head of keys", [f32(2, 5, 4, 8), f32(2, 5, 1, 8), f32(2, 5, 1, 8)]),
    dpa("3-D", [f32(5, 4, 8)] * 3),
    dpa("3-D, causal", [f32(5, 4, 8)] * 3, is_causal=True),
    dpa("bf16", [bf16(2, 5, 4, 8)] * 3),
    dpa("symbolic", SYMBOLIC, moves=8),
    dpa("symbolic, causal", SYMBOLIC, moves=8, is_causal=True),
    dpa("symbolic cross", [f32("B", "T", 4, 8), *[f32("B", "S", 4, 8)] * 2], moves=8),
    dpa(
        "symbolic grouped heads",
        [f32("B", "T", 4, 8), *[f32("B", "T", 2, 8)] * 2],
        moves=8,
        is_causal=True,
    ),
    dpa("one query", [f32(2, 1, 4, 8), *[f32(2, 7, 4, 8)] * 2]),
    row("jax.nn", "vmap", jax.vmap(DPA), [f32(3, 2, 5, 4, 8)] * 3, SPLIT_HEADS),
    row(
        "jax.nn",
        "vmap of the third axis",
        jax.vmap(DPA, in_axes=2, out_axes=2),
        [f32(2, 5, 3, 4, 8)] * 3,
        moves=10,
    ),
    row(
        "jax.nn",
        "vmap of vmap, causal",
        jax.vmap(jax.vmap(lambda q, k, v: DPA(q, k, v, is_causal=True))),
        [f32(2, 3, 2, 5, 4, 8)] * 3,
        SPLIT_HEADS,
    ),
    row(
        "jax.nn",
        "vmap of 3-D, grouped heads",
        jax.vmap(DPA),
        [f32(2, 5, 4, 8), *[f32(2, 5, 2, 8)] * 2],
        SPLIT_HEADS,
    ),
    row(
        "jax.nn",
        "vmap with shared keys",
        jax.vmap(DPA, in_axes=(0, None, None)),
        [f32(3, 5, 4, 8), *[f32(7, 4, 8)] * 2],
        moves=6,
    ),
    row(
        "jax.nn",
        "checkpoint",
        jax.checkpoint(lambda q, k, v: DPA(q, k, v, is_causal=True)),
        SELF,
        SPLIT_HEADS,
    ),
    row("jax.nn", "jit inside", jax.jit(jax.jit(DPA)), SELF, SPLIT_HEADS),
]


def nnx_attention(**options):
    options = {"num_heads": 4, "in_features": 16, "decode": False, **options}
    return lambda rngs: nnx.MultiHeadAttention(**options, rngs=rngs)


X = [f32(2, 5, 16)]
XY = [f32(2, 5, 16), f32(2, 7, 16)]
NNX = [
    layer("nnx", "MultiHeadAttention", with_nnx(nnx_attention()), X),
    layer("nnx", "MultiHeadAttention, cross", with_nnx(nnx_attention()), XY),
    layer("nnx", "MultiHeadAttention, symbolic", with_nnx(nnx_attention()), [f32("B", "T", 16)]),
    layer(
        "nnx",
        "MultiHeadAttention, mask",
        with_nnx(nnx_attention(), lambda m, x, keep: m(x, mask=keep)),
        [*X, boolean(2, 1, 5, 5)],
    ),
    layer(
        "nnx",
        "MultiHeadAttention, make_causal_mask",
        with_nnx(nnx_attention(), lambda m, x: m(x, mask=nnx.make_causal_mask(x[..., 0]))),
        X,
    ),
    layer(
        "nnx",
        "MultiHeadAttention, padding mask",
        with_nnx(
            nnx_attention(),
            lambda m, x, keep: m(x, mask=nnx.make_attention_mask(keep, keep)),
        ),
        [*X, boolean(2, 5)],
        moves=2,
    ),
    layer("nnx", "MultiHeadAttention, no bias", with_nnx(nnx_attention(use_bias=False)), X),
    layer(
        "nnx",
        "MultiHeadAttention, vmap",
        with_nnx(nnx_attention(), lambda m, x: jax.vmap(m)(x)),
        [f32(3, 2, 5, 16)],
        moves=2,
    ),
    layer(
        "nnx",
        "MultiHeadAttention, one sequence",
        with_nnx(nnx_attention()),
        [f32(5, 16)],
        moves=2,
    ),
    layer(
        "nnx",
        "MultiHeadAttention, normalize_qk",
        with_nnx(nnx_attention(normalize_qk=True)),
        X,
        moves=4,
        LayerNormalization=2,
    ),
    row("nnx", "dot_product_attention", nnx.dot_product_attention, SELF, SPLIT_HEADS),
    row(
        "nnx",
        "dot_product_attention, bias",
        lambda q, k, v, b: nnx.dot_product_attention(q, k, v, bias=b),
        [*SELF, f32(2, 4, 5, 5)],
        SPLIT_HEADS,
    ),
    row(
        "nnx",
        "dot_product_attention, two batch axes",
        nnx.dot_product_attention,
        [f32(2, 3, 5, 4, 8)] * 3,
        SPLIT_HEADS,
    ),
]

LINEN_X = (2, 5, 16)
LINEN = [
    layer(
        "linen",
        "MultiHeadDotProductAttention",
        with_linen(nn.MultiHeadDotProductAttention(4, deterministic=True), LINEN_X),
        X,
    ),
    layer(
        "linen",
        "MultiHeadDotProductAttention, cross",
        with_linen(nn.MultiHeadDotProductAttention(4, deterministic=True), LINEN_X, (2, 7, 16)),
        XY,
    ),
    layer(
        "linen",
        "MultiHeadDotProductAttention, causal",
        with_linen(
            nn.MultiHeadDotProductAttention(4, deterministic=True),
            LINEN_X,
            mask=nn.make_causal_mask(jnp.ones((2, 5))),
        ),
        X,
    ),
    layer(
        "linen",
        "MultiHeadDotProductAttention, f32 softmax in bf16",
        with_linen(
            nn.MultiHeadDotProductAttention(
                4, deterministic=True, dtype=jnp.bfloat16, force_fp32_for_softmax=True
            ),
            LINEN_X,
        ),
        X,
    ),
    layer(
        "linen", "SelfAttention", with_linen(nn.SelfAttention(4, deterministic=True), LINEN_X), X
    ),
    row("linen", "dot_product_attention", nn.dot_product_attention, SELF, SPLIT_HEADS),
]


def equinox_attention(**options):
    options = {"num_heads": 4, "query_size": 16, **options}
    return lambda: eqx.nn.MultiheadAttention(**options, key=KEY)


BIASES = {f"use_{name}_bias": True for name in ("query", "key", "value", "output")}
EQUINOX = [
    layer(
        "equinox",
        "MultiheadAttention",
        with_equinox(equinox_attention(), lambda m, x: m(x, x, x)),
        [f32(5, 16)],
        moves=2,
    ),
    layer(
        "equinox",
        "MultiheadAttention, vmap",
        with_equinox(equinox_attention(), over_batch(lambda m, x: m(x, x, x))),
        X,
    ),
    layer(
        "equinox",
        "MultiheadAttention, vmap of vmap",
        with_equinox(
            equinox_attention(),
            over_batch(over_batch(lambda m, x: m(x, x, x))),
        ),
        [f32(3, 2, 5, 16)],
        moves=2,
    ),
    layer(
        "equinox",
        "MultiheadAttention, biases",
        with_equinox(equinox_attention(**BIASES), over_batch(lambda m, x: m(x, x, x))),
        X,
    ),
    layer(
        "equinox",
        "MultiheadAttention, mask",
        with_equinox(equinox_attention(), lambda m, x, keep: m(x, x, x, mask=keep)),
        [f32(5, 16), boolean(5, 5)],
        moves=2,
    ),
    layer(
        "equinox",
        "MultiheadAttention, mask of each head",
        with_equinox(equinox_attention(), lambda m, x, keep: m(x, x, x, mask=keep)),
        [f32(5, 16), boolean(4, 5, 5)],
        moves=3,
    ),
    layer(
        "equinox",
        "MultiheadAttention, causal",
        with_equinox(
            equinox_attention(),
            over_batch(lambda m, x: m(x, x, x, mask=jnp.tril(jnp.ones((5, 5), bool)))),
        ),
        X,
    ),
    layer(
        "equinox",
        "MultiheadAttention, cross",
        with_equinox(
            equinox_attention(key_size=12, value_size=10, qk_size=6, vo_size=7),
            over_batch(lambda m, x, y, z: m(x, y, z)),
        ),
        [f32(2, 5, 16), f32(2, 7, 12), f32(2, 7, 10)],
    ),
    layer(
        "equinox",
        "MultiheadAttention, symbolic",
        with_equinox(equinox_attention(), over_batch(lambda m, x: m(x, x, x))),
        [f32("B", "T", 16)],
    ),
]


def keras_mha(**options):
    return lambda keras: keras.layers.MultiHeadAttention(4, 8, **options)


def keras_gqa(**options):
    return lambda keras: keras.layers.GroupQueryAttention(8, 4, 2, **options)


KERAS = [
    layer(
        "keras",
        "MultiHeadAttention",
        with_keras(keras_mha(), lambda m, x: m(x, x), LINEN_X),
        X,
    ),
    layer(
        "keras",
        "MultiHeadAttention, cross",
        with_keras(keras_mha(), lambda m, x, y: m(x, y), LINEN_X, (2, 7, 16)),
        XY,
    ),
    layer(
        "keras",
        "MultiHeadAttention, use_causal_mask",
        with_keras(keras_mha(), lambda m, x: m(x, x, use_causal_mask=True), LINEN_X),
        X,
    ),
    layer(
        "keras",
        "MultiHeadAttention, attention_mask",
        with_keras(
            keras_mha(), lambda m, x, keep: m(x, x, attention_mask=keep), LINEN_X, (2, 5, 5)
        ),
        [*X, boolean(2, 5, 5)],
        moves=1,
    ),
    layer(
        "keras",
        "MultiHeadAttention, flash_attention=False",
        with_keras(keras_mha(flash_attention=False), lambda m, x: m(x, x), LINEN_X),
        X,
    ),
    layer(
        "keras",
        "GroupQueryAttention",
        with_keras(keras_gqa(), lambda m, x: m(x, x), LINEN_X),
        X,
    ),
    layer(
        "keras",
        "GroupQueryAttention, use_causal_mask",
        with_keras(keras_gqa(), lambda m, x: m(x, x, use_causal_mask=True), LINEN_X),
        X,
    ),
    row(
        "keras",
        "Attention",
        with_keras(
            lambda keras: keras.layers.Attention(), lambda m, q, v: m([q, v]), (2, 5, 8), (2, 7, 8)
        ),
        [f32(2, 5, 8), f32(2, 7, 8)],
    ),
    row(
        "keras",
        "Attention, use_causal_mask",
        with_keras(
            lambda keras: keras.layers.Attention(use_scale=True),
            lambda m, q: m([q, q], use_causal_mask=True),
            (2, 5, 8),
        ),
        [f32(2, 5, 8)],
    ),
    row(
        "keras",
        "Attention, mask",
        with_keras(
            lambda keras: keras.layers.Attention(),
            lambda m, q, v, keep: m([q, v], mask=[None, keep]),
            (2, 5, 8),
            (2, 7, 8),
            (2, 7),
        ),
        [f32(2, 5, 8), f32(2, 7, 8), boolean(2, 7)],
        moves=2,
    ),
    layer(
        "keras",
        "MultiHeadAttention, two axes",
        with_keras(keras_mha(attention_axes=(1, 2)), lambda m, x: m(x, x), (2, 3, 4, 16)),
        [f32(2, 3, 4, 16)],
        moves=2,
    ),
    row(
        "keras",
        "ops.dot_product_attention",
        with_keras(lambda keras: keras.ops.nn.dot_product_attention, lambda f, *qkv: f(*qkv)),
        SELF,
        SPLIT_HEADS,
    ),
]


def haiku_attention(hk, *inputs, **arguments):
    return hk.MultiHeadAttention(4, 8, w_init=jnp.ones, model_size=16)(*inputs, **arguments)


HAIKU = [
    layer(
        "haiku",
        "MultiHeadAttention",
        with_haiku(lambda hk, x: haiku_attention(hk, x, x, x), LINEN_X),
        X,
    ),
    layer(
        "haiku",
        "MultiHeadAttention, cross",
        with_haiku(lambda hk, x, y: haiku_attention(hk, x, y, y), LINEN_X, (2, 7, 16)),
        XY,
    ),
    layer(
        "haiku",
        "MultiHeadAttention, causal mask",
        with_haiku(
            lambda hk, x: haiku_attention(hk, x, x, x, mask=jnp.tril(jnp.ones((1, 1, 5, 5)))),
            LINEN_X,
        ),
        X,
    ),
    layer(
        "haiku",
        "MultiHeadAttention, vmap of one sequence",
        with_haiku(
            lambda hk, x: hk.vmap(lambda y: haiku_attention(hk, y, y, y), split_rng=False)(x),
            LINEN_X,
        ),
        X,
    ),
]

ROWS = [
    *JAX_NN,
    *NNX,
    *LINEN,
    *EQUINOX,
    *(KERAS if HAS_KERAS else []),
    *(HAIKU if HAS_HAIKU else []),
]
