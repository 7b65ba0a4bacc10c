# SPDX-License-Identifier: Apache-2.0
"""How much data the models move: Transpose and Reshape nodes of networks that need some."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest

import jaxport
from support import layouts
from support.cases import case, check, f32, structs


class Row(NamedTuple):
    """A network, its inputs, and the most nodes that its model may move data with."""

    network: Any
    inputs: list[Any]
    transposes: int
    reshapes: int


ROWS = {
    "convnext": Row(layouts.convnext(), [f32(2, 32, 32, 3)], 7, 0),
    "mixer": Row(layouts.mixer(), [f32(2, 32, 32, 3)], 6, 1),
    "unet": Row(layouts.unet(), [f32(2, 16, 16, 3)], 2, 2),
    "group norm residual": Row(layouts.group_norm_residual(), [f32(2, 16, 16, 3)], 2, 4),
    "heads first": Row(layouts.heads_first(), [f32(2, 10, 64)], 0, 0),
    "axial": Row(layouts.axial(), [f32(2, 6, 8, 32)], 4, 8),
    "windowed": Row(layouts.windowed(), [f32(2, 8, 8, 32)], 2, 4),
    "features first": Row(layouts.features_first(), [f32(32, 12, 3)], 2, 0),
    "channels first": Row(layouts.channels_first_cnn(), [f32(2, 3, 16, 16)], 0, 0),
    "mlp gradient": Row(layouts.mlp_gradient(), [f32(16, 32), f32(32, 8), f32(5, 16)], 1, 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_data_movement(name, capfd):
    row = ROWS[name]
    model = jaxport.to_onnx(row.network, structs(row.inputs), opset=23)
    ops = collections.Counter(node.op_type for node in model.graph.node)
    assert ops["Transpose"] <= row.transposes, ops
    assert ops["Reshape"] <= row.reshapes, ops
    (only,) = case(name, row.network, row.inputs, tolerance="network")
    check(only, capfd)
