# SPDX-License-Identifier: Apache-2.0
"""Small idioms that one ONNX op says: reductions, pooling, dense layers, indexing."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

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
from support.cases import f32, i32

X = [f32(3, 7)]
IMAGE = [f32(2, 6, 6, 4)]
NCHW = [f32(2, 4, 6, 6)]
ROWS: list[Row] = []


def wave(*shape):
    """Weights without symmetry."""
    return np.sin(np.arange(1, 1 + np.prod(shape), dtype=np.float32)).reshape(shape)


def row(library, name, fn, inputs=X, moves=0, nodes=1, **ops):
    ops = {key.replace("_or_", "|"): count for key, count in ops.items()}
    return Row("idiom", library, name, fn, inputs, ops, moves, nodes, tolerance="sum")


def hand(name, fn, inputs=X, moves=0, nodes=1, **ops):
    ROWS.append(row("by hand", name, fn, inputs, moves, nodes, **ops))


# --- reductions

hand("mean", lambda x: x.mean(-1), ReduceMean=1)
hand("mean by sum / n", lambda x: jnp.sum(x, 1, keepdims=True) / 7, ReduceMean=1)
hand("mean of two axes", lambda x: x.mean((1, 2)), IMAGE, ReduceMean_or_GlobalAveragePool=1)
hand("average without weights", lambda x: jnp.average(x, axis=0), ReduceMean=1)
hand("var", lambda x: x.var(-1), nodes=4, ReduceMean_or_ReduceSumSquare=2)
hand("std", lambda x: x.std(0), nodes=5, ReduceMean_or_ReduceSumSquare=2, Sqrt=1)
hand("norm", lambda x: jnp.linalg.norm(x, axis=-1), nodes=3, ReduceL2_or_Sqrt=1)
# Another branch finds the first NaN, which is the largest of numbers to JAX.
hand("argmax", lambda x: x.argmax(-1), nodes=12, ArgMax=3)

# --- pooling


def pooled(op, library, name, fn, inputs=IMAGE, moves=2, more=0):
    ROWS.append(row(library, f"{name} [{op}]", fn, inputs, moves, 1 + moves + more, **{op: 1}))


pooled("MaxPool", "nnx", "max_pool", lambda x: nnx.max_pool(x, (2, 2), (2, 2)))
pooled("MaxPool", "nnx", "max_pool, SAME", lambda x: nnx.max_pool(x, (3, 3), (2, 2), "SAME"))
pooled("AveragePool", "nnx", "avg_pool", lambda x: nnx.avg_pool(x, (2, 2), (2, 2)))
pooled("AveragePool", "nnx", "avg_pool, SAME", lambda x: nnx.avg_pool(x, (3, 3), (2, 2), "SAME"))
pooled(
    "AveragePool",
    "nnx",
    "avg_pool, padding not counted",
    lambda x: nnx.avg_pool(x, (3, 3), (1, 1), "SAME", count_include_pad=False),
)
pooled("AveragePool", "linen", "avg_pool", lambda x: nn.avg_pool(x, (3, 3), (1, 1), "VALID"))
pooled(
    "MaxPool", "linen", "max_pool, padding", lambda x: nn.max_pool(x, (3, 3), (1, 1), ((1, 1),) * 2)
)
for dims, shape in ((1, (2, 4, 6)), (2, (2, 4, 6, 6))):
    for kind, op in (("Max", "MaxPool"), ("Avg", "AveragePool")):
        layer = getattr(eqx.nn, f"{kind}Pool{dims}d")
        pooled(
            op,
            "equinox",
            f"{kind}Pool{dims}d",
            jax.vmap(layer(2, 2)),
            [f32(*shape)],
            moves=0,
        )
pooled(
    "MaxPool",
    "by hand",
    "reduce_window max, NCHW",
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
    NCHW,
    moves=0,
)
pooled(
    "AveragePool",
    "by hand",
    "reduce_window sum / 4, NCHW",
    lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4,
    NCHW,
    moves=0,
)
pooled(
    "AveragePool",
    "by hand",
    "sum / count of ones, SAME",
    lambda x: (
        lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")
        / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")
    ),
    NCHW,
    moves=0,
)
if HAS_KERAS:
    for name, op in (("MaxPooling2D", "MaxPool"), ("AveragePooling2D", "AveragePool")):
        for padding in ("valid", "same"):
            pooled(
                op,
                "keras",
                f"{name}, {padding}",
                with_keras(
                    lambda keras, name=name, padding=padding: getattr(keras.layers, name)(
                        3, 2, padding
                    ),
                    lambda m, x: m(x),
                    (2, 6, 6, 4),
                ),
            )
    ROWS.append(
        row(
            "keras",
            "GlobalAveragePooling2D",
            with_keras(
                lambda keras: keras.layers.GlobalAveragePooling2D(), lambda m, x: m(x), (2, 6, 6, 4)
            ),
            IMAGE,
            ReduceMean_or_GlobalAveragePool=1,
        )
    )
if HAS_HAIKU:
    pooled(
        "MaxPool",
        "haiku",
        "max_pool",
        with_haiku(lambda hk, x: hk.max_pool(x, (2, 2, 1), (2, 2, 1), "VALID"), (2, 6, 6, 4)),
    )
    pooled(
        "AveragePool",
        "haiku",
        "avg_pool, SAME",
        with_haiku(lambda hk, x: hk.avg_pool(x, (3, 3, 1), (2, 2, 1), "SAME"), (2, 6, 6, 4)),
    )

# --- dense layers and convolutions

GEMM = {"Gemm": 1}
DENSE = {"MatMul": 1, "Add": 1}


def convolved(x, w, numbers=("NHWC", "HWIO", "NHWC")):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)


hand("x @ w + b, 2-D", lambda x: x @ wave(7, 5) + wave(5), **GEMM)
hand("w @ x + b of each row", jax.vmap(lambda x: wave(5, 7) @ x + wave(5)), **GEMM)
hand("x @ w + b, 3-D", lambda x: x @ wave(7, 5) + wave(5), [f32(2, 3, 7)], nodes=2, **DENSE)
hand(
    "einsum with bias",
    lambda x: jnp.einsum("btc,oc->bto", x, wave(5, 7)) + wave(5),
    [f32(2, 3, 7)],
    nodes=2,
    **DENSE,
)
hand("b - x @ w", lambda x: wave(5) - x @ wave(7, 5), nodes=2, MatMul_or_Gemm=1)
hand("a.T @ b", lambda a, b: a.T @ b, [f32(4, 3), f32(4, 5)], moves=1, nodes=2, MatMul_or_Gemm=1)
hand(
    "a @ b.T, batched",
    lambda a, b: a @ b.mT,
    [f32(2, 4, 3), f32(2, 5, 3)],
    moves=1,
    nodes=2,
    MatMul=1,
)
hand("outer product", lambda a, b: jnp.outer(a, b), [f32(4), f32(5)], moves=2, nodes=3, Mul=1)
hand(
    "inner product",
    lambda a, b: jnp.dot(a, b),
    [f32(4), f32(4)],
    moves=0,
    nodes=2,
    MatMul_or_ReduceSum=1,
)
hand(
    "convolution and bias, NHWC",
    lambda x: convolved(x, wave(3, 3, 4, 5)) + wave(5),
    IMAGE,
    moves=2,
    nodes=3,
    Conv=1,
)
hand(
    "convolution and bias, NCHW",
    lambda x: convolved(x, wave(5, 4, 3, 3), ("NCHW", "OIHW", "NCHW")) + wave(5)[:, None, None],
    NCHW,
    Conv=1,
)
ROWS += [
    row("nnx", "Linear, 2-D", with_nnx(lambda r: nnx.Linear(7, 5, rngs=r)), **GEMM),
    row(
        "nnx",
        "Linear, 3-D",
        with_nnx(lambda r: nnx.Linear(7, 5, rngs=r)),
        [f32(2, 3, 7)],
        nodes=2,
        **DENSE,
    ),
    row(
        "nnx",
        "Linear, symbolic",
        with_nnx(lambda r: nnx.Linear(7, 5, rngs=r)),
        [f32("B", 7)],
        **GEMM,
    ),
    row(
        "nnx",
        "LinearGeneral",
        with_nnx(lambda r: nnx.LinearGeneral((3, 7), (2, 5), axis=(-2, -1), rngs=r)),
        [f32(2, 3, 7)],
        moves=2,
        nodes=4,
        MatMul_or_Gemm=1,
    ),
    row(
        "nnx",
        "Einsum",
        with_nnx(lambda r: nnx.Einsum("btc,chd->bthd", (7, 2, 3), (2, 3), rngs=r)),
        [f32(2, 3, 7)],
        moves=1,
        nodes=3,
        MatMul=1,
        Add=1,
    ),
    row(
        "nnx",
        "Conv",
        with_nnx(lambda r: nnx.Conv(4, 5, (3, 3), rngs=r)),
        IMAGE,
        moves=2,
        nodes=3,
        Conv=1,
    ),
    row(
        "nnx",
        "Conv, depthwise",
        with_nnx(lambda r: nnx.Conv(4, 4, (3, 3), feature_group_count=4, rngs=r)),
        IMAGE,
        moves=2,
        nodes=3,
        Conv=1,
    ),
    row(
        "nnx",
        "ConvTranspose",
        with_nnx(lambda r: nnx.ConvTranspose(4, 5, (3, 3), (2, 2), rngs=r)),
        IMAGE,
        moves=2,
        nodes=3,
        ConvTranspose=1,
    ),
    row("linen", "Dense", with_linen(nn.Dense(5), (3, 7)), **GEMM),
    row(
        "linen",
        "Conv, strided",
        with_linen(nn.Conv(5, (3, 3), (2, 2)), (2, 6, 6, 4)),
        IMAGE,
        moves=2,
        nodes=3,
        Conv=1,
    ),
    row(
        "linen",
        "ConvTranspose",
        with_linen(nn.ConvTranspose(5, (4, 4), (2, 2)), (2, 6, 6, 4)),
        IMAGE,
        moves=2,
        nodes=3,
        ConvTranspose=1,
    ),
    row(
        "linen",
        "ConvTranspose, transposed kernel",
        with_linen(nn.ConvTranspose(5, (3, 3), (2, 2), transpose_kernel=True), (2, 6, 6, 4)),
        IMAGE,
        moves=2,
        nodes=3,
        ConvTranspose=1,
    ),
    row(
        "equinox",
        "Linear, vmap",
        with_equinox(lambda: eqx.nn.Linear(7, 5, key=KEY), over_batch(lambda m, x: m(x))),
        **GEMM,
    ),
    row(
        "equinox",
        "Conv2d, vmap",
        with_equinox(lambda: eqx.nn.Conv2d(4, 5, 3, key=KEY), over_batch(lambda m, x: m(x))),
        NCHW,
        Conv=1,
    ),
    row(
        "equinox",
        "ConvTranspose2d, vmap",
        with_equinox(
            lambda: eqx.nn.ConvTranspose2d(4, 5, 3, 2, 1, 1, key=KEY),
            over_batch(lambda m, x: m(x)),
        ),
        NCHW,
        ConvTranspose=1,
    ),
]
if HAS_KERAS:
    ROWS += [
        row(
            "keras",
            "Dense",
            with_keras(lambda keras: keras.layers.Dense(5), lambda m, x: m(x), (3, 7)),
            **GEMM,
        ),
        row(
            "keras",
            "Conv2D",
            with_keras(
                lambda keras: keras.layers.Conv2D(5, 3, padding="same"),
                lambda m, x: m(x),
                (2, 6, 6, 4),
            ),
            IMAGE,
            moves=2,
            nodes=3,
            Conv=1,
        ),
        row(
            "keras",
            "DepthwiseConv2D",
            with_keras(
                lambda keras: keras.layers.DepthwiseConv2D(3), lambda m, x: m(x), (2, 6, 6, 4)
            ),
            IMAGE,
            moves=2,
            nodes=3,
            Conv=1,
        ),
        row(
            "keras",
            "Conv2DTranspose",
            with_keras(
                lambda keras: keras.layers.Conv2DTranspose(5, 3, 2, padding="same"),
                lambda m, x: m(x),
                (2, 6, 6, 4),
            ),
            IMAGE,
            moves=2,
            nodes=3,
            ConvTranspose=1,
        ),
    ]
if HAS_HAIKU:
    ROWS += [
        row("haiku", "Linear", with_haiku(lambda hk, x: hk.Linear(5)(x), (3, 7)), **GEMM),
        row(
            "haiku",
            "Conv2D",
            with_haiku(lambda hk, x: hk.Conv2D(5, 3)(x), (2, 6, 6, 4)),
            IMAGE,
            moves=2,
            nodes=3,
            Conv=1,
        ),
        row(
            "haiku",
            "Conv2DTranspose",
            with_haiku(lambda hk, x: hk.Conv2DTranspose(5, 3, 2)(x), (2, 6, 6, 4)),
            IMAGE,
            moves=2,
            nodes=3,
            ConvTranspose=1,
        ),
    ]

# --- look-ups and indices

IDS = [i32(2, 5, lo=0, hi=9)]
hand("embedding: table[ids]", lambda i: jnp.asarray(wave(10, 4))[i], IDS, nodes=7, Gather=1)
hand(
    "embedding: take",
    lambda i: jnp.take(wave(10, 4), i, axis=0, mode="clip"),
    IDS,
    nodes=4,
    Gather=1,
)
hand("x[i]", lambda x: x[2], nodes=1, Gather_or_Slice=1)
hand("x[:, 1:5:2]", lambda x: x[:, 1:5:2], Slice=1)
hand("x[..., -1]", lambda x: x[..., -1], nodes=1, Gather=1)
hand("x[:, ids] with constants", lambda x: x[:, np.array([3, 0, 5])], Gather=1)
hand(
    "dynamic_slice",
    lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 7)),
    [*X, i32(lo=0, hi=1)],
    moves=3,
    nodes=12,
    Slice_or_Gather=1,
)
hand(
    "take_along_axis",
    lambda x, i: jnp.take_along_axis(x, i, 1),
    [*X, i32(3, 4, lo=0, hi=6)],
    nodes=10,
    GatherElements=1,
)
hand(
    "x[i, j]",
    lambda x, i, j: x[i, j],
    [*X, i32(4, lo=0, hi=2), i32(4, lo=0, hi=6)],
    moves=3,
    nodes=12,
    GatherND=1,
)
# Slice and Concat run up to 8 times as fast as a scatter in ONNX Runtime.
hand(
    "at[i].set",
    lambda x, v: x.at[1].set(v),
    [*X, f32(7)],
    moves=3,
    nodes=4,
    ScatterND_or_ScatterElements_or_Concat=1,
)
hand(
    "at[ids].add",
    lambda x, v: x.at[np.array([2, 0, 2])].add(v),
    [*X, f32(3, 7)],
    moves=0,
    nodes=1,
    ScatterND=1,
)
hand(
    "at[:, i].set",
    lambda x, v: x.at[:, 3].set(v),
    [*X, f32(3)],
    moves=3,
    nodes=4,
    ScatterND_or_ScatterElements_or_Concat=1,
)
hand(
    "one_hot",
    lambda i: jax.nn.one_hot(i, 6),
    [i32(2, 5, lo=-1, hi=7)],
    moves=1,
    nodes=4,
    OneHot_or_Equal_or_Gather=1,
)
hand(
    "arange == ids",
    lambda i: (i[:, None] == jnp.arange(6)).astype(jnp.float32),
    [i32(5, lo=0, hi=5)],
    nodes=3,
    moves=1,
    Equal_or_OneHot_or_Gather=1,
)
hand("tril", jnp.tril, [f32(5, 5)], Trilu_or_Where_or_Mul=1)
hand("triu, k=1", lambda x: jnp.triu(x, 1), [f32(2, 5, 5)], Trilu_or_Where_or_Mul=1)
hand("tril, symbolic", jnp.tril, [f32("N", "N")], Trilu=1)
hand(
    "arange of a dimension",
    lambda x: x + jnp.arange(x.shape[0], dtype=jnp.float32),
    [f32("N")],
    moves=1,
    nodes=5,
    Range=1,
    Add=1,
)
hand(
    "eye, symbolic", lambda x: x + jnp.eye(x.shape[0]), [f32("N", "N")], moves=1, nodes=4, EyeLike=1
)
ROWS += [
    row(
        "nnx",
        "Embed",
        with_nnx(lambda r: nnx.Embed(10, 4, rngs=r)),
        IDS,
        moves=1,
        nodes=10,
        Gather=1,
    ),
    row(
        "equinox",
        "Embedding",
        with_equinox(
            lambda: eqx.nn.Embedding(10, 4, key=KEY), over_batch(over_batch(lambda m, i: m(i)))
        ),
        IDS,
        nodes=7,
        Gather=1,
    ),
]
if HAS_KERAS:
    ROWS.append(
        row(
            "keras",
            "Embedding",
            with_keras(lambda keras: keras.layers.Embedding(10, 4), lambda m, i: m(i), (2, 5)),
            IDS,
            moves=1,
            nodes=10,
            Gather=1,
        )
    )
if HAS_HAIKU:
    ROWS.append(
        row(
            "haiku",
            "Embed",
            with_haiku(lambda hk, i: hk.Embed(10, 4)(i.astype(jnp.int32)), (2, 5)),
            IDS,
            nodes=7,
            Gather=1,
        )
    )

# --- order and shape


def depth_to_space(x):
    b, h, w, c = x.shape
    y = x.reshape(b, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(b, 2 * h, 2 * w, c // 4)


def space_to_depth(x):
    b, h, w, c = x.shape
    y = x.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(b, h // 2, w // 2, 4 * c)


def pixel_shuffle(x):
    b, c, h, w = x.shape
    y = x.reshape(b, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(b, c // 4, 2 * h, 2 * w)


hand("depth to space, NHWC", depth_to_space, IMAGE, moves=3, nodes=3, Transpose=1)
hand("space to depth, NHWC", space_to_depth, IMAGE, moves=3, nodes=3, Transpose=1)
hand("pixel shuffle, NCHW", pixel_shuffle, NCHW, nodes=1, DepthToSpace=1)
hand("cumsum", lambda x: jnp.cumsum(x, 1), CumSum=1)
hand("cumsum, reverse", lambda x: lax.cumsum(x, 0, reverse=True), CumSum=1)
hand("flip", lambda x: jnp.flip(x, 1), Slice=1)
hand("x[::-1]", lambda x: x[::-1], Slice=1)
hand("roll", lambda x: jnp.roll(x, 2, 1), moves=2, nodes=3, Concat=1)
hand("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3))), Pad=1)
hand(
    "concatenate and split back",
    lambda x: jnp.split(jnp.concatenate([x, x], 1), 2, 1)[0] * 2,
    Mul=1,
)
hand("transpose twice", lambda x: (x.T * 2).T, Mul=1)
hand("reshape twice", lambda x: (x.reshape(-1) + 1).reshape(x.shape), Add=1)
hand(
    "swapaxes around an activation",
    lambda x: jnp.tanh(x.swapaxes(1, 2)).swapaxes(1, 2),
    [f32(2, 3, 4)],
    Tanh=1,
)
hand("where", lambda x, y: jnp.where(x > y, x, 0.5), [f32(3, 7)] * 2, nodes=2, Where=1)
