# SPDX-License-Identifier: Apache-2.0
"""jaxport changes no function of JAX, Flax, Equinox, Haiku or Keras, not even for a moment."""

from __future__ import annotations

import importlib
import sys

import equinox as eqx
import flax.linen as nn
import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxport
from jaxport import lowering
from support.modules import haiku, keras_on_jax

PACKAGES = ("jax", "flax", "equinox", "haiku", "keras")
# Public modules that an import of the packages does not load.
for extra in ("jax.export", "jax.image", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.stats"):
    importlib.import_module(extra)


def functions():
    """All functions of all modules of the packages, private ones too; those of classes and the
    rules that primitives hold included."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in PACKAGES and module is not None:
            for key, value in list(vars(module).items()):
                if callable(value):
                    found[f"{name}.{key}"] = value
                if isinstance(value, type | jax.extend.core.Primitive):
                    members = list(vars(value).items())
                    found |= {f"{name}.{key}.{m}": v for m, v in members if is_function(v)}
    return found


def is_function(value):
    return callable(value) or isinstance(value, property | staticmethod | classmethod)


def changes(before, seen):
    return [name for name, function in before.items() if seen.get(name) is not function]


class Net(nnx.Module):
    def __init__(self, observe):
        self.linear = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        self.norm = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
        self.observe = observe

    def __call__(self, x, scale=1.0):
        self.observe()
        return jax.nn.softmax(self.norm(self.linear(x))) * scale


class LinenNet(nn.Module):
    observe: object

    @nn.compact
    def __call__(self, x):
        self.observe()
        return nn.Dense(3)(x)


def equinox_net(observe):
    mlp = eqx.nn.MLP(4, 3, 8, 1, key=jax.random.key(0))
    return lambda x: observe() or mlp(x)


def linen_net(observe):
    variables = LinenNet(lambda: None).init(jax.random.key(0), jnp.ones((1, 4)))
    return LinenNet(observe), variables


def haiku_net(observe):
    hk = haiku()
    net = hk.without_apply_rng(hk.transform(lambda x: observe() or hk.Linear(3)(x)))
    return net, hk.transform(lambda x: hk.Linear(3)(x)).init(jax.random.key(0), jnp.ones((1, 4)))


def keras_net(keras, observe):
    class Layer(keras.layers.Layer):
        def call(self, x):
            observe()
            return x

    return keras.Sequential([keras.Input((4,)), Layer(), keras.layers.Dense(3)])


def edges(observe):
    kernel = jnp.ones((3, 3, 2, 2))
    numbers = ("NHWC", "HWIO", "NHWC")
    convolved = jax.lax.conv_general_dilated

    def fn(x):
        observe()
        return convolved(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)

    return fn


def derivative(observe):
    def loss(x):
        observe()
        return jnp.linalg.norm(jax.scipy.special.erf(jnp.sort(x)))

    return jax.vmap(jax.grad(loss))


def a_loop(observe):
    def fn(x):
        def step(carry, row):  # a new one each time: JAX remembers the trace of an old one
            observe()
            return carry + row, jnp.cumsum(row)

        return jax.lax.scan(step, x[0], x)

    return fn


@pytest.mark.parametrize(
    ("make", "inputs", "options"),
    [
        (Net, [("B", 4)], {}),
        (Net, [("B", 4)], {"state": "io", "params_as_inputs": True}),
        (Net, [("B", 4)], {"input_params": {"scale": 2.0}}),
        (lambda observe: jaxport.onnx_function(Net(observe)), [("B", 4)], {"functions": "auto"}),
        (linen_net, [("B", 4)], {}),
        (equinox_net, [(4,)], {"target": "onnx"}),
        (edges, [("B", 5, 5, 2)], {"inputs_as_nchw": [0], "outputs_as_nchw": [0]}),
        (derivative, [("B", 4)], {"opset": 17}),
        (a_loop, [("T", 4)], {"enable_double_precision": True}),
    ],
    ids=["nnx", "state", "params", "function", "linen", "equinox", "nchw", "derivative", "loop"],
)
def test_nothing_is_patched_while_a_function_is_traced_and_afterwards(make, inputs, options):
    during = []
    fn = make(lambda: during.append(functions()))
    jaxport.to_onnx(fn, inputs, **options)  # what is imported at the first use
    during.clear()
    before = functions()
    jaxport.to_onnx(fn, inputs, **options)
    assert during
    for seen in (*during, functions()):
        assert changes(before, seen) == []


@pytest.mark.parametrize("marked", [False, True], ids=["plain", "marked"])
@pytest.mark.parametrize("name", ["haiku", "keras"])
def test_nothing_of_haiku_and_keras_is_patched(name, marked, monkeypatch):
    keras = keras_on_jax(monkeypatch) if name == "keras" else None
    during = []
    observe = lambda: during.append(functions())  # noqa: E731
    net = haiku_net(observe) if keras is None else keras_net(keras, observe)
    if marked and keras is not None:
        net = jaxport.onnx_function(net)
    options = {"functions": "auto"} if marked else {}
    jaxport.to_onnx(net, [("B", 4)], **options)  # what is imported at the first use
    during.clear()
    before = functions()
    assert any(key.startswith(f"{name}.") for key in before)
    jaxport.to_onnx(net, [("B", 4)], **options)
    assert during
    for seen in (*during, functions()):
        assert changes(before, seen) == []


def test_nothing_is_patched_while_a_model_is_compiled(monkeypatch):
    monkeypatch.setattr(lowering, "_registered", {})
    primitive = jax.extend.core.Primitive("observed")
    primitive.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    during = []

    @jaxport.register_lowering("observed")
    def lower(c, x):
        during.append(functions())
        return c.op.Identity(x)

    before = functions()
    jaxport.to_onnx(lambda x: primitive.bind(jnp.tan(x)).sum(), [("B", 4)])
    assert during
    assert changes(before, during[0]) == []


def test_nothing_is_patched_after_an_error():
    before = functions()
    with pytest.raises(jaxport.ConversionError):
        jaxport.to_onnx(lambda x: x if x > 0 else -x, [()])
    assert changes(before, functions()) == []


def test_nothing_is_patched_while_a_model_is_compared():
    during = []

    def fn(x):
        during.append(functions())
        return jnp.tanh(x)

    before = functions()
    model = jaxport.to_onnx(fn, [(3,)])
    assert jaxport.allclose(fn, model, [np.ones(3, np.float32)])[0]
    for seen in (*during, functions()):
        assert changes(before, seen) == []


def test_all_public_functions_are_looked_at(monkeypatch):
    modules = ("jax", "jax.numpy", "jax.lax", "jax.nn", "jax.random", "jax.scipy.special")
    keras_on_jax(monkeypatch)
    others = ("haiku", "haiku.nets", "keras", "keras.layers", "keras.ops")
    haiku()
    for name in others:
        importlib.import_module(name)
    before = functions()
    for name in (*modules, "flax.nnx", "flax.linen", "equinox", "equinox.nn", *others):
        module = importlib.import_module(name)
        public = [key for key in dir(module) if not key.startswith("_")]
        missing = [
            k for k in public if callable(getattr(module, k)) and f"{name}.{k}" not in before
        ]
        assert missing == []
    monkeypatch.setattr(jnp, "cumsum", lambda x: x)
    monkeypatch.setattr(nnx.Linear, "__call__", lambda self, x: x)
    monkeypatch.setattr("haiku.Linear.__call__", lambda self, x: x)
    monkeypatch.setattr("keras.layers.Dense.call", lambda self, x: x)
    found = changes(before, functions())
    assert "jax.numpy.cumsum" in found
    assert "flax.nnx.Linear.__call__" in found
    assert any(name.startswith("haiku.") and name.endswith("Linear.__call__") for name in found)
    assert any(name.startswith("keras.") and name.endswith("Dense.call") for name in found)
