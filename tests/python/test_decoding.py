# SPDX-License-Identifier: Apache-2.0
"""Steps of decoding: caches of keys and values are scattered into and read as they lie."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import jaxport
from raising.libraries import nnx_module

HEADS, SIZE, LENGTH, LAYERS = 4, 16, 128, 2
WIDTH = HEADS * SIZE
CACHE = LENGTH * WIDTH


def weights(layer):
    return np.random.default_rng(layer).standard_normal((4, WIDTH, WIDTH)).astype(np.float32) / 8


def attention(x, w, keys, values, position, time_axis):
    tokens, length = x.shape[1], keys.shape[time_axis]
    q, k, v = ((x @ w[i]).reshape(1, tokens, HEADS, SIZE) for i in range(3))
    if time_axis == 2:
        q, k, v = (part.transpose(0, 2, 1, 3) for part in (q, k, v))
    start = [0, 0, 0, 0]
    start[time_axis] = position
    keys, values = (lax.dynamic_update_slice(a, b, start) for a, b in ((keys, k), (values, v)))
    mask = jnp.arange(length)[None, :] <= position + jnp.arange(tokens)[:, None]
    key = "bshd" if time_axis == 1 else "bhsd"
    query = "bthd" if time_axis == 1 else "bhtd"
    scores = jnp.einsum(f"{query},{key}->bhts", q, keys) / np.float32(np.sqrt(SIZE))
    scores = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    out = jnp.einsum(f"bhts,{key}->bthd", scores, values).reshape(1, tokens, WIDTH)
    return x + out @ w[3], keys, values


def apart(time_axis):
    return lambda x, keys, values, position: attention(
        x, weights(0), keys, values, position, time_axis
    )


def packed(x, cache, position):
    """One array for all layers, as KerasHub's call_with_cache has it."""
    left = []
    for i in range(LAYERS):
        layer = cache[:, i]
        x, keys, values = attention(x, weights(i), layer[:, 0], layer[:, 1], position, 1)
        left.append(jnp.stack((keys, values), axis=1))
    return x, jnp.stack(left, axis=1)


def numbers(*shape):
    return np.random.default_rng(9).standard_normal(shape).astype(np.float32)


def elements(value):
    return math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def moved(model, *ops):
    """The sizes of what these ops give, where it is at least as large as a cache."""
    infos = [*model.graph.value_info, *model.graph.output]
    sizes = {value.name: elements(value) for value in infos}
    nodes = [node for node in model.graph.node if node.op_type in ops]
    return [sizes[node.output[0]] for node in nodes if sizes.get(node.output[0], 0) >= CACHE]


COPIES = ("Concat", "Expand", "Gather", "Slice", "Split", "Transpose", "Where")


@pytest.mark.parametrize("opset", [17, 23, 24])
@pytest.mark.parametrize("tokens", [1, 8])
@pytest.mark.parametrize("time_axis", [1, 2])
def test_caches_are_not_moved(time_axis, tokens, opset):
    shape = (1, LENGTH, HEADS, SIZE) if time_axis == 1 else (1, HEADS, LENGTH, SIZE)
    fn = apart(time_axis)
    inputs = [numbers(1, tokens, WIDTH), numbers(*shape), numbers(*shape), np.int32(70)]
    model = jaxport.to_onnx(fn, inputs, opset=opset)
    if opset >= 23:
        assert [node.op_type for node in model.graph.node].count("ScatterND") == 2
        assert moved(model, *COPIES) == []
    assert jaxport.allclose(fn, model, inputs)[0]


def test_keys_that_are_not_longer_than_queries_move_as_before():
    fn = apart(2)
    shape = (1, HEADS, LENGTH, SIZE)
    inputs = [numbers(1, LENGTH, WIDTH), numbers(*shape), numbers(*shape), np.int32(0)]
    attention = next(
        node for node in jaxport.to_onnx(fn, inputs).graph.node if node.op_type == "Attention"
    )
    assert any(attribute.name == "q_num_heads" for attribute in attention.attribute)


@pytest.mark.parametrize("tokens", [1, 8])
def test_a_packed_cache_is_copied_once_in_and_once_out(tokens):
    inputs = [numbers(1, tokens, WIDTH), numbers(1, LAYERS, 2, LENGTH, HEADS, SIZE), np.int32(70)]
    model = jaxport.to_onnx(packed, inputs)
    assert moved(model, "Gather", "Slice") == [CACHE] * (2 * LAYERS)
    assert moved(model, "Concat") == [2 * LAYERS * CACHE]
    assert moved(model, "Expand", "Split", "Transpose", "Where") == []
    assert jaxport.allclose(packed, model, inputs)[0]


def stacked(x, keys, values, position):
    """One array of keys and one of values, with the layers in front."""
    new_keys, new_values = [], []
    for i in range(len(keys)):
        x, *new = attention(x, weights(i), keys[i], values[i], position, 1)
        new_keys.append(new[0])
        new_values.append(new[1])
    return x, jnp.stack(new_keys), jnp.stack(new_values)


@pytest.mark.parametrize("layers", [2, 4, 6])
def test_stacked_caches_are_put_together_as_they_lie(layers):
    shape = (layers, 1, 8 * LENGTH, HEADS, SIZE)
    inputs = [numbers(1, 1, WIDTH), numbers(*shape), numbers(*shape), np.int32(70)]
    model = jaxport.to_onnx(stacked, inputs)
    assert moved(model, "Gather", "Slice") == [8 * CACHE] * (2 * layers)
    assert moved(model, "Concat") == [layers * 8 * CACHE] * 2
    assert moved(model, "Expand", "Split", "Transpose", "Where") == []
    assert jaxport.allclose(stacked, model, inputs)[0]


def test_flax_decode():
    module = nnx_module(lambda r: nnx.MultiHeadAttention(HEADS, WIDTH, decode=True, rngs=r))
    module.init_cache((1, LENGTH, WIDTH))
    model = jaxport.to_onnx(module, [(1, 1, WIDTH)], state="io")
    assert [node.op_type for node in model.graph.node].count("ScatterND") == 2
    assert moved(model, *COPIES) == []
