# SPDX-License-Identifier: Apache-2.0
"""Small idioms: how JAX's users write them, JAX's numbers, and the nodes they become."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import lax

import jaxport
from support.cases import Case, bf16, case, check, f16, f32, f64, parity, structs

X = [f32(4, 8)]
OTHER_FLOATS = [[f32("B", 8)], [bf16(4, 8)], [f16(4, 8)], [f64(4, 8)]]


def idiom(name, fn, inputs, ops, also=(), *, tolerance="function", opsets=(17, 23)):
    """A row: the cases of `fn`, and the nodes of the first one at the newest opset."""
    return case(name, fn, inputs, also, tolerance=tolerance, opsets=opsets), ops


def activation(name, fn, ops, also=OTHER_FLOATS, **options):
    return idiom(name, fn, X, ops, also, **options)


def linen_prelu():
    layer = linen.PReLU()
    variables = layer.init(jax.random.key(0), jnp.ones((4, 8)))
    return lambda x: layer.apply(variables, x)


SLOPES = np.linspace(-0.5, 1.5, 8, dtype=np.float32)

ACTIVATIONS = [
    activation("sigmoid by hand", lambda x: 1 / (1 + jnp.exp(-x)), "Sigmoid"),
    activation("sigmoid of tanh", lambda x: 0.5 * (jnp.tanh(x / 2) + 1), "Sigmoid", also=[]),
    activation("silu by hand", lambda x: x / (1 + jnp.exp(-x)), "Sigmoid Mul"),
    activation("clip", lambda x: jnp.clip(x, -0.5, 0.75), "Clip"),
    activation("clip below", lambda x: jnp.clip(x, -0.5), "Clip"),
    activation("minimum", lambda x: jnp.minimum(x, 0.75), "Clip"),
    activation("min of max", lambda x: jnp.minimum(jnp.maximum(x, -1), 0.5), "Clip", also=[]),
    activation("max of min", lambda x: jnp.maximum(jnp.minimum(x, 0.5), -1), "Clip", also=[]),
    activation("bounds cross", lambda x: jnp.maximum(jnp.minimum(x, -1), 0.5), "Clip Clip"),
    activation("where relu", lambda x: jnp.where(x > 0, x, 0), "ThresholdedRelu"),
    activation("thresholded", lambda x: jnp.where(x > 1.5, x, 0), "ThresholdedRelu"),
    activation("leaky by where", lambda x: jnp.where(x > 0, x, 0.125 * x), "LeakyRelu"),
    activation("leaky by maximum", lambda x: jnp.maximum(x, 0.125 * x), "LeakyRelu"),
    activation("celu", lambda x: jax.nn.celu(x, 0.5), "Celu"),
    activation("hard_sigmoid", jax.nn.hard_sigmoid, "HardSigmoid", tolerance="sum"),
    activation("sparse_sigmoid", jax.nn.sparse_sigmoid, "HardSigmoid"),
    activation("another slope", lambda x: jnp.clip(0.25 * x + 0.5, 0, 1), "HardSigmoid"),
    activation("sparse_plus", jax.nn.sparse_plus, None),
    activation("squareplus", jax.nn.squareplus, "Mul Add Sqrt Add Div"),
    activation("glu", jax.nn.glu, "Split Sigmoid Mul"),
    activation(
        "prelu", lambda x: jnp.where(x >= 0, x, SLOPES * x), "GreaterOrEqual Mul Where", also=[]
    ),
    activation(
        "keras prelu",
        lambda x: jax.nn.relu(x) - SLOPES * jax.nn.relu(-x),
        "GreaterOrEqual Mul Where",
        also=[],
    ),
    activation("linen prelu", linen_prelu(), "LeakyRelu", also=[]),
    activation("equinox prelu", eqx.nn.PReLU(0.25), "LeakyRelu", also=[]),
    activation("nnx prelu", nnx.PReLU(), "LeakyRelu", also=[]),
]

LOG_SUM_EXP = "ReduceMax Clip Reshape Sub Exp ReduceSum Log Add"
REDUCTIONS = [
    idiom("logsumexp", lambda x: jax.nn.logsumexp(x, -1), X, LOG_SUM_EXP, OTHER_FLOATS),
    idiom("logsumexp of all", jax.scipy.special.logsumexp, X, LOG_SUM_EXP.replace("Reshape ", "")),
    idiom(
        "x - logsumexp(x)",
        lambda x: x - jax.nn.logsumexp(x, -1, keepdims=True),
        X,
        "LogSoftmax",
        tolerance="sum",
    ),
]

IMAGE = [f32(2, 8, 8, 3)]
NHWC = "Transpose {} Transpose"


def pool(name, fn, op, also=(), inputs=IMAGE, ops=NHWC):
    return idiom(name, fn, inputs, ops.format(op), also, tolerance="sum")


def average(module, padding, counts_padding=True):
    def fn(x):
        return module.avg_pool(
            x, (3, 3), strides=(2, 2), padding=padding, count_include_pad=counts_padding
        )

    return fn


def haiku_average(x):
    """The spelling of hk.avg_pool."""
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    total = lax.reduce_window(x, 0.0, lax.add, window, strides, "SAME")
    ones = jnp.ones((1, *x.shape[1:3], 1), x.dtype)
    return total / lax.reduce_window(ones, 0.0, lax.add, window, strides, "SAME")


def dilated(x):
    window = lax.reduce_window(
        x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)
    )
    return window / 9


POOLS = [
    pool("linen average", average(linen, "VALID"), "AveragePool", [[f32("B", "H+7", 8, 3)]]),
    pool("nnx average", average(nnx, "SAME"), "AveragePool", [[f32("B", "H+2", 8, 3)]]),
    pool("nnx without padding", average(nnx, "SAME", False), "AveragePool", [[f32("B", 9, 8, 3)]]),
    pool("valid without padding", average(linen, "VALID", False), "AveragePool"),
    pool(
        "haiku average",
        haiku_average,
        "AveragePool",
        [[f32("B", "H+2", "H+2", 3)], [bf16(1, 7, 8, 2)]],
    ),
    pool("dilated average", dilated, "AveragePool", [[f64(2, 8, 8, 3)]]),
    pool(
        "one dim",
        lambda x: linen.avg_pool(x, (2,), strides=(2,)),
        "AveragePool",
        inputs=[f32(2, 8, 3)],
    ),
    pool(
        "three dims",
        lambda x: linen.avg_pool(x, (2, 2, 2)),
        "AveragePool",
        inputs=[f32(2, 4, 5, 6, 3)],
    ),
    pool("max", lambda x: nnx.max_pool(x, (3, 3), strides=(2, 2), padding="SAME"), "MaxPool"),
    pool(
        "equinox",
        eqx.nn.AvgPool2d(2, 2),
        "AveragePool",
        inputs=[f32(3, 8, 8)],
        ops="Reshape {} Reshape",
    ),
    pool(
        "equinox under vmap",
        jax.vmap(eqx.nn.AvgPool2d(3, 2, padding=1)),
        "AveragePool",
        inputs=[f32("B", 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "equinox rounds up",
        jax.vmap(eqx.nn.AvgPool2d(3, 2, padding=1, use_ceil=True)),
        "AveragePool",
        inputs=[f32(2, 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "equinox maximum rounds up",
        jax.vmap(eqx.nn.MaxPool2d(3, 2, padding=1, use_ceil=True)),
        "MaxPool",
        inputs=[f32(2, 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "another divisor",
        lambda x: average(linen, "VALID")(x) * 0.5,
        "AveragePool",
        ops="Transpose {} Transpose Mul",
    ),
]

TABLES = [*ACTIVATIONS, *REDUCTIONS, *POOLS]


@parity([rows for rows, _ in TABLES])
def test_idiom(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize(
    ("case", "ops"),
    [(rows[0], ops) for rows, ops in TABLES if ops],
    ids=lambda v: getattr(v, "name", ""),
)
def test_nodes(case, ops):
    assert " ".join(nodes(case)) == ops


def nodes(case: Case, **options) -> list[str]:
    model = jaxport.to_onnx(case.fn, structs(case.inputs), opset=max(case.opsets), **options)
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(
    ("fn", "op"),
    [
        (lambda x: jax.nn.logsumexp(x, -1), "ReduceLogSumExp"),
        (lambda x: jnp.where(x >= 0, x, SLOPES * x), "PRelu"),
    ],
)
def test_op_that_onnx_runtime_runs_slowly_is_left_to_other_runtimes(fn, op):
    model = jaxport.to_onnx(fn, [(4, 8)], target="onnx")
    assert [node.op_type for node in model.graph.node] == [op]
    equal, message = jaxport.allclose(fn, model, [np.linspace(-3, 3, 32).reshape(4, 8)], rtol=1e-6)
    assert equal, message


def test_logsumexp_of_infinities_is_jax_s():
    inf = np.inf
    x = np.array([[-inf, -inf], [inf, 0], [inf, -inf], [-inf, 0], [np.nan, 0]], np.float32)
    model = jaxport.to_onnx(lambda x: jax.nn.logsumexp(x, -1), [(5, 2)])
    equal, message = jaxport.allclose(lambda x: jax.nn.logsumexp(x, -1), model, [x], rtol=1e-6)
    assert equal, message
