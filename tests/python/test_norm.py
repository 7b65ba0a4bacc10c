# SPDX-License-Identifier: Apache-2.0
"""Normalisations in the spellings of JAX and its libraries: one node, JAX's numbers."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import jaxport
from support.cases import bf16, case, check, f16, f32, f64, parity, structs

KEY = jax.random.key(0)


def shaken(tree):
    """The parameters with noise, so that no scale is 1 and no bias is 0."""
    leaves, structure = jax.tree.flatten(tree)

    def noisy(leaf, key):
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf + 0.2 * jax.random.uniform(key, leaf.shape, leaf.dtype)

    keys = jax.random.split(KEY, len(leaves))
    return jax.tree.unflatten(structure, list(map(noisy, leaves, keys)))


def of_nnx(module):
    graph, state = nnx.split(module)
    return nnx.merge(graph, shaken(state))


def of_linen(module, shape):
    variables = shaken(module.init(KEY, jnp.zeros(shape)))
    return lambda x: module.apply(variables, x)


def of_equinox(module, dims):
    """The module over one example, under vmap for each further dim."""
    fn = shaken(module)
    return jax.vmap(fn) if dims == 1 else jax.vmap(jax.vmap(fn))


def in_dtype(module, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_array(leaf) else leaf, module)


def deviation(x, axes, eps=1e-5):
    mean = jnp.mean(x, axes, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axes, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + eps)


SCALE, BIAS = np.linspace(0.5, 1.5, 8, dtype=np.float32), np.linspace(-1, 1, 8, dtype=np.float32)
RNGS = nnx.Rngs(0)


def groups_nhwc(x):
    split = x.reshape(*x.shape[:3], 4, -1)
    return deviation(split, (1, 2, 4)).reshape(x.shape) * SCALE + BIAS


def groups_nchw(x):
    rows = deviation(x.reshape(x.shape[0], 4, -1), 2).reshape(x.shape)
    return rows * SCALE[:, None, None] + BIAS[:, None, None]


def instance_nchw(x):
    return deviation(x, (2, 3)) * SCALE[:, None, None] + BIAS[:, None, None]


def mean_square(x, axes=-1, eps=1e-6):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + eps)


def mean_square_in_f32(x):
    wide = x.astype(jnp.float32)
    return (mean_square(wide) * SCALE).astype(x.dtype)


def row(op, name, fn, inputs, also=()):
    return op, case(name, fn, inputs, also, tolerance="network", opsets=(17, 23))


LAYER, RMS, INSTANCE = "LayerNormalization", "RMSNormalization", "InstanceNormalization"
X, NHWC, NCHW = [f32(2, 5, 8)], [f32(2, 5, 6, 8)], [f32(2, 8, 5, 6)]
ROWS = [
    row(LAYER, "nnx", of_nnx(nnx.LayerNorm(8, rngs=RNGS)), X, also=[[f32("B", "T", 8)]]),
    row(LAYER, "linen", of_linen(linen.LayerNorm(), (2, 5, 8)), X),
    row(LAYER, "two passes", of_linen(linen.LayerNorm(use_fast_variance=False), (2, 5, 8)), X),
    row(LAYER, "no scale", of_linen(linen.LayerNorm(use_scale=False), (2, 5, 8)), X),
    row(LAYER, "no bias", of_linen(linen.LayerNorm(use_bias=False), (2, 5, 8)), X),
    row(LAYER, "neither", lambda x: deviation(x, -1), X, also=[[f64(2, 5, 8)]]),
    row(
        LAYER,
        "two axes",
        of_linen(linen.LayerNorm(reduction_axes=(1, 2), feature_axes=(1, 2)), (2, 5, 8)),
        X,
    ),
    row(
        LAYER,
        "middle axis",
        of_linen(linen.LayerNorm(reduction_axes=1, feature_axes=1), (2, 5, 8)),
        X,
    ),
    row(LAYER, "equinox", of_equinox(eqx.nn.LayerNorm(8), 2), X),
    row(LAYER, "equinox, two axes", of_equinox(eqx.nn.LayerNorm((5, 8)), 1), X),
    row(
        LAYER,
        "linen bf16",
        of_linen(linen.LayerNorm(dtype=jnp.bfloat16), (2, 5, 8)),
        [bf16(2, 5, 8)],
    ),
    row(
        LAYER,
        "nnx f16",
        of_nnx(nnx.LayerNorm(8, dtype=jnp.float16, param_dtype=jnp.float16, rngs=RNGS)),
        [f16(2, 5, 8)],
    ),
    row(
        LAYER,
        "equinox bf16",
        of_equinox(in_dtype(eqx.nn.LayerNorm(8), jnp.bfloat16), 2),
        [bf16(2, 5, 8)],
    ),
    row(RMS, "rms nnx", of_nnx(nnx.RMSNorm(8, rngs=RNGS)), X, also=[[f32("B", "T", 8)]]),
    row(RMS, "rms linen", of_linen(linen.RMSNorm(), (2, 5, 8)), X),
    row(RMS, "rms equinox", of_equinox(eqx.nn.RMSNorm(8), 2), X),
    row(
        RMS,
        "rms linen bf16",
        of_linen(linen.RMSNorm(dtype=jnp.bfloat16), (2, 5, 8)),
        [bf16(2, 5, 8)],
    ),
    row(RMS, "rms in f32", mean_square_in_f32, [bf16(2, 5, 8)], also=[[f16(2, 5, 8)]]),
    row(RMS, "rms scale + 1", lambda x: mean_square(x) * (1 + SCALE), X),
    row(INSTANCE, "group nnx", of_nnx(nnx.GroupNorm(8, num_groups=4, rngs=RNGS)), NHWC),
    row(INSTANCE, "group linen", of_linen(linen.GroupNorm(num_groups=4), (2, 5, 6, 8)), NHWC),
    row(
        INSTANCE,
        "group linen without scale and bias",
        of_linen(linen.GroupNorm(num_groups=4, use_scale=False, use_bias=False), (2, 5, 6, 8)),
        NHWC,
        also=[[f32("B", 5, 6, 8)]],
    ),
    row(INSTANCE, "group equinox", of_equinox(eqx.nn.GroupNorm(4, 8), 1), NCHW),
    row(INSTANCE, "groups last", groups_nhwc, NHWC, also=[[f32("B", 5, 6, 8)]]),
    row(INSTANCE, "groups first", groups_nchw, NCHW),
    row(INSTANCE, "instance nnx", of_nnx(nnx.InstanceNorm(8, rngs=RNGS)), NHWC),
    row(INSTANCE, "instance linen", of_linen(linen.InstanceNorm(), (2, 5, 6, 8)), NHWC),
    row(INSTANCE, "instance first", instance_nchw, NCHW, also=[[f32("B", 8, 5, 6)]]),
    row(INSTANCE, "large instance", lambda x: deviation(x, (2, 3)), [f32(1, 2, 65, 64)]),
]


@parity([cases for _, cases in ROWS])
def test_norm(case, capfd):
    check(case, capfd)


def ops_of(fn, inputs, **options):
    return jaxport.to_onnx(fn, structs(inputs), return_mode="ir", **options).stats()["ops"]


@pytest.mark.parametrize(("op", "cases"), ROWS, ids=[cases[0].name for _, cases in ROWS])
def test_norm_is_one_node(op, cases):
    ops = ops_of(cases[0].fn, cases[0].inputs)
    assert ops[op] == 1
    assert not {"ReduceMean", "ReduceSum", "Sqrt", "Reciprocal", "Sub", "Div"} & set(ops)


def test_channels_first_move_no_data():
    assert set(ops_of(instance_nchw, NCHW)) == {INSTANCE}


def test_a_group_norm_in_nchw_is_reshaped_twice():
    ops = ops_of(groups_nchw, NCHW)
    assert ops["Reshape"] == 2
    assert "Transpose" not in ops


# --- what is no norm

NEAR_MISSES = [
    ("ddof", lambda x: (x - x.mean(-1, keepdims=True)) / jnp.std(x, -1, keepdims=True, ddof=1)),
    (
        "mean of another axis",
        lambda x: (x - x.mean(1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
    ),
    (
        "eps outside of the root",
        lambda x: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5),
    ),
    ("negative eps", lambda x: x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) - 1e-6)),
    (
        "deviation of another value",
        lambda x: (
            (2 * x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        ),
    ),
]


@parity([case(name, fn, X, tolerance="network", opsets=(23,)) for name, fn in NEAR_MISSES])
def test_near_miss(case, capfd):
    check(case, capfd)
    assert not {LAYER, RMS, INSTANCE} & set(ops_of(case.fn, case.inputs))
