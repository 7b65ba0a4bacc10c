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
from support.cases import bf16, f16, f32

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
    "LpNormalization": ("LpNormalization|Div", 3, 0),
}


def row(op, library, name, fn, inputs, moves=0, nodes=1):
    ops, more, moved = FORMS.get(op, (op, 0, 0))
    return Row("norm", library, f"{name} [{op}]", fn, inputs, {ops: 1}, moves + moved, nodes + more)


def layer(library, name, fn, inputs=X, moves=0, nodes=1):
    return row("LayerNormalization", library, name, fn, inputs, moves, nodes)


def rms(library, name, fn, inputs=X, moves=0, nodes=1):
    return row("RMSNormalization", library, name, fn, inputs, moves, nodes)


def grouped(library, name, fn, inputs=IMAGE, moves=2):
    return row("GroupNormalization", library, name, fn, inputs, moves, moves + 1)


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


# --- by hand


def spelled(op, name, inputs=X, moves=0, nodes=1):
    """Adds a function to the rows."""

    def add(fn):
        ROWS.append(row(op, "by hand", name, fn, inputs, moves, nodes))
        return fn

    return add


@spelled("LayerNormalization", "mean and var")
def mean_and_var(x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * SCALE + BIAS


@spelled("LayerNormalization", "mean of squares of differences")
def mean_of_squares(x):
    d = x - jnp.mean(x, axis=-1, keepdims=True)
    return SCALE * d * jax.lax.rsqrt(jnp.mean(jnp.square(d), -1, keepdims=True) + 1e-6) + BIAS


@spelled("LayerNormalization", "E[x^2] - E[x]^2")
def one_pass(x):
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.mean(x**2, -1, keepdims=True) - mean**2
    return (x - mean) * jax.lax.rsqrt(var + 1e-3) * SCALE + BIAS


@spelled("LayerNormalization", "sum / n")
def sum_over_n(x):
    mean = jnp.sum(x, -1, keepdims=True) / x.shape[-1]
    var = jnp.sum((x - mean) ** 2, -1, keepdims=True) / x.shape[-1]
    return (x - mean) / (var + 1e-5) ** 0.5


@spelled("LayerNormalization", "power -0.5")
def power(x):
    d = x - x.mean(-1, keepdims=True)
    return d * (jnp.mean(d * d, -1, keepdims=True) + 1e-5) ** -0.5 * (1.0 + SCALE)


@spelled("LayerNormalization", "scale first, as torch's tutorial")
def scale_first(x):
    mean, std = x.mean(-1, keepdims=True), jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return SCALE * ((x - mean) / std) + BIAS


@spelled("LayerNormalization", "jax.nn.standardize")
def standardize(x):
    return jax.nn.standardize(x, axis=-1, epsilon=1e-5) * SCALE + BIAS


@spelled("LayerNormalization", "vmap of one vector")
def vmapped(x):
    def one(v):
        return (v - v.mean()) * jax.lax.rsqrt(v.var() + 1e-5) * SCALE + BIAS

    return jax.vmap(jax.vmap(one))(x)


@spelled("LayerNormalization", "f32 inside bf16", [bf16(2, 5, 8)], nodes=3)
def wide_bf16(x):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (y * SCALE + BIAS).astype(x.dtype)


@spelled("LayerNormalization", "f32 inside f16", [f16(2, 5, 8)], nodes=3)
def wide_f16(x):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (y * SCALE + BIAS).astype(x.dtype)


@spelled("LayerNormalization", "scale and shift as inputs", [*X, f32(8), f32(8)])
def given_affine(x, scale, bias):
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def unit_rms(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


@spelled("RMSNormalization", "of a gated value, as Mamba 2", [*X, *X], nodes=4)
def gated(x, gate):
    return unit_rms(x * jax.nn.silu(gate)) * SCALE


@spelled("RMSNormalization", "of scaled embeddings, as Gemma", nodes=2)
def of_scaled(x):
    return unit_rms(x * jnp.sqrt(8.0)) * (1 + SCALE)


@spelled("RMSNormalization", "of a mean over the image", IMAGE, nodes=2)
def of_mean(x):
    return unit_rms(x.mean((1, 2))) * SCALE


@spelled("RMSNormalization", "of a quotient", [*X, f32(2, 5, 8, lo=1, hi=2)], nodes=2)
def of_quotient(x, y):
    return SCALE * unit_rms(x / y)


@spelled("RMSNormalization", "of an activation", nodes=2)
def of_gelu(x):
    return unit_rms(jax.nn.gelu(x)) * SCALE


@spelled("LayerNormalization", "of a product, as Keras writes it", [*X, *X], nodes=2)
def of_product(x, y):
    x = x * y
    inverse = jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * SCALE
    return x * inverse + (BIAS - x.mean(-1, keepdims=True) * inverse)


@spelled("LayerNormalization", "adaptive: scale of each example", [*X, f32(2, 8)], moves=1, nodes=4)
def adaptive(x, scale):
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d**2).mean(-1, keepdims=True) + 1e-5) * (1 + scale[:, None])


@spelled("LayerNormalization", "channels first", CHANNELS_FIRST, moves=2, nodes=3)
def channels_first(x):
    mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    y = (x - mean) / jnp.sqrt(var + 1e-6)
    return y * SCALE[:, None, None] + BIAS[:, None, None]


@spelled("RMSNormalization", "x * rsqrt(mean(x^2))")
def rms_by_rsqrt(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * SCALE


@spelled("RMSNormalization", "x / sqrt(mean(x^2))")
def rms_by_sqrt(x):
    return SCALE * (x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5))


@spelled("RMSNormalization", "f32 inside bf16, as Llama", [bf16(2, 5, 8)], nodes=6)
def rms_wide(x):
    y = x.astype(jnp.float32)
    y = y * jax.lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + 1e-6)
    return y.astype(x.dtype) * SCALE.astype(x.dtype)


@spelled("RMSNormalization", "1 + scale, as Gemma")
def rms_gemma(x):
    y = x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
    return y * (1 + SCALE)


@spelled("RMSNormalization", "power -0.5, symbolic", [f32("B", "T", 8)])
def rms_power(x):
    return x * (jnp.mean(x**2, -1, keepdims=True) + 1e-6) ** -0.5 * SCALE


@spelled("RMSNormalization", "of a sum", [f32(2, 5, 8), f32(2, 5, 8)], nodes=2)
def rms_of_sum(x, y):
    return rms_by_rsqrt(x + y)


@spelled("RMSNormalization", "of each head", [f32(2, 5, 4, 8)])
def rms_of_heads(x):
    return rms_by_rsqrt(x)


@spelled("GroupNormalization", "by reshape", IMAGE, moves=2, nodes=3)
def group_by_reshape(x):
    y = x.reshape(2, 6, 6, 4, 2)
    mean, var = (f(y, (1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
    return ((y - mean) / jnp.sqrt(var + 1e-5)).reshape(x.shape) * SCALE + BIAS


@spelled("GroupNormalization", "channels first", CHANNELS_FIRST)
def group_channels_first(x):
    y = x.reshape(2, 4, -1)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return y.reshape(x.shape) * SCALE[:, None, None] + BIAS[:, None, None]


@spelled("InstanceNormalization", "channels first", CHANNELS_FIRST)
def instance_channels_first(x):
    mean, var = (f(x, (2, 3), keepdims=True) for f in (jnp.mean, jnp.var))
    y = (x - mean) / jnp.sqrt(var + 1e-5)
    return y * SCALE[:, None, None] + BIAS[:, None, None]


@spelled("InstanceNormalization", "channels last", IMAGE, moves=2, nodes=3)
def instance_channels_last(x):
    mean, var = (f(x, (1, 2), keepdims=True) for f in (jnp.mean, jnp.var))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * SCALE + BIAS


@spelled("LpNormalization", "x / norm(x)")
def l2_by_norm(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@spelled("LpNormalization", "x / sqrt(sum(x^2))", [f32(2, 3, 5, 4)])
def l2_by_sum(x):
    return x / jnp.sqrt(jnp.sum(x**2, 1, keepdims=True))


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
