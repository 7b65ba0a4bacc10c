# SPDX-License-Identifier: Apache-2.0
"""Tokens as rows of a matrix: numbers at every size, and what ONNX Runtime makes of the model."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import jaxport
from jaxport._jax import double_precision
from support.tolerances import assert_close

WIDTH, LAYERS = 8, 4


def weights(dtype):
    generator = np.random.default_rng(0)
    shapes = [(WIDTH, 12), (12,), (12, WIDTH), (WIDTH,), (WIDTH,)]
    return [
        [0.3 * generator.normal(size=shape).astype(dtype) for shape in shapes]
        for _ in range(LAYERS)
    ]


def norm(x, scale):
    centered = x - x.mean(-1, keepdims=True)
    return scale * centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def norms_first(x):
    for w1, b1, w2, b2, scale in weights(x.dtype):
        x = x + (jax.nn.gelu(norm(x, scale) @ w1 + b1, approximate=False) @ w2 + b2)
    return x


def no_norms(x):
    for w1, b1, w2, b2, _ in weights(x.dtype):
        x = x + (jax.nn.relu(x @ w1 + b1) @ w2 + b2)
    return x


def norms_last(x):
    for w1, b1, w2, b2, scale in weights(x.dtype):
        x = norm(x + (jax.nn.gelu(x @ w1 + b1, approximate=False) @ w2 + b2), scale)
    return x


def ops(model):
    return collections.Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize(
    ("fn", "dtype", "opset"),
    [(no_norms, "f4", 16), (norms_first, "f4", 17), (norms_first, "f4", 23), (no_norms, "f8", 26)],
)
@pytest.mark.parametrize("dims", [("B", "T"), ("B", 3), (1, 3), ("B", 2, "T")], ids=str)
def test_numbers_at_every_size(fn, dims, dtype, opset):
    double = dtype == "f8"
    with double_precision(double):
        model = jaxport.to_onnx(fn, [(*dims, WIDTH)], opset=opset, enable_double_precision=double)
        assert ops(model)["Gemm"] == 2 * LAYERS
        session = onnxruntime.InferenceSession(model.SerializeToString())
        for batch, length in ((2, 3), (1, 3), (0, 3), (2, 1), (2, 0)):
            sizes = [{"B": batch, "T": length}.get(dim, dim) for dim in dims]
            x = np.random.default_rng(1).normal(size=(*sizes, WIDTH)).astype(dtype)
            (have,) = session.run(None, {session.get_inputs()[0].name: x})
            assert_close(str(sizes), np.asarray(fn(x)), have, "network")


@pytest.mark.parametrize("dims", [("B", 3), (2, 3)], ids=str)
def test_sums_in_front_of_norms_keep_their_kernel(dims, tmp_path):
    model = jaxport.to_onnx(norms_last, [(*dims, WIDTH)], opset=23)
    assert ops(model)["Reshape"] == 0
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options)
    optimised = onnx.load(options.optimized_model_filepath)
    assert ops(optimised)["SkipLayerNormalization"] == LAYERS


def layers(x):
    for w1, b1, w2, b2, _ in weights(x.dtype):
        x = jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
    return x


IN_BODIES = {
    "cond": lambda x: jax.lax.cond(x[0, 0, 0] > 0, layers, lambda y: layers(y * 2), x),
    "switch": lambda x: jax.lax.switch(1, [layers, jnp.sin, lambda y: layers(y + 1)], x),
    "branch and behind": lambda x: (
        layers(jax.lax.cond(x.sum() > 0, layers, jnp.sin, x)) + layers(x)
    ),
    "before a loop": lambda x: jax.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, layers(s[1] + x)), (0, layers(x))
    )[1],
}


@pytest.mark.parametrize("name", IN_BODIES)
def test_rows_of_a_body_stay_in_it(name):
    inputs = [jax.ShapeDtypeStruct((2, 3, WIDTH), jnp.float32)]
    model = jaxport.to_onnx(IN_BODIES[name], inputs)
    equal, message = jaxport.allclose(IN_BODIES[name], model, inputs)
    assert equal, message
