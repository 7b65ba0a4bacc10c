# SPDX-License-Identifier: Apache-2.0
"""What to_onnx takes: arguments by position and by name, params, images, files."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import Counter
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from flax import nnx

import jaxport


def converted(fn, inputs, **options):
    """The model of a function, after it gave JAX's numbers."""
    model = jaxport.to_onnx(fn, inputs, **options)
    same = ("input_params", "inputs_as_nchw", "outputs_as_nchw", "enable_double_precision")
    also = {name: value for name, value in options.items() if name in same}
    fits, message = jaxport.allclose(fn, model, inputs, **also)
    assert fits, message
    return model


def inputs_of(model):
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }


def affine(x, w, b=1.0, *, scale=2.0):
    return (x @ w + b) * scale


@pytest.mark.parametrize(
    ("jaxport_one", "name"),
    [(jaxport.to_onnx, "to_onnx"), (jaxport.allclose, "allclose"),
     (jaxport.allclose_onnxruntime_web, "allclose_onnxruntime_web"),
     (jaxport.onnx_function, "onnx_function")],
)  # fmt: skip
def test_every_argument_of_jax2onnx_is_there(jaxport_one, name):
    theirs = pytest.importorskip("jax2onnx", reason="make test-jax2onnx installs jax2onnx")
    ours = inspect.signature(jaxport_one).parameters
    by_position = [p.name for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for position, want in enumerate(inspect.signature(getattr(theirs, name)).parameters.values()):
        assert want.name in ours, want.name
        assert ours[want.name].default == want.default, want.name
        if want.kind is want.POSITIONAL_OR_KEYWORD:
            assert by_position[position] == want.name


def test_inputs_by_name_in_their_order():
    model = converted(affine, {"w": (3, 4), "x": ("B", 3)})
    assert inputs_of(model) == {"w": [3, 4], "x": ["B", 3]}


def test_inputs_by_name_of_a_function_that_takes_positions_only():
    assert list(inputs_of(converted(jnp.tanh, {"x": (3,)}))) == ["x"]


def test_a_name_that_is_no_parameter():
    with pytest.raises(jaxport.ConversionError, match="'y'") as caught:
        jaxport.to_onnx(affine, {"x": (2, 3), "w": (3, 4), "y": (4,)})
    assert caught.value.code == "E070"


def test_static_arguments_are_passed_on():
    def fn(x, kind, act, flag, nothing):
        assert nothing is None
        return act(x) if kind == "act" and flag else x

    assert [n.op_type for n in converted(fn, [(3,), "act", jnp.tanh, True, None]).graph.node] == [
        "Tanh"
    ]


def test_params_are_inputs_where_no_value_is_needed():
    model = converted(affine, [("B", 3), (3, 4)], input_params={"scale": 0.5, "b": np.ones(4)})
    assert inputs_of(model) == {"x": ["B", 3], "w": [3, 4], "scale": [], "b": [4]}


def test_a_param_that_a_branch_asks_for_is_a_constant():
    def fn(x, *, scale, deterministic, n):
        return (x if deterministic else -x) * scale + jnp.zeros(n)

    model = jaxport.to_onnx(
        fn, [(3,)], {"deterministic": False, "scale": 3.0, "n": 3}, return_mode="model"
    )
    assert list(inputs_of(model.to_proto())) == ["x", "scale"]
    fixed = {finding.reason.split(" is ")[0] for finding in model.report.left_out}
    assert fixed == {"deterministic=False", "n=3"}
    assert jaxport.allclose(fn, model, [(3,)], {"deterministic": False, "scale": 3.0, "n": 3})[0]


def test_a_param_keeps_the_types_of_its_function():
    model = converted(lambda x, k: x * k, [jax.ShapeDtypeStruct((3,), jnp.float16)],
                      input_params={"k": 0.5})  # fmt: skip
    assert model.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert model.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_deterministic_of_a_module():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.linear = nnx.Linear(3, 4, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x, *, deterministic=False):
            return self.dropout(self.linear(x), deterministic=deterministic)

    model = converted(Net(nnx.Rngs(0)), [("B", 3)], input_params={"deterministic": True})
    assert [node.op_type for node in model.graph.node] == ["Gemm"]


def test_given_names_are_those_of_inputs_alone():
    model = converted(
        affine, [(2, 3), (3, 4)], input_params={"scale": 0.5}, input_names=["a", "weights"]
    )
    assert list(inputs_of(model)) == ["a", "weights", "scale"]


def convolution(x, w):
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def test_images_as_nchw_cost_no_transpose():
    kernels = [
        jax.random.normal(jax.random.key(i), shape)
        for i, shape in enumerate([(3, 3, 3, 8), (3, 3, 8, 8), (1, 1, 8, 5)])
    ]

    def net(x):
        for kernel in kernels:
            x = x[..., :1] + jax.nn.relu(convolution(x, kernel))
        return x

    options = {"inputs_as_nchw": [0], "outputs_as_nchw": [0]}
    model = converted(net, [("B", 6, 7, 3)], **options)
    assert inputs_of(model) == {"x": ["B", 3, 6, 7]}
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim][1:] == [5, 6, 7]
    assert Counter(node.op_type for node in model.graph.node)["Transpose"] == 0
    without = converted(net, [("B", 6, 7, 3)])
    assert Counter(node.op_type for node in without.graph.node)["Transpose"] == 2


def test_only_the_named_outputs_are_nchw():
    model = converted(lambda x: (x, x + 1, x.sum()), [(1, 2, 3, 4)], outputs_as_nchw=[1])
    shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in model.graph.output]
    assert shapes == [[1, 2, 3, 4], [1, 4, 2, 3], []]


def test_recorded_primitives_can_be_converted(tmp_path):
    path = tmp_path / "calls.jir"
    jaxport.to_onnx(affine, [(2, 3), (3, 4)], record_primitive_calls_file=str(path))
    assert "dot_general" in path.read_text()


def test_one_file_for_the_web(tmp_path):
    w = np.ones((64, 64), np.float32)
    options = {"return_mode": "file", "inline_limit": 100, "external_data_threshold": 100}
    jaxport.to_onnx(lambda x: x @ w, [(2, 64)], output_path=tmp_path / "a.onnx", **options)
    jaxport.to_onnx(
        lambda x: x @ w, [(2, 64)], output_path=tmp_path / "b.onnx", export_mode="web", **options
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data", "b.onnx"]


def test_unknown_export_mode():
    with pytest.raises(jaxport.ConversionError, match="export_mode 'page' is unknown"):
        jaxport.to_onnx(jnp.tanh, [(3,)], export_mode="page")


class Pair(NamedTuple):
    left: jax.Array
    right: jax.Array | None


@functools.partial(jax.tree_util.register_dataclass, data_fields=["mean"], meta_fields=["eps"])
@dataclasses.dataclass
class Stats:
    mean: jax.Array
    eps: float


def test_trees_of_every_kind():
    def fn(pair, stats, more):
        return Pair(pair.left - stats.mean + stats.eps, None), {"sum": more["a"][0] + pair.left}

    f32 = jax.ShapeDtypeStruct((3,), jnp.float32)
    model = converted(fn, [Pair(f32, None), Stats(f32, 0.5), {"a": [f32]}])
    assert list(inputs_of(model)) == ["pair.left", "stats.mean", "more.a.0"]


def test_results_that_are_numbers_inputs_and_the_same_value_twice():
    def fn(x):
        y = jnp.sin(x)
        return 3, x, y, y, 2.5, True

    assert len(converted(fn, [(4,)]).graph.output) == 6


def test_a_filtered_jit_of_equinox():
    mlp = eqx.nn.MLP(3, 2, 8, 2, key=jax.random.key(0))
    model = converted(eqx.filter_jit(eqx.filter_vmap(mlp)), [("B", 3)])
    assert Counter(node.op_type for node in model.graph.node) == {"Gemm": 3, "Relu": 2}
