# SPDX-License-Identifier: Apache-2.0
"""jaxport.compare: two models of one function side by side."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import jaxport
from jaxport.comparison import compare_models


def layer(x):
    return jnp.tanh(x @ np.full((3, 2), 0.5, np.float32))


def other_model(op: str = "Tanh", inputs: int = 1) -> onnx.ModelProto:
    """The same function, as another converter might write it."""
    values = [
        helper.make_tensor_value_info(f"in{i}", TensorProto.FLOAT, ["N", 3]) for i in range(inputs)
    ]
    y = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["N", 2])
    w = onnx.numpy_helper.from_array(np.full((3, 2), 0.5, np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["in0", "w"], ["h"]),
        helper.make_node("Identity", ["h"], ["i"]),
        helper.make_node(op, ["i"], ["out"]),
    ]
    graph = helper.make_graph(nodes, "other", values, [y], [w])
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, producer_name="somebody", opset_imports=opset, ir_version=10)


def rows(table) -> dict[str, tuple[str, str]]:
    return {row.what: (row.lhs, row.rhs) for row in table}


def test_same_function():
    result = jaxport.compare(layer, [("B", 3)], other_model())
    assert result.same_values
    facts = rows(result.facts)
    assert facts["opset ai.onnx"] == ("23", "21")
    assert facts["input 0"] == ("x f32[B,3]", "in0 f32[N,3]")
    assert facts["parameters"] == ("6", "6")
    assert facts["nodes"] == ("2", "3")
    assert facts["nodes Identity"] == ("", "1")
    assert "parameters" not in rows(result.differences)
    assert rows(result.values)["output 0 - JAX"][0].startswith(("0", "1", "2", "5"))
    assert min(result.lhs.size, result.rhs.size) > 100
    assert min(result.lhs.milliseconds, result.rhs.milliseconds) > 0


def test_table_is_aligned_and_marks_what_differs():
    lines = str(jaxport.compare(layer, [("B", 3)], other_model())).splitlines()
    assert lines[0].split() == ["jaxport", "other"]
    column = lines[0].index("jaxport")
    for line in lines[1:-1]:
        assert line[column - 2] in " |"
        assert line[column - 1] == " "
    assert any(line.startswith("nodes Identity") and "| -" in line for line in lines)
    assert lines[-1] == "the values agree"


def test_other_values_are_seen():
    result = jaxport.compare(layer, [("B", 3)], other_model("Sin"))
    assert not result.same_values
    assert float(rows(result.values)["output 0 - JAX"][1]) > 0.001
    assert str(result).endswith("THE VALUES DIFFER")


def test_a_result_of_another_dtype_is_named():
    model = onnx.compose.add_prefix(other_model(), "p_")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    model.graph.node.append(helper.make_node("Cast", ["p_out"], ["wide"], to=TensorProto.DOUBLE))
    model.graph.output[0].name = "wide"
    result = jaxport.compare(layer, [("B", 3)], model)
    assert not result.same_values
    assert rows(result.values)["output 0 - JAX"][1] == "float64[2, 2], not float32[2, 2]"


def test_options_are_those_of_to_onnx():
    result = jaxport.compare(layer, [(4, 3)], other_model(), opset=18)
    assert rows(result.facts)["opset ai.onnx"] == ("18", "21")


def test_two_models_without_a_function(tmp_path):
    onnx.save(other_model(), tmp_path / "a.onnx")
    result = compare_models(tmp_path / "a.onnx", other_model("Sin"))
    assert result.lhs.name.endswith("a.onnx")
    assert not result.same_values
    assert compare_models(other_model(), other_model()).same_values


def test_inputs_of_every_kind_are_filled():
    def fn(x, i, flag):
        return x.sum() + i[0] * flag

    inputs = [
        jax.ShapeDtypeStruct(("2*T", 3), jnp.float64),
        jax.ShapeDtypeStruct(("T",), jnp.int64),
        jax.ShapeDtypeStruct((), jnp.bool_),
    ]
    model = jaxport.to_onnx(fn, inputs, enable_double_precision=True)
    model.graph.input[1].type.tensor_type.shape.dim[0].ClearField("dim_param")
    assert compare_models(model, model).same_values


def test_models_of_other_functions_are_refused():
    with pytest.raises(jaxport.ConversionError, match="E093") as caught:
        jaxport.compare(layer, [("B", 3)], other_model(inputs=2))
    assert "model 'other': the model has 2 inputs, 1 were given" in str(caught.value)
    with pytest.raises(jaxport.ConversionError, match="E093") as caught:
        jaxport.compare(lambda x: x + 1, [("B", 4)], other_model())
    assert "does not run on these inputs" in str(caught.value)
