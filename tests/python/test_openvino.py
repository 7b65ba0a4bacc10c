# SPDX-License-Identifier: Apache-2.0
"""Models for OpenVINO, run by ONNX Runtime: what it is spared, and JAX's numbers all the same."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import runtime


def exported(fn, *arrays):
    model = jaxport.to_onnx(fn, list(arrays), return_mode="model", target="openvino")
    session = runtime.open_session(model.to_proto())
    results = runtime.run(session, [np.asarray(array) for array in arrays])
    for have, want in zip(results.values(), jax.tree.leaves(fn(*arrays)), strict=True):
        np.testing.assert_allclose(have, np.asarray(want), rtol=1e-6)
        assert have.dtype == want.dtype
    return [node.op_type for node in model.to_proto().graph.node], model


def test_what_a_model_requires():
    _, model = exported(jnp.sin, np.ones(3, np.float32))
    assert model.requires == "openvino>=2026.4"


def test_nan_is_compared_by_less():
    x = np.array([np.nan, 1, -1], np.float32)
    ops, _ = exported(lambda x: (x > 0, x >= 0, x < 0), x)
    assert sorted(ops) == ["Less", "Less", "LessOrEqual"]


def test_exact_models_keep_nan():
    def fn(x, y):
        return x.max(), jnp.maximum(x, y), jax.nn.relu(y), jnp.exp(x), jnp.clip(y, x, 1.0)

    x, y = np.array([[np.nan, 1, -1, 2], [1, np.nan, 3, 0.5]], np.float32)
    inputs = [x, y]
    model = jaxport.to_onnx(fn, inputs, target="openvino", exact=True)
    ops = [node.op_type for node in model.graph.node]
    assert ops.count("IsNaN") >= 2
    results = runtime.run(runtime.open_session(model), inputs)
    for have, want in zip(results.values(), fn(x, y), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_that_collect(reverse):
    def running(xs, scale):
        step = lambda carry, x: (carry + x * scale, carry * x)  # noqa: E731
        return lax.scan(step, jnp.zeros(3), xs, reverse=reverse)

    xs = np.arange(60, dtype=np.float32).reshape(20, 3) / 10
    ops, _ = exported(running, xs, np.float32(2))
    assert "Loop" in ops
    assert "Scan" not in ops


def test_a_loop_that_does_not_use_its_elements():
    ops, _ = exported(
        lambda x: lax.fori_loop(0, 40, lambda i, y: y * 0.5 + i, x), np.ones(3, np.float32)
    )
    assert "Scan" not in ops


@pytest.mark.parametrize("largest", [False, True])
def test_equal_elements_stay_in_order(largest):
    x = (np.arange(60, dtype=np.int32) * 7 % 4).reshape(2, 30)
    if largest:
        exported(lambda x: lax.top_k(x, 9), x)
    else:
        exported(lambda x: jnp.argsort(x, stable=True), x)


def test_large_u32_are_bits_of_i32():
    x = np.array([0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 3_000_000_019], np.uint32)
    for n in (0, 1, 9, 16, 17, 31):
        exported(lambda x, n=n: lax.shift_right_logical(x, jnp.full_like(x, n)), x)
    exported(lambda x: x * np.uint32(4_000_000_007) + (x ^ np.uint32(0xDEADBEEF)), x)
    exported(lambda x: (x < x[::-1], jnp.maximum(x, x[::-1]), jnp.sort(x)), x)
    exported(lambda key: jax.random.bits(key, (5,)), x[:2])


def test_small_integers_wrap_around():
    for dtype in (np.int8, np.uint8):
        exported(lambda x: x * x + x, np.arange(90, 120).astype(dtype))


def test_what_it_cannot_compute_is_an_error():
    x = jax.ShapeDtypeStruct((3,), jnp.uint32)
    with pytest.raises(jaxport.ConversionError, match="OpenVINO cannot compute Div") as raised:
        jaxport.to_onnx(lambda x, y: lax.div(x, y), [x, x], target="openvino")
    assert raised.value.code == "E013"


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bits_are_counted(dtype):
    x = np.array([0, 1, 6, 2**30 + 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    exported(lax.population_count, x)
    exported(lax.clz, x)


@pytest.mark.parametrize("fn", [lax.population_count, lax.clz])
def test_bits_of_old_operator_sets_are_an_error(fn):
    x = jax.ShapeDtypeStruct((3,), jnp.uint32)
    with pytest.raises(jaxport.ConversionError) as raised:
        jaxport.to_onnx(fn, [x], target="openvino", opset=17)
    assert raised.value.code == "E013"


def test_constants_without_elements():
    fn = lambda x: (jnp.zeros((2, 0)), jnp.concatenate([x, jnp.zeros((0, 3))]))  # noqa: E731
    exported(fn, np.ones((2, 3), np.float32))
