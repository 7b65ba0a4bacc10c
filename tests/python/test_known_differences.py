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


EYE = np.eye(4, dtype=np.float32)
ROWS = np.arange(16, dtype=np.float32).reshape(4, 4) / 8
KEEP = np.tril(np.ones((4, 4), bool))
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
    Difference("the mean of a norm", layer_norm, (np.full((1, 48), 1000001, np.float32),), False),
    Difference("log of a power", lambda x, y: jnp.log(x**y), (f32(2, -2), f32(3, 3)), False),
    Difference("-0 in a choice", lambda x: 1 / jnp.where(x < 1, x, 2.0), (f32(-0.0, 3),), True),
    Difference("the sign of -0", lambda x: 1 / jnp.sign(x), (f32(-0.0, 3),), True),
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
    Difference("the order of 0 and -0", lambda x: 1 / lax.top_k(x, 2)[0], (f32(-0.0, 0.0),), False),
    Difference("a bias that masks a row", attention, (ROWS, ROWS, ROWS, ROWS * 0 - INF), True),
    Difference("NaN behind a mask", masked_attention, (ROWS, ONE_IS_NAN, ROWS, KEEP & False), True),
    Difference(
        "a score below the fill", masked_attention, (ROWS * -1e9, ROWS * 1e3, ROWS, KEEP), True
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
    Difference("subnormal numbers", lambda x: x * 1.0 * 2, (f32(1e-39, 1),), False, rtol=0),
    Difference("a softmax that overflows", low_softmax, (f32([100, 1]),), True),
    Difference(
        "digits of an ELU by the specification",
        jax.nn.elu,
        (f32(-1e-6, -3e-7),),
        True,
        options={"target": "onnx"},
    ),
    Difference(
        "sums of several f16 at one place",
        lambda x: x.at[jnp.array([0, 0, 0])].add(jnp.float16(1)),
        (np.array([2048], np.float16),),
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
    want = np.asarray(jax.jit(row.fn)(*row.args))
    have = results(row.fn, row.args, **row.options)
    assert not agrees(have, want, row.rtol), "it is gone: docs/architecture.md has one entry less"
    mended = results(row.fn, row.args, **row.options, exact=True)
    assert agrees(mended, want, row.rtol) == row.exact, (mended, want)


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
