# SPDX-License-Identifier: Apache-2.0
"""A marked module of each framework under vmap, grad and scan: it stays a function of the model."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import jaxport
from jaxport import onnx_function, runtime
from support.modules import haiku, keras_on_jax, numbers

SIZE = 4


def nnx_layer(monkeypatch):
    return onnx_function(nnx.Linear(SIZE, SIZE, rngs=nnx.Rngs(0)))


def linen_layer(monkeypatch):
    @onnx_function
    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(SIZE)(x)

    variables = Layer().init(jax.random.key(0), jnp.ones(SIZE))
    return lambda x: Layer().apply(variables, x)


def equinox_layer(monkeypatch):
    return onnx_function(eqx.nn.Linear(SIZE, SIZE, key=jax.random.key(0)))


def haiku_layer(monkeypatch):
    hk = haiku()

    @onnx_function
    class Layer(hk.Module):
        def __call__(self, x):
            return hk.Linear(SIZE)(x)

    net = hk.without_apply_rng(hk.transform(lambda x: Layer()(x)))
    weights = net.init(jax.random.key(0), jnp.ones(SIZE))
    return lambda x: net.apply(weights, x)


def keras_layer(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    layer = keras.layers.Dense(SIZE)
    layer.build((None, SIZE))
    marked = onnx_function(layer)
    return lambda x: marked(x[None])[0]  # Keras' layers want a batch


def by_vmap(layer):
    return jax.vmap(lambda row: jnp.tanh(layer(row)))


def by_grad(layer):
    return jax.grad(lambda x: sum(jnp.sum(layer(row) ** 2) for row in (x[0], x[1])))


def by_scan(layer):
    def step(carry, row):
        new = jnp.tanh(layer(carry) + row)
        return new, new

    return lambda x: lax.scan(step, x[0], x)[1]


LAYERS = {
    "nnx": nnx_layer,
    "linen": linen_layer,
    "equinox": equinox_layer,
    "haiku": haiku_layer,
    "keras": keras_layer,
}


@pytest.mark.parametrize("transform", [by_vmap, by_grad, by_scan])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_a_marked_module_under_a_transformation(layer, transform, monkeypatch):
    fn = transform(layer(monkeypatch))
    x = numbers(3, SIZE)
    model = jaxport.to_onnx(fn, [(3, SIZE)])
    assert model.functions
    called = {node.op_type for node in all_nodes(model)}
    assert {function.name for function in model.functions} <= called
    (result,) = runtime.run(runtime.open_session(model), [x]).values()
    np.testing.assert_allclose(result, fn(x), rtol=1e-5, atol=1e-6)


def all_nodes(model):
    waiting = [*model.graph.node, *(node for f in model.functions for node in f.node)]
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting.extend(attribute.g.node)


def test_a_class_of_keras_that_is_marked(monkeypatch):
    keras = keras_on_jax(monkeypatch)

    @onnx_function
    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(SIZE, activation="relu")

        def build(self, shape):
            self.dense.build(shape)

        def call(self, x):
            return self.dense(x) + x

    net = keras.Sequential([keras.Input((SIZE,)), Block(), Block()])
    x = numbers(2, SIZE)
    model = jaxport.to_onnx(net, [("B", SIZE)])
    assert [function.name for function in model.functions] == ["Block", "Block_2"]
    (result,) = runtime.run(runtime.open_session(model), [x]).values()
    np.testing.assert_allclose(result, np.asarray(net(x)), rtol=1e-5, atol=1e-6)
