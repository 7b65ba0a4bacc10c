# SPDX-License-Identifier: Apache-2.0
"""What docs/architecture.md says under "Where numbers differ", one test for each entry.

A difference that is gone, because ONNX Runtime or XLA changed, fails here: its entry in the page
goes too. `exact` says whether to_onnx(exact=True) has JAX's numbers (docs/exact.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import runtime

NAN, INF = np.nan, np.inf


def f32(*rows: Any) -> np.ndarray[Any, Any]:
    return np.array(rows, np.float32)


@dataclasses.dataclass(frozen=True)
class Difference:
    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    exact: bool  # whether exact=True pays for it
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    rtol: float = 2e-6  # of numbers that are no difference


def layer_norm(x):
    mean = jnp.mean(x, -1, keepdims=True)
    deviation = x - mean
    return deviation * lax.rsqrt(jnp.mean(deviation**2, -1, keepdims=True) + 1e-6)


def attention(q, k, v, bias):
    return jax.nn.softmax(q @ k.T + bias) @ v


def masked_attention(q, k, v, keep):
    return jax.nn.softmax(jnp.where(keep, q @ k.T, -1e9)) @ v


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), "VALID")


def low_softmax(x):
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


def tanh_cell(x):
    def step(state, row):
        state = jnp.tanh(row @ STEP + state @ (STEP * 0.5))
        return state, state

    return lax.scan(step, jnp.zeros(4), x)[1]


def attention_of_halves(q, k, v):
    return jax.nn.softmax(q @ k.T * jnp.float16(0.125)) @ v


def parts(z):
    return jnp.stack([z.real, z.imag])


EYE = np.eye(4, dtype=np.float32)
ROWS = np.arange(16, dtype=np.float32).reshape(4, 4) / 8
KEEP = np.tril(np.ones((4, 4), bool))
STEP = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
LARGE = np.full((2, 64), 100, np.float16)  # whose products are 640,000
ONE_IS_NAN = np.where(np.arange(16).reshape(4, 4) == 7, NAN, ROWS).astype(np.float32)

DIFFERENCES = [
    Difference("NaN in a maximum", lambda x: x.max(-1), (f32([1, NAN, 2]),), True),
    Difference("NaN in a minimum", lambda x: x.min(-1), (f32([1, NAN, 2]),), True),
    Difference("NaN in a pooling window", max_pool, (f32([[1], [NAN], [2], [3]]),), True),
    Difference("a pooling window of -inf", max_pool, (f32([[-INF], [-INF], [2], [3]]),), True),
    Difference(
        "NaN in a scatter to a maximum",
        lambda x, i, y: x.at[i].max(y),
        (f32(NAN, 2), np.array([0], np.int32), f32(1)),
        True,
    ),
    Difference(
        "NaN in a scatter to a minimum",
        lambda x, i, y: x.at[i].min(y),
        (f32(NAN, 2), np.array([0], np.int32), f32(1)),
        True,
    ),
    Difference("the mean of a norm", layer_norm, (np.full((1, 48), 1000001, np.float32),), False),
    Difference("log of a power", lambda x, y: jnp.log(x**y), (f32(2, -2), f32(3, 3)), False),
    Difference("-0 in a choice", lambda x: 1 / jnp.where(x < 1, x, 2.0), (f32(-0.0, 3),), True),
    Difference("the sign of -0", lambda x: 1 / jnp.sign(x), (f32(-0.0, 3),), True),
    Difference("a sum of nothing but -0", lambda x: 1 / x.sum(), (f32(-0.0, -0.0),), False),
    Difference("the larger of 0 and -0", lambda x: 1 / jax.nn.relu(x), (f32(-0.0, 3),), False),
    Difference(
        "-0 in a gather that fills",
        lambda x: 1 / x.at[jnp.array([0, 9])].get(mode="fill", fill_value=1),
        (f32(-0.0, 3),),
        True,
    ),
    Difference("the tail of a sigmoid", jax.nn.sigmoid, (f32(-20, -40),), True),
    Difference(
        "the tail of a gelu", lambda x: jax.nn.gelu(x, False), (f32(-7, -9),), True, rtol=1e-3
    ),
    Difference(
        "the tanh of an RNN",
        tanh_cell,
        (np.arange(1, 25, dtype=np.float32).reshape(6, 4) * 1e-5,),
        True,
    ),
    Difference("the order of 0 and -0", lambda x: 1 / lax.top_k(x, 2)[0], (f32(-0.0, 0.0),), True),
    Difference("the sign of NaN", jnp.signbit, (f32(-NAN, 1),), False),
    Difference("the order of -NaN", lambda x: lax.top_k(x, 2)[1], (f32(-NAN, 1),), False),
    Difference("a bias that masks a row", attention, (ROWS, ROWS, ROWS, ROWS * 0 - INF), True),
    Difference("NaN behind a mask", masked_attention, (ROWS, ONE_IS_NAN, ROWS, KEEP & False), True),
    Difference(
        "a score below the fill", masked_attention, (ROWS * -1e9, ROWS * 1e3, ROWS, KEEP), True
    ),
    Difference(
        "scores of halves above 65504",
        attention_of_halves,
        (LARGE, LARGE, LARGE),
        True,
    ),
    Difference(
        "nearest neighbours at some sizes",
        lambda x: jax.image.resize(x, (25,), "nearest"),
        (np.arange(10, dtype=np.float32),),
        False,
    ),
    Difference(
        "NaN in a resized image",
        lambda x: jax.image.resize(x, (1, 8, 8, 1), "bilinear"),
        (ONE_IS_NAN.reshape(1, 4, 4, 1),),
        True,
    ),
    Difference(
        "NaN along an axis that a resized image keeps",
        lambda x: jax.image.resize(x, (1, 4, 8, 1), "bilinear"),
        (ONE_IS_NAN.reshape(1, 4, 4, 1),),
        True,
    ),
    Difference(
        "parts of a complex quotient",
        lambda a, b: parts(lax.complex(a, b) / lax.complex(a * 0, b * 0)),
        (f32(1, INF), f32(1, 1)),
        False,
    ),
    Difference(
        "parts of a complex tanh",
        lambda a, b: parts(jnp.tanh(lax.complex(a, b))),
        (f32(INF, -INF), f32(NAN, INF)),
        False,
    ),
    Difference("overflow by order", lambda x: x.sum(-1), (f32([3e38, 3e38, -3e38, -3e38]),), False),
    Difference(
        "a repeated factor beside an infinity",
        lambda x, w: jnp.tile(x, 2) @ w,
        (f32([INF, 1]), f32([1], [1], [-2], [1])),
        False,
    ),
    Difference(
        "an infinity in the padding of a convolution",
        lambda x, k: lax.conv_general_dilated(x, k, (1,), [(1, 0)]),
        (f32([[1, 2, 3]]), f32([[INF, 1]])),
        False,
    ),
    Difference(
        "tanh of tiny numbers", jnp.tanh, (f32(1.2345678e-37, 3.3333e-37),), True, rtol=1e-7
    ),
    Difference(
        "expm1 of tiny numbers", jnp.expm1, (f32(1.2345678e-37, 3.3333e-37),), True, rtol=1e-7
    ),
    Difference("exponentials that are subnormal", jnp.exp, (f32(-90, 1),), False),
    Difference("subnormal numbers", lambda x: x * 1.0 * 2, (f32(1e-39, 1),), False, rtol=0),
    Difference("a softmax that overflows", low_softmax, (f32([100, 1]),), True),
    Difference("exponentials that all vanish", low_softmax, (f32([-200, -201]),), True),
    Difference("a score of inf", low_softmax, (f32([INF, 1, 2]),), True),
    Difference("a softplus that overflows", lambda x: jnp.log1p(jnp.exp(x)), (f32(100, 1),), True),
    Difference(
        "NaN in a log_softmax of f64 by the specification",
        lambda x: jax.nn.log_softmax(x),
        (np.array([[1, NAN, 2]]),),
        True,
        options={"target": "onnx", "enable_double_precision": True},
    ),
    *(
        Difference(
            f"digits of {name} by the specification",
            getattr(jax.nn, name),
            (f32(-1e-6, -3e-7),),
            True,
            options={"target": "onnx"},
        )
        for name in ("celu", "elu", "selu")
    ),
    Difference(
        "sums of several f16 at one place",
        lambda x: x.at[jnp.array([0, 0, 0])].add(jnp.float16(1)),
        (np.array([2048], np.float16),),
        False,
        rtol=0,
    ),
    Difference(
        "sums of several bf16 at one place",
        lambda x: x.at[jnp.array([0, 0, 0])].add(jnp.bfloat16(1)).astype(jnp.float32),
        (np.array([256], jnp.bfloat16),),
        False,
        rtol=0,
    ),
]


def results(fn, args, **options):
    inputs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in args]
    model = jaxport.to_onnx(fn, inputs, **options)
    return next(iter(runtime.run(runtime.open_session(model), args).values()))


def agrees(have, want, rtol):
    """As numbers, with the sign of an infinity and the place of each NaN."""
    return np.allclose(have, want, rtol=rtol, atol=0, equal_nan=True)


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.name)
def test_difference(row):
    with jax.enable_x64("enable_double_precision" in row.options):
        want = np.asarray(jax.jit(row.fn)(*row.args))
        have = results(row.fn, row.args, **row.options)
        mended = results(row.fn, row.args, **row.options, exact=True)
    assert not agrees(have, want, row.rtol), "it is gone: docs/architecture.md has one entry less"
    assert agrees(mended, want, row.rtol) == row.exact, (mended, want)


def test_a_sum_with_zero_is_left_out_by_xla_too():
    x = f32(-0.0, 1)
    have = results(lambda x: 1 / (x + 0), (x,))
    assert (have == np.asarray(jax.jit(lambda x: 1 / (x + 0))(x))).all()
    assert have[0] == -INF  # by the arithmetic as it is written, -0 + 0 is 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_exact_models_order_zeros(dtype):
    """NaN too, and numbers next to zero; `axis` is not the last one."""

    def fn(x):
        values, places = lax.top_k(x, 5)
        return (1 / values).astype(jnp.float32), places

    x = np.array([[-0.0, 0.0, -0.0, 1, NAN, -INF, 0.0], [0.0, 6e-8, -0.0, 0.0, -6e-8, -1, -0.0]])
    x = x.astype(dtype)
    with jax.enable_x64(dtype == "float64"):
        wanted = list(map(np.asarray, fn(jnp.asarray(x))))
        spec = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        double = {"enable_double_precision": dtype == "float64"}
        model = jaxport.to_onnx(fn, spec, exact=True, **double)
    found = list(runtime.run(runtime.open_session(model), [x]).values())
    assert np.array_equal(found[0], wanted[0], equal_nan=True)
    assert np.array_equal(found[1], wanted[1])


def test_newer_opsets_order_every_number():
    x = f32(-0.0, 0.0, NAN, -INF)

    def fn(x):
        return lax.top_k(x, 4)[1]

    assert (results(fn, (x,), opset=26) == np.asarray(fn(x))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_models_keep_ordinary_numbers(dtype):
    def fn(x):
        x = jnp.asarray(x)
        y = jnp.where(x > 0, x, -x).max(-1) + jax.nn.sigmoid(x).min(-1)
        return y, max_pool(x[None, :, :1]), jnp.tanh(x), jnp.maximum(x, 0.5)

    x = np.random.default_rng(0).standard_normal((6, 5)).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        spec = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        model = jaxport.to_onnx(fn, spec, exact=True, enable_double_precision=dtype == np.float64)
        wanted = [np.asarray(y) for y in fn(x)]
    for have, want in zip(
        runtime.run(runtime.open_session(model), [x]).values(), wanted, strict=True
    ):
        assert have.dtype == want.dtype
        assert np.allclose(have, want, rtol=1e-5)


def test_exact_models_raise_nothing():
    model = jaxport.to_onnx(jax.nn.softmax, [(2, 3)], exact=True, return_mode="model")
    assert not model.report.raised
    assert "Softmax" not in model.stats()["ops"]


def test_bodies_are_exact_too():
    def fn(x):
        return lax.fori_loop(0, 3, lambda i, y: jnp.where(y < 1, y, y.max()), x)

    x = f32(0.5, NAN, -0.0)
    want = np.asarray(fn(x))
    have = results(fn, (x,), exact=True)
    assert np.array_equal(have, want, equal_nan=True)
    assert (np.signbit(have) == np.signbit(want))[[0, 2]].all()
