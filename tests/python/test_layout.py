# SPDX-License-Identifier: Apache-2.0
"""What lowering moves and folds where the layouts of a program disagree.

Whole networks have their bounds in raising/stress.py and raising/structures.py.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import jaxport
from support.cases import case, check, f32, structs

RANDOM = np.random.default_rng(0)


def weight(*shape: int) -> jax.Array:
    return jnp.asarray(RANDOM.normal(size=shape) / 4, jnp.float32)


KERNEL, BIAS, PIXEL_BIAS = weight(3, 3, 3, 8), weight(8), weight(6, 8)
MEAN, SCALE = np.array([0.4, -0.5, 0.3], np.float32), np.array([0.5, 2.0, 3.0], np.float32)
TOKENS, FEATURES = [weight(6, 6) for _ in range(2)], [weight(8, 8) for _ in range(2)]


def conv(x: Any, padding: str = "SAME", groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x,
        KERNEL[:, :, ::groups, : 8 // groups * groups],
        (1, 1),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def windows(x: Any, size: int) -> Any:
    """[N, H, W, C] -> [windows, tokens of a window, C]"""
    n, height, width, c = x.shape
    tiles = x.reshape(n, height // size, size, width // size, size, c)
    return tiles.transpose(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


def mixed(x: Any) -> Any:
    """A step over tokens, a step over features, each with its residual."""
    for tokens, features in zip(TOKENS, FEATURES, strict=True):
        x = x + jnp.tanh(jnp.swapaxes(jnp.swapaxes(x, 1, 2) @ tokens, 1, 2))
        x = x + jnp.tanh(x @ features)
    return x


def looped(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, y: mixed(y), x)


class Row(NamedTuple):
    """A function, its inputs, and how many nodes of some ops its model has, bodies included."""

    fn: Any
    inputs: list[Any]
    ops: dict[str, int]


IMAGE = [f32(2, 6, 6, 3)]
ROWS = {
    "bias of a convolution": Row(lambda x: conv(x) + BIAS, IMAGE, {"Add": 0, "Transpose": 2}),
    "bias first": Row(lambda x: BIAS + conv(x), IMAGE, {"Add": 0}),
    "bias along another axis": Row(lambda x: conv(x) + PIXEL_BIAS, IMAGE, {"Add": 1}),
    "bias that is a scalar": Row(lambda x: conv(x) + 0.5, IMAGE, {"Add": 1}),
    "convolution with two users": Row(
        lambda x: (conv(x) + BIAS) * conv(x), IMAGE, {"Add": 1, "Conv": 1}
    ),
    "shift and scale before a convolution": Row(
        lambda x: conv((x - MEAN) / SCALE, "VALID"), IMAGE, {"Sub": 0, "Div": 0, "Add": 0}
    ),
    "shift before a padded convolution": Row(lambda x: conv(x - MEAN), IMAGE, {"Sub": 1}),
    "scale before a padded convolution": Row(lambda x: conv(x * SCALE), IMAGE, {"Mul": 0}),
    "scale of pixels before a convolution": Row(
        lambda x: conv(x * SCALE[:2].repeat(3)[:, None], "VALID"), IMAGE, {"Mul": 1}
    ),
    "scale before a convolution in groups": Row(
        lambda x: conv(x * SCALE, "VALID", 3), IMAGE, {"Mul": 1}
    ),
    "windows before a norm": Row(
        lambda x: windows(jax.nn.standardize(x + 1), 3), IMAGE, {"Transpose": 1, "Reshape": 2}
    ),
    "mixed steps": Row(mixed, [f32(2, 6, 8)], {"Transpose": 0, "Reshape": 0}),
    "mixed steps in a loop": Row(looped, [f32(2, 6, 8)], {"Transpose": 0, "Reshape": 0}),
    "constant from the left": Row(
        lambda x: jnp.einsum("btc,ts->bsc", x, TOKENS[0]),
        [f32("B", 6, 8)],
        {"Transpose": 0, "MatMul": 1},
    ),
    "constant that shares an axis of the result": Row(
        lambda x: jnp.einsum("btc,bts->bsc", x, jnp.stack(TOKENS)), [f32(2, 6, 8)], {"MatMul": 1}
    ),
}


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


@pytest.mark.parametrize("name", ROWS)
def test_a_layout_costs_no_more_than_this(name, capfd):
    row = ROWS[name]
    (only,) = case(name, row.fn, row.inputs, tolerance="network")
    check(only, capfd)
    model = jaxport.to_onnx(row.fn, structs(row.inputs), opset=23)
    ops = collections.Counter(node.op_type for node in nodes_of(model.graph))
    assert {op: ops[op] for op in row.ops} == row.ops
