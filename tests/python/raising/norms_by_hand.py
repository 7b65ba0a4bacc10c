# SPDX-License-Identifier: Apache-2.0
"""Normalisations as people write them themselves."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from raising.norms import BIAS, CHANNELS_FIRST, GUARD, IMAGE, SCALE, X, row
from raising.table import Row
from support.cases import bf16, f16, f32

ROWS: list[Row] = []


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


@spelled("RMSNormalization", "x / norm(x), last axis")
def l2_as_rms(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@spelled("RMSNormalization", "x * rsqrt(sum(x^2) + eps)")
def l2_with_eps(x):
    return x * jax.lax.rsqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-12)


@spelled("RMSNormalization", "unit length times sqrt(n) and a scale")
def l2_scaled(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True) * math.sqrt(8) * SCALE


@spelled("RMSNormalization", "einsum of x with itself")
def rms_einsum(x):
    return x * jax.lax.rsqrt(jnp.einsum("btd,btd->bt", x, x)[..., None] / 8 + 1e-6) * SCALE


@spelled("LayerNormalization", "vdot of the deviation")
def layer_vdot(x):
    def one(x):
        deviation = x - x.mean()
        return deviation / jnp.sqrt(jnp.vdot(deviation, deviation) / 8 + 1e-5)

    return jax.vmap(jax.vmap(one))(x)


@spelled("LayerNormalization", "variance clamped by where")
def layer_where(x):
    mean = x.mean(-1, keepdims=True)
    var = (x * x).mean(-1, keepdims=True) - mean**2
    return (x - mean) * jax.lax.rsqrt(jnp.where(var < 0, 0, var) + 1e-6) * SCALE + BIAS


@spelled("LayerNormalization", "a number as scale and a number as bias")
def layer_numbers(x):
    return jax.nn.standardize(x, axis=-1) * 2 + 0.5


# --- of what is a product itself


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


# --- symbolic sizes


def standardized(x, axes):
    mean, var = (f(x, axes, keepdims=True) for f in (jnp.mean, jnp.var))
    return (x - mean) / jnp.sqrt(var + 1e-5)


@spelled("InstanceNormalization", "symbolic image", [f32("B", 8, "H", "W")], nodes=1 + GUARD)
def instance_symbolic(x):
    return standardized(x, (2, 3)) * SCALE[:, None, None] + BIAS[:, None, None]


@spelled("InstanceNormalization", "symbolic time", [f32("B", "T", 8)], moves=2, nodes=3 + GUARD)
def instance_symbolic_time(x):
    return standardized(x, 1)


# Two reshapes to sizes that are computed.
@spelled("GroupNormalization", "symbolic image", [f32("B", 8, "H", "W")], moves=4, nodes=8 + GUARD)
def group_symbolic(x):
    y = standardized(x.reshape(x.shape[0], 4, 2, *x.shape[2:]), (2, 3, 4)).reshape(x.shape)
    return y * SCALE[:, None, None] + BIAS[:, None, None]


SYMBOLIC = [f32("B", "D"), f32("D"), f32("D")]


@spelled("LayerNormalization", "symbolic features", SYMBOLIC)
def layer_symbolic(x, scale, bias):
    return standardized(x, -1) * scale + bias


@spelled("RMSNormalization", "symbolic features", SYMBOLIC[:2])
def rms_symbolic(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale
