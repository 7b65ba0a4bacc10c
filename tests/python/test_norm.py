# SPDX-License-Identifier: Apache-2.0
"""Normalisations: axes, dtypes and sizes, what goes into weights, and what is no norm.

raising/ has the spellings of JAX and its libraries: one node each, with JAX's numbers.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import jaxport
from raising.libraries import equinox_module, linen_function, nnx_module
from support.cases import bf16, case, check, f16, f32, f64, parity, structs

KEY = jax.random.key(0)


def of_equinox(make):
    return jax.vmap(jax.vmap(equinox_module(make)))


def in_dtype(module, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_array(leaf) else leaf, module)


def deviation(x, axes, eps=1e-5):
    mean = jnp.mean(x, axes, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axes, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + eps)


SCALE, BIAS = np.linspace(0.5, 1.5, 8, dtype=np.float32), np.linspace(-1, 1, 8, dtype=np.float32)


def groups_nhwc(x):
    split = x.reshape(*x.shape[:3], 4, -1)
    return deviation(split, (1, 2, 4)).reshape(x.shape) * SCALE + BIAS


def groups_nchw(x):
    rows = deviation(x.reshape(x.shape[0], 4, -1), 2).reshape(x.shape)
    return rows * SCALE[:, None, None] + BIAS[:, None, None]


def mean_square(x, axes=-1, eps=1e-6):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + eps)


def mean_square_in_f32(x):
    wide = x.astype(jnp.float32)
    return (mean_square(wide) * SCALE).astype(x.dtype)


def row(op, name, fn, inputs, also=()):
    # ONNX has LayerNormalization from opset 17 on, RMSNormalization from opset 23 on.
    return op, case(name, fn, inputs, also, tolerance="network", opsets=(16, 17, 23))


LAYER, RMS, INSTANCE = "LayerNormalization", "RMSNormalization", "InstanceNormalization"
X, NHWC, NCHW = [f32(2, 5, 8)], [f32(2, 5, 6, 8)], [f32(2, 8, 5, 6)]
ROWS = [
    row(LAYER, "neither scale nor bias", lambda x: deviation(x, -1), X, also=[[f64(2, 5, 8)]]),
    row(
        LAYER,
        "nnx f16",
        nnx_module(
            lambda rngs: nnx.LayerNorm(8, dtype=jnp.float16, param_dtype=jnp.float16, rngs=rngs)
        ),
        [f16(2, 5, 8)],
    ),
    row(
        LAYER,
        "equinox bf16",
        of_equinox(lambda: in_dtype(eqx.nn.LayerNorm(8), jnp.bfloat16)),
        [bf16(2, 5, 8)],
    ),
    row(
        LAYER,
        "middle axis",
        linen_function(linen.LayerNorm(reduction_axes=1, feature_axes=1), (2, 5, 8)),
        X,
    ),
    row(
        LAYER,
        "two axes",
        linen_function(linen.LayerNorm(reduction_axes=(1, 2), feature_axes=(1, 2)), (2, 5, 8)),
        X,
    ),
    row(
        LAYER,
        "unit dims behind",
        lambda x: deviation(x, 1),
        [f32(2, 8, 1, 1)],
        also=[[f32("B", 8, 1)]],
    ),
    row(LAYER, "unit dims between", lambda x: deviation(x, (1, 3)), [f32(2, 4, 1, 3, 1)]),
    row(
        LAYER,
        "unit dims behind, scale and bias",
        lambda x, w, b: deviation(x, 1) * w + b,
        [f32(2, 8, 1, 1), f32(8, 1, 1), f32(8, 1, 1)],
    ),
    row(
        LAYER,
        "unit dims behind, constant scale and bias",
        lambda x: deviation(x, 2) * SCALE[:, None] + BIAS[:, None],
        [f32(2, 1, 8, 1)],
    ),
    row(RMS, "rms", lambda x: mean_square(x) * SCALE, X, also=[[f32("B", "T", 8)]]),
    row(
        RMS,
        "rms linen bf16",
        linen_function(linen.RMSNorm(dtype=jnp.bfloat16), (2, 5, 8)),
        [bf16(2, 5, 8)],
    ),
    row(RMS, "rms in f32", mean_square_in_f32, [bf16(2, 5, 8)], also=[[f16(2, 5, 8)]]),
    row(RMS, "rms, unit dims behind", lambda x: mean_square(x, 1), [f32(2, 8, 1, 1)]),
    row(
        RMS,
        "rms, unit dims behind and a scale",
        lambda x, w: mean_square(x, 1) * w,
        [f32("B", 8, 1), f32(8, 1)],
    ),
    row(
        INSTANCE,
        "groups without scale and bias",
        linen_function(
            linen.GroupNorm(num_groups=4, use_scale=False, use_bias=False), (2, 5, 6, 8)
        ),
        [f32("B", 5, 6, 8)],
    ),
    row(INSTANCE, "groups last", groups_nhwc, [f32("B", 5, 6, 8)]),
    row(INSTANCE, "groups first", groups_nchw, NCHW),
    row(INSTANCE, "large instance", lambda x: deviation(x, (2, 3)), [f32(1, 2, 65, 64)]),
]


@parity([cases for _, cases in ROWS])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def ops_of(fn, inputs, **options):
    return jaxport.to_onnx(fn, structs(inputs), return_mode="model", **options).stats()["ops"]


@pytest.mark.parametrize(("op", "cases"), ROWS, ids=[cases[0].name for _, cases in ROWS])
def test_a_norm_is_one_node(op, cases):
    ops = ops_of(cases[0].fn, cases[0].inputs)
    assert ops[op] == 1
    assert not {"ReduceMean", "ReduceSum", "Sqrt", "Reciprocal", "Sub", "Div"} & set(ops)


# --- f32 inside of narrow floats


def widened(x, scale=None, *, norm=lambda x: deviation(x, -1)):
    y = norm(x.astype(jnp.float32))
    return (y if scale is None else y * scale.astype(jnp.float32)).astype(x.dtype)


def scaled_later(x, scale):
    return widened(x) * scale


def exact_scale(x):
    return widened(x, jnp.array([0.5, 1, 1.25, 2, 3, 0.75, 0.1875, 1]))


def inexact_scale(x):
    return widened(x, jnp.array([0.1, 1, 1.25, 2, 3, 0.75, 0.1875, 1]))


def rms_widened(x, scale=None):
    return widened(x, scale, norm=mean_square)


X16, SCALE16 = f16(2, 5, 8), f16(8)
NARROW = [
    # name, function, inputs, Casts in a model for ONNX Runtime and for any runtime
    ("no scale", widened, [X16], 0, 0),
    ("scale of f16", widened, [X16, SCALE16], 0, 3),
    ("scale of f32", widened, [X16, f32(8)], 2, 2),
    ("scale that f16 holds", exact_scale, [X16], 0, 2),
    ("scale that f16 does not hold", inexact_scale, [X16], 2, 2),
    ("scale after the rounding", scaled_later, [X16, SCALE16], 3, 0),
    # ONNX Runtime 1.23 has no norm over one element: an If has another form for that, with a Cast.
    ("symbolic", widened, [f16("B", "D"), f16("D")], 1, 3),
    ("rms", rms_widened, [X16, SCALE16], 0, 3),
    ("bf16", widened, [bf16(2, 5, 8)], 2, 0),
]
NARROW_IDS = [name for name, *_ in NARROW]


@pytest.mark.parametrize(("fn", "inputs"), [row[1:3] for row in NARROW], ids=NARROW_IDS)
def test_a_narrow_norm_rounds_like_jax(fn, inputs, capfd):
    check(case("", fn, inputs, tolerance="rounding", opsets=(17, 23))[0], capfd)


@pytest.mark.parametrize(("_", "fn", "inputs", "casts", "any_casts"), NARROW, ids=NARROW_IDS)
def test_a_narrow_norm_is_not_cast_where_the_op_rounds_like_jax(_, fn, inputs, casts, any_casts):
    assert ops_of(fn, inputs).get("Cast", 0) == casts
    assert ops_of(fn, inputs, target="onnx").get("Cast", 0) == any_casts


def test_a_group_norm_in_nchw_is_reshaped_twice():
    ops = ops_of(groups_nchw, NCHW)
    assert ops["Reshape"] == 2
    assert "Transpose" not in ops


# --- batch normalisation in inference


def batch_norm(x):
    mean, variance = BIAS, SCALE + 0.5
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * SCALE + BIAS[::-1]


KERNEL = np.asarray(jax.random.normal(KEY, (3, 3, 8, 8)) * 0.2)


def convolved(x, groups=1, kernel=KERNEL):
    numbers = ("NHWC", "HWIO", "NHWC")
    kernel = kernel[:, :, : 8 // groups]
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def dense(x, weights=KERNEL[0, 0]):
    return x @ weights


def tied(x):
    """A weight with two uses is not copied."""
    return dense(batch_norm(dense(x)))


ROWS_8 = [f32("B", 8)]
NNX_BATCH = nnx_module(lambda rngs: nnx.BatchNorm(8, use_running_average=True, rngs=rngs))
LINEN_BATCH = linen_function(linen.BatchNorm(use_running_average=True), (2, 5, 6, 8))
BATCH = [
    ({"Mul", "Add"}, "batch", batch_norm, NHWC),
    ({"Mul", "Add"}, "nnx", NNX_BATCH, NHWC),
    ({"Mul", "Add"}, "linen", LINEN_BATCH, NHWC),
    ({"Conv"}, "after groups", lambda x: batch_norm(convolved(x, groups=4)), NHWC),
    ({"Conv"}, "after a bias", lambda x: batch_norm(convolved(x) + SCALE), NHWC),
    ({"MatMul", "Gemm"}, "before dense", lambda x: dense(batch_norm(x)) + SCALE, ROWS_8),
    ({"MatMul", "Gemm"}, "scalar before dense", lambda x: dense(x / 255.0 - 0.5), ROWS_8),
    ({"BatchNormalization"}, "rows", batch_norm, ROWS_8),
    (
        {"BatchNormalization"},
        "channels first",
        lambda x: batch_norm(x.swapaxes(1, 2)).swapaxes(1, 2),
        [f32("B", 8, 5)],
    ),
    ({"MatMul", "Gemm", "BatchNormalization"}, "a weight of two", tied, ROWS_8),
]


@parity([case(name, fn, inputs, tolerance="network") for _, name, fn, inputs in BATCH])
def test_a_batch_norm_has_jax_s_numbers(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize(("expected", "name", "fn", "inputs"), BATCH, ids=[row[1] for row in BATCH])
def test_a_batch_norm_goes_into_weights(expected, name, fn, inputs):
    ops = ops_of(fn, inputs)
    assert set(ops) <= expected | {"Add", "Transpose"}
    assert ops.get("Add", 0) <= 1


WEIGHT = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
DIVISOR = np.array([0, 1, 2], np.float32)
APART = [
    ("divided by zero", lambda x: (x @ WEIGHT) / DIVISOR, X),
    ("scales that cancel", lambda x: ((x * 1e-25) @ (WEIGHT * 1e20)) * (DIVISOR * 1e25), X),
    (
        "a large shift",
        lambda x: (x - np.full(8, 1000, np.float32)) @ WEIGHT,
        [f32(3, 8, lo=999, hi=1001)],
    ),
]


@parity([case(name, fn, inputs, tolerance="sum", opsets=(23,)) for name, fn, inputs in APART])
def test_scales_and_shifts_stay_apart_where_weights_would_lose_digits(case, capfd):
    check(case, capfd)


# --- what is no norm


def clamped(x, less, clamp, center):
    """What is clamped may be negative: the clamp takes effect."""
    d = x - x.mean(-1, keepdims=True) if center else x
    return d * jax.lax.rsqrt(clamp(jnp.mean(d * d, -1, keepdims=True) - less) + 0.3)


def one_pass_clamped(x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.mean(x * x, -1, keepdims=True) - mean * mean
    return (x - mean) * jax.lax.rsqrt(jnp.maximum(variance - 3, 0) + 0.3)


NEAR_MISSES = [
    ("rms, max", lambda x: clamped(x, 3, lambda u: jnp.maximum(u, 0), False)),
    ("rms, where", lambda x: clamped(x, 3, lambda u: jnp.where(u < 0, 0, u), False)),
    ("layer, max", lambda x: clamped(x, 3, lambda u: jnp.maximum(u, 0), True)),
    ("layer, where", lambda x: clamped(x, 3, lambda u: jnp.where(u < 0, 0, u), True)),
    ("layer in one pass, max", one_pass_clamped),
    ("infinite eps", lambda x: x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + jnp.inf)),
    ("negative eps", lambda x: x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) - 1e-6)),
    (
        "deviation of another value",
        lambda x: (
            (2 * x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        ),
    ),
]


@parity([case(name, fn, X, tolerance="network", opsets=(23,)) for name, fn in NEAR_MISSES])
def test_something_similar_is_no_norm(case, capfd):
    check(case, capfd)
    assert not {LAYER, RMS, INSTANCE} & set(ops_of(case.fn, case.inputs))
