# SPDX-License-Identifier: Apache-2.0
"""Fewer nodes in less time: reductions, products and slopes of few elements, one-hot numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from support.cases import bf16, case, check, f16, f32, f64, i32, parity, structs

X = [f32(4, 8)]
OTHER_FLOATS = [[f32("B", 8)], [bf16(4, 8)], [f16(4, 8)], [f64(4, 8)]]


def row(name, fn, inputs, ops, also=(), tolerance="function"):
    """The cases of `fn`, and the nodes of the first one."""
    return case(name, fn, inputs, also, tolerance=tolerance, opsets=(17, 23)), ops


def logsumexp(x):
    return jax.nn.logsumexp(x, -1)


def magnitudes(x):
    return jnp.sum(jnp.abs(x), 0)


def slopes(x):
    return jnp.where(x >= 0, x, jnp.asarray([0.1, 0.2, -0.5], x.dtype) * x)


# Of few elements, where one node takes less time than its parts, and of more.
MANY = [f32(64, 32)]
LOG_SUM_EXP = "ReduceMax Clip Reshape Sub Exp ReduceSum Log Add"
ROWS = [
    row("logsumexp", logsumexp, X, "ReduceLogSumExp", OTHER_FLOATS),
    row("logsumexp of all", jax.scipy.special.logsumexp, X, "ReduceLogSumExp"),
    row("logsumexp of many", logsumexp, MANY, LOG_SUM_EXP),
    row("norm", jnp.linalg.norm, X, "ReduceL2", OTHER_FLOATS, tolerance="sum"),
    row("norm of many", jnp.linalg.norm, MANY, "Mul ReduceSum Sqrt", tolerance="sum"),
    row(
        "squares", lambda x: jnp.sum(x * x, 1), X, "ReduceSumSquare", OTHER_FLOATS, tolerance="sum"
    ),
    row("magnitudes", magnitudes, X, "ReduceL1", OTHER_FLOATS, tolerance="sum"),
    row("magnitudes of many", magnitudes, MANY, "Abs ReduceSum", tolerance="sum"),
    row(
        "logarithm of a sum",
        lambda x: jnp.log(jnp.sum(jnp.exp(x) + x, 1)),
        X,
        "Exp Add ReduceLogSum",
    ),
    row(
        "product",
        lambda x: lax.cumprod(x, 1),
        [f32(4, 16)],
        "Reshape Where ReduceProd",
        [[f32(16, 3)]],
    ),
    row("product of many", lambda x: jnp.cumprod(x, 1), [f32(2, 64)], "Pad Slice Mul " * 6),
    row(
        "product, backwards",
        lambda x: lax.cumprod(x, 0, True),
        [f32(9)],
        "Reshape Where ReduceProd",
    ),
    row("slopes", slopes, [f32(2, 3)], "PRelu", [[f32("B", 3)], [f64(2, 3)], [bf16(2, 3)]]),
    row("slopes of many", slopes, [f32(2048, 3)], "GreaterOrEqual Mul Where"),
    row("mean of two", lambda x, y: (x + y) / 2, [f32("B", 4)] * 2, "Mean", [[f64(4)] * 2]),
]
ROWS += [
    row(
        f"one hot of {dtype.__name__}",
        lambda i, dtype=dtype: jax.nn.one_hot(i, 5, dtype=dtype),
        [i32("B", 7, lo=-7, hi=12)],
        "Clip Gather",
    )
    for dtype in (jnp.float32, jnp.int32)
]


@parity([rows for rows, _ in ROWS])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize(
    ("case", "ops"), [(rows[0], ops) for rows, ops in ROWS], ids=lambda v: getattr(v, "name", "")
)
def test_a_short_form_becomes_these_nodes(case, ops):
    model = jaxport.to_onnx(case.fn, structs(case.inputs), opset=23)
    assert [node.op_type for node in model.graph.node] == ops.split()


def test_logsumexp_of_infinities_is_jax_s():
    inf = np.inf
    x = np.array([[-inf, -inf], [inf, 0], [inf, -inf], [-inf, 0], [np.nan, 0]], np.float32)
    model = jaxport.to_onnx(lambda x: jax.nn.logsumexp(x, -1), [(5, 2)])
    equal, message = jaxport.allclose(lambda x: jax.nn.logsumexp(x, -1), model, [x], rtol=1e-6)
    assert equal, message


HOSTILE = np.float32([1, -2, 0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-30])


@pytest.mark.parametrize(
    "fn", [slopes, lambda x: lax.cumprod(x, 1), lambda x: lax.cumprod(x, 0, True)]
)
@pytest.mark.parametrize("opset", [16, 17, 18, 23])
def test_short_forms_of_hostile_numbers_are_jax_s(fn, opset):
    x = np.random.default_rng(0).choice(HOSTILE, (9, 3))
    model = jaxport.to_onnx(fn, [x.shape], opset=opset)
    equal, message = jaxport.allclose(fn, model, [x], rtol=1e-6)
    assert equal, message
