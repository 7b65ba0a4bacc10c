# SPDX-License-Identifier: Apache-2.0
"""Names of inputs, outputs and weights."""

from __future__ import annotations

import functools
from typing import NamedTuple

import equinox as eqx
import flax.linen as nn
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxport
from jaxport.inputs import Arguments
from jaxport.names import input_names, output_names
from jaxport.weights import WeightPaths
from raising.libraries import linen_function
from support import models

TABLE = jnp.arange(3.0)


class Pair(NamedTuple):
    left: jax.Array
    right: jax.Array


def weight_names(fn, *inputs):
    model = jaxport.to_onnx(fn, inputs)
    return {tensor.name for tensor in model.graph.initializer}


def paths_of(fn, *arrays):
    paths = WeightPaths(fn)
    return [paths(array) for array in arrays]


def test_nnx_weights_have_paths():
    names = weight_names(models.NnxViT(nnx.Rngs(0)), ("B", 16, 16, 3))
    assert {"blocks.1.up.kernel", "blocks.0.attn.query.kernel", "position", "head.bias"} <= names
    assert not any(name.startswith("var") for name in names)


def test_equinox_weights_have_paths():
    names = weight_names(eqx.nn.MLP(4, 3, 8, 2, key=jax.random.key(0)), (4,))
    assert {"layers.0.weight", "layers.2.bias"} <= names


def test_linen_weights_have_paths():
    module = models.LinenMlp()
    variables = module.init(jax.random.key(0), jnp.ones((1, 4)))
    kernel = variables["params"]["Dense_0"]["kernel"]
    assert paths_of(functools.partial(module.apply, variables), kernel) == [
        "variables.params.Dense_0.kernel"
    ]
    assert paths_of(lambda x: module.apply(variables, x), kernel) == [
        "variables.params.Dense_0.kernel"
    ]
    assert paths_of(module.bind(variables), kernel)[0].endswith("params.Dense_0.kernel")


def test_keras_weights_have_paths(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras", reason="the oldest environment has no Keras")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="hidden")], name="mlp")
    assert weight_names(model, ("B", 4)) == {"mlp.hidden.kernel", "mlp.hidden.bias"}
    kernel = model.layers[0].kernel.value
    assert paths_of(lambda x: model(x), kernel) == ["model.mlp.hidden.kernel"]


def test_a_bound_method_gives_the_paths_of_its_module():
    model = models.NnxMlp(nnx.Rngs(0))
    (kernel, *_) = jax.tree.leaves(nnx.state(model.hidden))
    assert paths_of(model.__call__, kernel) == paths_of(model, kernel) != [""]
    linear = eqx.nn.Linear(4, 3, key=jax.random.key(0))
    assert paths_of(linear.__call__, linear.weight) == ["weight"]


def test_closures_and_partial_arguments():
    params = {"dense": [jnp.ones(3), jnp.zeros(3)]}
    scale = np.ones(3, np.float32)

    def fn(x, w):
        return x * w + params["dense"][1] * scale

    bound = functools.partial(fn, w=params["dense"][0])
    assert paths_of(bound, params["dense"][1], scale) == ["params.dense.1", "scale"]
    assert paths_of(functools.partial(fn, scale), scale) == ["x"]
    assert paths_of(jax.jit(fn), scale) == ["scale"]
    assert paths_of(lambda x: fn(x, x), scale) == ["scale"]


def test_globals_and_defaults_have_paths():
    other = jnp.ones(2)

    def fn(x, weight=other):
        return x + TABLE.sum() + weight

    assert paths_of(fn, TABLE, other) == ["TABLE", "weight"]
    assert paths_of(fn, jnp.ones(2)) == [""]


def test_objects_of_no_pytree_class():
    class Layer:
        def __init__(self):
            self.kernel = jnp.ones(3)
            self.parent = self

        def __call__(self, x):
            return x * self.kernel + TABLE

    layer = Layer()
    assert paths_of(layer, layer.kernel, TABLE) == ["kernel", "TABLE"]
    assert paths_of(lambda x: layer(x), layer.kernel) == ["layer.kernel"]


def test_a_view_of_the_same_bytes_is_the_same_weight():
    weights = np.ones((3, 4), np.float32)
    assert paths_of(lambda x: x @ weights, weights[:]) == ["weights"]
    assert paths_of(lambda x: x @ weights, weights[:1]) == [""]


def test_things_that_cannot_be_walked_are_skipped():
    broken = {1: jnp.ones(2), "a": jnp.ones(2)}  # keys that do not sort
    table = jnp.ones(4)
    assert paths_of(lambda x: (broken, table), table) == ["table"]


@pytest.mark.parametrize(
    ("fn", "args", "names"),
    [
        (lambda x, y: 0, [1, 2], ["x", "y"]),
        (lambda *xs: 0, [1, 2], ["xs_0", "xs_1"]),
        (lambda x, *, flag=True: 0, [1], ["x"]),
        (lambda tree: 0, [{"b": 1, "a": (2, 3)}], ["tree.a.0", "tree.a.1", "tree.b"]),
        (lambda pair: 0, [Pair(1, 2)], ["pair.left", "pair.right"]),
        (functools.partial(lambda w, x: 0, 1), [1], ["x"]),
        (max, [1, 2], ["input_0", "input_1"]),
        (nnx.relu, [1], ["x"]),
    ],
    ids=["two", "star", "keyword", "tree", "named tuple", "partial", "builtin", "jitted"],
)
def test_inputs_are_named_after_parameters(fn, args, names):
    specs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((), jnp.float32), tuple(args))
    assert input_names(fn, Arguments(specs, {}, {}, jax.export.SymbolicScope()), None) == names


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (1, ["output"]),
        ((1, 2), ["output_0", "output_1"]),
        ({"logits": 1, "aux": (2, 3)}, ["aux.0", "aux.1", "logits"]),
        (Pair(1, 2), ["left", "right"]),
        ([{"a": 1}], ["output_0.a"]),
        ({"x": 1}, ["x_0"]),
    ],
    ids=["one", "tuple", "dict", "named tuple", "list of dict", "taken"],
)
def test_outputs_are_named_after_the_result(result, names):
    assert output_names(result, None, ["x"]) == names


def test_given_names_win():
    model = jaxport.to_onnx(
        lambda x: (x, -x), [(3,)], input_names=["image:0"], output_names=["a/b", "c d"]
    )
    assert [i.name for i in model.graph.input] == ["image:0"]
    assert [o.name for o in model.graph.output] == ["a/b", "c d"]


def test_scopes_reach_the_nodes():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3, name="encoder")(x)

    model = jaxport.to_onnx(linen_function(Net(), (1, 4)), [(1, 4)])
    assert any("encoder" in node.name for node in model.graph.node)
