# SPDX-License-Identifier: Apache-2.0
"""Modules of five frameworks as `fn`: what is converted, and what everything is called."""

from __future__ import annotations

import functools

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxport
from support.modules import (
    assert_close,
    check,
    haiku,
    inputs_of,
    keras_on_jax,
    numbers,
    outputs_of,
    run,
    weights_of,
)


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(4, 8, rngs=rngs)
        self.head = nnx.Linear(8, 2, rngs=rngs)

    def encode(self, image):
        return nnx.relu(self.hidden(image))

    def __call__(self, image, *, double=False):
        return self.head(self.encode(image)) * (2 if double else 1)


class LinenNet(nn.Module):
    def setup(self):
        self.hidden = nn.Dense(8)
        self.head = nn.Dense(2)

    def encode(self, image):
        return nn.relu(self.hidden(image))

    def __call__(self, image):
        return self.head(self.encode(image))


class LinenNorm(nn.Module):
    training: bool = False

    @nn.compact
    def __call__(self, x):
        return nn.BatchNorm(use_running_average=not self.training, name="bn")(x)


def linen_net():
    module = LinenNet()
    return module, module.init(jax.random.key(0), jnp.ones((1, 4)))


# --- Flax NNX


def test_nnx_module():
    model = check(NnxNet(nnx.Rngs(0)), [("B", 4)])
    assert inputs_of(model) == ["image"]
    assert weights_of(model) == {"hidden.kernel", "hidden.bias", "head.kernel", "head.bias"}
    assert "func @NnxNet" in model.jir()


def test_method_of_an_nnx_module():
    model = check(NnxNet(nnx.Rngs(0)).encode, [("B", 4)])
    assert inputs_of(model) == ["image"]
    assert weights_of(model) == {"hidden.kernel", "hidden.bias"}


def test_partial_of_an_nnx_module():
    net = NnxNet(nnx.Rngs(0))
    model = check(functools.partial(net, double=True), [(3, 4)])
    x = numbers(3, 4)
    assert_close(run(model, image=x)["output"], 2 * net(x))


def test_a_module_that_was_trained_since_is_converted_anew():
    net = NnxNet(nnx.Rngs(0))
    check(net, [(3, 4)])
    net.head.bias[...] = jnp.array([5.0, -5.0])
    check(net, [(3, 4)])


# --- Flax Linen


def test_linen_module_with_variables():
    model = check(linen_net(), [("B", 4)])
    assert inputs_of(model) == ["image"]
    assert weights_of(model) == {
        *("params.hidden.kernel", "params.hidden.bias", "params.head.kernel", "params.head.bias")
    }


def test_bound_linen_module():
    module, variables = linen_net()
    model = check(module.bind(variables), [("B", 4)])
    assert inputs_of(model) == ["image"]
    assert "params.head.kernel" in weights_of(model)


def test_methods_of_linen_modules():
    module, variables = linen_net()
    for method in (module.bind(variables).encode, (module.encode, variables)):
        model = check(method, [("B", 4)])
        assert inputs_of(model) == ["image"]
        assert weights_of(model) == {"params.hidden.kernel", "params.hidden.bias"}


def test_submodule_of_a_bound_linen_module():
    module, variables = linen_net()
    model = check(module.bind(variables).head, [("B", 8)])
    assert weights_of(model) == {"params.kernel", "params.bias"}


def test_apply_of_a_linen_module_is_a_function():
    module, variables = linen_net()
    check(functools.partial(module.apply, variables), [("B", 4)])
    with pytest.raises(jaxport.ConversionError, match="ScopeCollectionNotFound") as caught:
        jaxport.to_onnx((module, variables["params"]), [(1, 4)])
    assert "module.init" in caught.value.help


@pytest.mark.parametrize("fn", [LinenNet(), (LinenNet(),), LinenNet().encode], ids=str)
def test_linen_module_without_variables(fn):
    with pytest.raises(jaxport.ConversionError, match=r"LinenNet has no variables") as caught:
        jaxport.to_onnx(fn, [(1, 4)])
    assert caught.value.code == "E085"
    assert "(module, variables)" in caught.value.help


# --- Equinox


def test_equinox_module_has_arrays_and_static_fields():
    class Scale(eqx.Module):
        factor: jax.Array
        power: int = eqx.field(static=True)

        def __call__(self, x):
            return (x * self.factor) ** self.power

    model = check(Scale(jnp.array([1.0, 2.0, 3.0]), 2), [("B", 3)])
    assert inputs_of(model) == ["x"]
    assert weights_of(model) == {"factor"}


def test_equinox_under_filter_jit_and_vmap():
    mlp = eqx.nn.MLP(4, 3, 8, 1, key=jax.random.key(0))
    names = {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"}
    for fn in (mlp, jax.vmap(mlp), eqx.filter_jit(mlp), eqx.filter_vmap(mlp)):
        shape = (4,) if fn is mlp or isinstance(fn, type(eqx.filter_jit(mlp))) else ("B", 4)
        assert weights_of(check(fn, [shape])) == names, fn


def test_equinox_in_inference_mode():
    net = eqx.nn.Sequential([eqx.nn.Linear(4, 4, key=jax.random.key(0)), eqx.nn.Dropout(0.5)])
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(net, [(4,)])
    assert "inference" in caught.value.help
    check(eqx.nn.inference_mode(net), [(4,)])


def test_equinox_module_that_misses_its_state():
    norm, _ = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="batch")
    with pytest.raises(jaxport.ConversionError, match="'state'") as caught:
        jaxport.to_onnx(norm, [(4,)])
    assert "(module, state)" in caught.value.help


# --- Haiku


def haiku_net(hk):
    def net(image):
        return hk.nets.MLP([8, 2], name="mlp")(image)

    return hk.transform(net)


def test_haiku_with_and_without_rng():
    hk = haiku()
    for transformed in (haiku_net(hk), hk.without_apply_rng(haiku_net(hk))):
        params = transformed.init(jax.random.PRNGKey(0), jnp.ones((1, 4)))
        model = check((transformed, params), [("B", 4)])
        assert inputs_of(model) == ["image"]
        assert "mlp/~/linear_0.w" in weights_of(model)


def test_haiku_that_needs_a_key():
    hk = haiku()
    net = hk.transform(lambda x: hk.dropout(hk.next_rng_key(), 0.5, x))
    params = net.init(jax.random.PRNGKey(0), jnp.ones(3))
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx((net, params), [(3,)])
    assert "(transformed, params, key)" in caught.value.help
    check((net, params, jax.random.PRNGKey(1)), [(3,)])


def test_haiku_with_state():
    hk = haiku()

    def norm(x, training):
        return hk.BatchNorm(True, True, 0.9, name="bn")(x, is_training=training)

    params, state = hk.transform_with_state(norm).init(None, jnp.ones((2, 3)), True)
    net = hk.transform_with_state(lambda x: norm(x, False))
    model = check((net, params, state), [("B", 3)])
    assert inputs_of(model) == ["x"]
    assert model.report.left_out == ()


def test_haiku_without_variables():
    net = haiku_net(haiku())
    for fn in (net, (net,)):
        with pytest.raises(jaxport.ConversionError, match="Haiku has no variables") as caught:
            jaxport.to_onnx(fn, [(1, 4)])
        assert caught.value.code == "E085"


# --- Keras


def test_sequential_keras_model(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    net = keras.Sequential(
        [
            keras.Input((4,), name="image"),
            keras.layers.Dense(8, name="hidden"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2, name="scores"),
        ],
        name="net",
    )
    model = check(net, [("B", 4)])
    assert (inputs_of(model), outputs_of(model)) == (["image"], ["scores"])
    assert "net.hidden.kernel" in weights_of(model)
    assert model.report.left_out == ()


def functional(keras):
    left = keras.Input((4,), name="left")
    right = keras.Input((3,), name="right")
    joined = keras.layers.Concatenate()([keras.layers.Dense(3, name="narrow")(left), right])
    outputs = [
        keras.layers.Dense(2, name="scores")(joined),
        keras.layers.Dense(1, name="value")(left),
    ]
    return keras.Model([left, right], outputs, name="two")


def test_functional_keras_model_with_several_inputs(monkeypatch):
    net = functional(keras_on_jax(monkeypatch))
    for inputs in ([("B", 4), ("B", 3)], [[("B", 4), ("B", 3)]]):
        model = check(net, inputs)
        assert (inputs_of(model), outputs_of(model)) == (["left", "right"], ["scores", "value"])


def test_functional_keras_model_with_names_in_dicts(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    given = {"b": keras.Input((2,), name="b"), "a": keras.Input((2,), name="a")}
    net = keras.Model(given, {"sum": given["a"] + given["b"], "first": given["a"] * 2})
    model = check(net, [{"a": ("B", 2), "b": ("B", 2)}])
    assert (inputs_of(model), outputs_of(model)) == (["a", "b"], ["first", "sum"])


def test_keras_on_another_backend(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="net")
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(jaxport.ConversionError, match="'net' runs on torch") as caught:
        jaxport.to_onnx(net, [(1, 4)])
    assert caught.value.code == "E087"


def test_subclassed_keras_model(monkeypatch):
    keras = keras_on_jax(monkeypatch)

    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.dense = keras.layers.Dense(2, name="dense")

        def call(self, image):
            return {"scores": self.dense(image)}

    net = Net()
    with pytest.raises(jaxport.ConversionError, match="'net' has no variables"):
        jaxport.to_onnx(net, [(1, 4)])
    net(np.ones((1, 4)))
    model = check(net, [("B", 4)])
    assert (inputs_of(model), outputs_of(model)) == (["image"], ["scores"])
    assert weights_of(model) == {"net.dense.kernel", "net.dense.bias"}
