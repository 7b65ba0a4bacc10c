# SPDX-License-Identifier: Apache-2.0
"""Rows that are gathered several times are multiplied before, where that is less."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from support.cases import f32, i32, structs

NODES, EDGES, WIDTH, OUT = 64, 256, 64, 32
RNG = np.random.default_rng(3)
WEIGHTS = RNG.standard_normal((2 * WIDTH, OUT)).astype(np.float32) / 8
BIAS = RNG.standard_normal(OUT).astype(np.float32)


def messages(x, senders, receivers):
    ends = jnp.concatenate([x[senders], x[receivers]], axis=-1)
    return jnp.tanh(ends @ WEIGHTS + BIAS)


def round_of_messages(x, senders, receivers):
    sent = messages(x, senders, receivers)
    return jax.ops.segment_sum(sent, receivers, NODES)


def arrays(nodes=NODES, edges=EDGES):
    x = RNG.standard_normal((nodes, WIDTH)).astype(np.float32)
    # Some indices are outside, on either side.
    ends = [RNG.integers(-2 * nodes, 2 * nodes, edges).astype(np.int32) for _ in range(2)]
    return [x, *ends]


def products(model):
    infos = {info.name: info for info in model.graph.value_info}
    rows = [
        infos[node.output[0]].type.tensor_type.shape.dim[0].dim_value
        for node in model.graph.node
        if node.op_type in ("Gemm", "MatMul")
    ]
    return sorted(rows)


@pytest.mark.parametrize("fn", [messages, round_of_messages])
def test_fewer_rows_are_multiplied(fn):
    inputs = arrays()
    model = jaxport.to_onnx(fn, inputs)
    assert products(model) == [NODES, NODES]
    assert "Concat" not in [node.op_type for node in model.graph.node]
    assert jaxport.allclose(fn, model, inputs)[0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_only_edges_of_the_node_see_its_numbers(value):
    inputs = arrays()
    inputs[0][5, 7] = value
    model = jaxport.to_onnx(round_of_messages, inputs)
    assert products(model) == [NODES, NODES]
    assert jaxport.allclose(round_of_messages, model, inputs)[0]


@pytest.mark.parametrize(("nodes", "edges"), [(EDGES, EDGES), (EDGES, NODES), (48, 64), (2, 3)])
def test_as_many_nodes_as_edges_are_gathered_first(nodes, edges):
    inputs = arrays(nodes, edges)
    model = jaxport.to_onnx(messages, inputs)
    assert products(model) == [edges]
    assert jaxport.allclose(messages, model, inputs)[0]


def test_sizes_that_are_not_known():
    model = jaxport.to_onnx(messages, structs([f32("N", WIDTH), i32("E"), i32("E")]))
    assert "Concat" in [node.op_type for node in model.graph.node]
    assert jaxport.allclose(messages, model, arrays())[0]
