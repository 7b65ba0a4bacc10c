# SPDX-License-Identifier: Apache-2.0
"""Normalisation layers of each library and by hand."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
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
from support.cases import bf16, f32

X = [f32(2, 5, 8)]
IMAGE = [f32(2, 6, 6, 8)]  # batch, height, width, channels
CHANNELS_FIRST = [f32(2, 8, 6, 6)]
SCALE = np.linspace(0.5, 1.5, 8, dtype=np.float32)
BIAS = np.linspace(-0.5, 0.7, 8, dtype=np.float32)
ROWS: list[Row] = []


# What stands for a macro op that has no kernel, or a slow one, in a runtime: the ops, how many more
# nodes, and how many of these move data.
FORMS = {
    "GroupNormalization": ("GroupNormalization|InstanceNormalization", 4, 2),
    "LpNormalization": ("LpNormalization|RMSNormalization|Div", 3, 0),
}


def row(op, library, name, fn, inputs, moves=0, nodes=1):
    ops, more, moved = FORMS.get(op, (op, 0, 0))
    return Row("norm", library, f"{name} [{op}]", fn, inputs, {ops: 1}, moves + moved, nodes + more)


def layer(library, name, fn, inputs=X, moves=0, nodes=1):
    return row("LayerNormalization", library, name, fn, inputs, moves, nodes)


def rms(library, name, fn, inputs=X, moves=0, nodes=1):
    return row("RMSNormalization", library, name, fn, inputs, moves, nodes)


# InstanceNormalization of symbolic images stands in an If: ONNX Runtime dies of one without pixels.
GUARD = 6


def grouped(library, name, fn, inputs=IMAGE, moves=2, guard=0):
    return row("GroupNormalization", library, name, fn, inputs, moves, moves + 1 + guard)


def instance(library, name, fn, inputs=IMAGE, moves=2):
    return row("InstanceNormalization", library, name, fn, inputs, moves, moves + 1)


# --- Flax NNX

ROWS += [
    layer("nnx", "LayerNorm", with_nnx(lambda r: nnx.LayerNorm(8, rngs=r))),
    layer(
        "nnx",
        "LayerNorm, two passes",
        with_nnx(lambda r: nnx.LayerNorm(8, use_fast_variance=False, rngs=r)),
    ),
    layer(
        "nnx", "LayerNorm, no bias", with_nnx(lambda r: nnx.LayerNorm(8, use_bias=False, rngs=r))
    ),
    layer(
        "nnx", "LayerNorm, no scale", with_nnx(lambda r: nnx.LayerNorm(8, use_scale=False, rngs=r))
    ),
    layer(
        "nnx",
        "LayerNorm, neither",
        with_nnx(lambda r: nnx.LayerNorm(8, use_bias=False, use_scale=False, rngs=r)),
    ),
    layer(
        "nnx",
        "LayerNorm, two axes",
        with_nnx(lambda r: nnx.LayerNorm(8, reduction_axes=(-2, -1), feature_axes=-1, rngs=r)),
        nodes=3,
    ),
    layer(
        "nnx",
        "LayerNorm, bf16",
        with_nnx(lambda r: nnx.LayerNorm(8, dtype=jnp.bfloat16, rngs=r)),
        [bf16(2, 5, 8)],
        nodes=3,
    ),
    layer(
        "nnx",
        "LayerNorm, symbolic",
        with_nnx(lambda r: nnx.LayerNorm(8, rngs=r)),
        [f32("B", "T", 8)],
    ),
    layer(
        "nnx",
        "LayerNorm, vmap",
        with_nnx(lambda r: nnx.LayerNorm(8, rngs=r), lambda m, x: jax.vmap(m, 1, 1)(x)),
    ),
    rms("nnx", "RMSNorm", with_nnx(lambda r: nnx.RMSNorm(8, rngs=r))),
    rms("nnx", "RMSNorm, no scale", with_nnx(lambda r: nnx.RMSNorm(8, use_scale=False, rngs=r))),
    grouped("nnx", "GroupNorm", with_nnx(lambda r: nnx.GroupNorm(8, num_groups=4, rngs=r))),
    grouped(
        "nnx",
        "GroupNorm, symbolic image",
        with_nnx(lambda r: nnx.GroupNorm(8, 4, use_fast_variance=False, rngs=r)),
        [f32("B", "H", "W", 8)],
        moves=7,
        guard=GUARD,
    ),
    grouped(
        "nnx",
        "GroupNorm, two passes",
        with_nnx(lambda r: nnx.GroupNorm(8, num_groups=2, use_fast_variance=False, rngs=r)),
    ),
]
if hasattr(nnx, "InstanceNorm"):  # Flax 0.12
    ROWS.append(instance("nnx", "InstanceNorm", with_nnx(lambda r: nnx.InstanceNorm(8, rngs=r))))

# --- Flax Linen

ROWS += [
    layer("linen", "LayerNorm", with_linen(nn.LayerNorm(), (2, 5, 8))),
    layer(
        "linen",
        "LayerNorm, two passes",
        with_linen(nn.LayerNorm(use_fast_variance=False), (2, 5, 8)),
    ),
    layer(
        "linen",
        "LayerNorm, bf16",
        with_linen(nn.LayerNorm(dtype=jnp.bfloat16), (2, 5, 8)),
        [bf16(2, 5, 8)],
        nodes=3,
    ),
    layer(
        "linen",
        "LayerNorm, three axes",
        with_linen(
            nn.LayerNorm(reduction_axes=(-3, -2, -1), feature_axes=(-3, -2, -1)), (2, 6, 6, 8)
        ),
        IMAGE,
    ),
    rms("linen", "RMSNorm", with_linen(nn.RMSNorm(), (2, 5, 8))),
    grouped("linen", "GroupNorm", with_linen(nn.GroupNorm(4), (2, 6, 6, 8))),
    grouped("linen", "GroupNorm, group_size", with_linen(nn.GroupNorm(None, 2), (2, 6, 6, 8))),
    instance("linen", "InstanceNorm", with_linen(nn.InstanceNorm(), (2, 6, 6, 8))),
]

# --- Equinox

ROWS += [
    layer("equinox", "LayerNorm", with_equinox(lambda: eqx.nn.LayerNorm(8)), [f32(8)]),
    layer(
        "equinox",
        "LayerNorm, vmap of vmap",
        with_equinox(lambda: eqx.nn.LayerNorm(8), over_batch(over_batch(lambda m, x: m(x)))),
    ),
    layer(
        "equinox",
        "LayerNorm, two axes",
        with_equinox(lambda: eqx.nn.LayerNorm((5, 8)), over_batch(lambda m, x: m(x))),
    ),
    layer(
        "equinox",
        "LayerNorm, no affine",
        with_equinox(
            lambda: eqx.nn.LayerNorm(8, use_weight=False, use_bias=False),
            over_batch(over_batch(lambda m, x: m(x))),
        ),
    ),
    rms(
        "equinox",
        "RMSNorm, no bias",
        with_equinox(
            lambda: eqx.nn.RMSNorm(8, use_bias=False), over_batch(over_batch(lambda m, x: m(x)))
        ),
    ),
    rms(
        "equinox",
        "RMSNorm",
        with_equinox(lambda: eqx.nn.RMSNorm(8), over_batch(over_batch(lambda m, x: m(x)))),
        nodes=2,
    ),
    grouped(
        "equinox",
        "GroupNorm",
        with_equinox(lambda: eqx.nn.GroupNorm(4, 8), over_batch(lambda m, x: m(x))),
        CHANNELS_FIRST,
        moves=0,
    ),
    grouped(
        "equinox",
        "GroupNorm, no affine",
        with_equinox(
            lambda: eqx.nn.GroupNorm(4, channelwise_affine=False), over_batch(lambda m, x: m(x))
        ),
        CHANNELS_FIRST,
        moves=0,
    ),
]


# --- Keras


def keras_norm(name, x, **options):
    return with_keras(
        lambda keras: getattr(keras.layers, name)(**options), lambda m, x: m(x), x[0].shape
    )


KERAS = [
    layer("keras", "LayerNormalization", keras_norm("LayerNormalization", X)),
    layer(
        "keras", "LayerNormalization, two axes", keras_norm("LayerNormalization", X, axis=(1, 2))
    ),
    layer(
        "keras",
        "LayerNormalization, no affine",
        keras_norm("LayerNormalization", X, center=False, scale=False),
    ),
    rms("keras", "RMSNormalization", keras_norm("RMSNormalization", X)),
    grouped("keras", "GroupNormalization", keras_norm("GroupNormalization", IMAGE, groups=4)),
]

# --- Haiku

HAIKU = [
    layer(
        "haiku", "LayerNorm", with_haiku(lambda hk, x: hk.LayerNorm(-1, True, True)(x), (2, 5, 8))
    ),
    layer(
        "haiku",
        "LayerNorm, fast variance",
        with_haiku(
            lambda hk, x: hk.LayerNorm(-1, True, True, use_fast_variance=True)(x), (2, 5, 8)
        ),
    ),
    layer(
        "haiku",
        "LayerNorm, two axes",
        with_haiku(lambda hk, x: hk.LayerNorm((1, 2), True, True, param_axis=(1, 2))(x), (2, 5, 8)),
    ),
    rms("haiku", "RMSNorm", with_haiku(lambda hk, x: hk.RMSNorm(-1)(x), (2, 5, 8))),
    grouped("haiku", "GroupNorm", with_haiku(lambda hk, x: hk.GroupNorm(4)(x), (2, 6, 6, 8))),
    instance(
        "haiku",
        "InstanceNorm",
        with_haiku(lambda hk, x: hk.InstanceNorm(True, True)(x), (2, 6, 6, 8)),
    ),
]
ROWS += KERAS if HAS_KERAS else []
ROWS += HAIKU if HAS_HAIKU else []


# --- batch normalisation in inference


class Folded(nnx.Module):
    """A convolution or a dense layer, a batch normalisation and an activation."""

    def __init__(self, inner, rngs):
        self.inner = inner
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.inner(x)))


class LinenFolded(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(8, (3, 3), use_bias=False)(x)
        return nn.relu(nn.BatchNorm(use_running_average=True)(x))


def batch(library, name, fn, inputs, ops, moves=0, nodes=None):
    ops = {"BatchNormalization": 0, **ops}
    return Row("norm", library, f"{name} [folded]", fn, inputs, ops, moves, nodes)


def keras_folded(layers, x):
    convolution, norm = layers
    return norm(convolution(x), training=False)


def haiku_folded(hk, x):
    x = hk.Conv2D(8, 3)(x)
    return jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training=hk.running_init()))


def equinox_folded(module, x):
    (convolution, norm), state = module
    return jax.vmap(lambda x: norm(convolution(x), state)[0])(x)


def equinox_parts():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(8, "batch", inference=True, mode="ema")
    state = state.set(norm.ema_state_index, (jnp.asarray(BIAS), jnp.asarray(SCALE)))
    return (eqx.nn.Conv2d(3, 8, 3, key=KEY), norm), state


RGB = [f32(2, 6, 6, 3)]
NCHW = [f32(2, 3, 6, 6)]
CONV = {"Conv": 1, "Mul": 0, "Add": 0}
ROWS += [
    batch(
        "nnx",
        "Conv and BatchNorm",
        with_nnx(lambda r: Folded(nnx.Conv(3, 8, (3, 3), rngs=r), r)),
        RGB,
        CONV,
        moves=2,
        nodes=4,
    ),
    batch(
        "nnx",
        "Linear and BatchNorm",
        with_nnx(lambda r: Folded(nnx.Linear(3, 8, rngs=r), r)),
        [f32(4, 3)],
        {"Gemm": 1, "Relu": 1},
        nodes=2,
    ),
    batch("linen", "Conv and BatchNorm", with_linen(LinenFolded(), (2, 6, 6, 3)), RGB, CONV, 2, 4),
    batch(
        "equinox",
        "Conv2d and BatchNorm",
        with_equinox(equinox_parts, equinox_folded),
        NCHW,
        CONV,
        0,
        1,
    ),
    batch(
        "by hand",
        "convolution, NCHW, scale and shift",
        lambda x: (
            jax.lax.conv(
                x, np.cos(np.arange(216.0, dtype=np.float32)).reshape(8, 3, 3, 3), (1, 1), "SAME"
            )
            * SCALE[:, None, None]
            + BIAS[:, None, None]
        ),
        [f32(2, 3, 6, 6)],
        CONV,
        nodes=1,
    ),
]
if HAS_KERAS:
    ROWS.append(
        batch(
            "keras",
            "Conv2D and BatchNormalization",
            with_keras(
                lambda keras: [keras.layers.Conv2D(8, 3), keras.layers.BatchNormalization()],
                keras_folded,
                (2, 6, 6, 3),
            ),
            RGB,
            CONV,
            moves=2,
            nodes=3,
        )
    )
if HAS_HAIKU:
    ROWS.append(
        batch(
            "haiku",
            "Conv2D and BatchNorm",
            with_haiku(haiku_folded, (2, 6, 6, 3)),
            RGB,
            CONV,
            moves=2,
            nodes=4,
        )
    )
