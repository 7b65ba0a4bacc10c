# SPDX-License-Identifier: Apache-2.0
"""jaxport.onnx_function on one module, or a method of one: it stays the module that it is."""

from __future__ import annotations

import copy

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxport
from jaxport import onnx_function, runtime


class Counter(nnx.Module):
    """Its call changes its state."""

    def __init__(self):
        self.count = nnx.Variable(jnp.zeros(()))

    def __call__(self, x):
        self.count[...] = self.count[...] + 1
        return x * self.count[...]

    def both(self, x):
        return self(x) + self(x)


class Twice(nnx.Module):
    def __init__(self, counter):
        self.counter = counter

    def __call__(self, x):
        return self.counter(x) + self.counter(x)


def result_of(model, x):
    (result,) = runtime.run(runtime.open_session(model), [x]).values()
    return result


@pytest.mark.parametrize(
    ("net", "factor", "functions"),
    [
        (lambda: onnx_function(Counter()), 1, ["Counter"]),
        (lambda: onnx_function(Counter(), name="count", unique=True), 1, ["count"]),
        (lambda: Twice(onnx_function(Counter())), 3, ["Counter", "Counter_2"]),
        (lambda: onnx_function(Twice(Counter())), 3, ["Twice"]),
        (lambda: onnx_function(Counter().both), 3, ["both"]),
    ],
    ids=["module", "named", "held by another", "holds another", "method"],
)
def test_a_module_of_nnx_that_changes_its_state(net, factor, functions):
    x = np.arange(3, dtype=np.float32)
    model = jaxport.to_onnx(net(), [(3,)])
    assert [function.name for function in model.functions] == functions
    np.testing.assert_allclose(result_of(model, x), factor * x)


def test_state_goes_in_and_out():
    model = jaxport.to_onnx(
        Twice(onnx_function(Counter())), [(3,)], state="io", return_mode="model"
    )
    assert list(model.state) == ["counter.count"]
    ones = np.ones(3, np.float32)
    _, count = runtime.run(runtime.open_session(model), [ones, np.float32(5)]).values()
    assert count == 7


def test_the_module_stays_what_it_is():
    linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    other = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    plain, x = linear(jnp.ones((1, 2))), jnp.ones((1, 2))
    assert onnx_function(linear) is linear
    assert isinstance(linear, nnx.Linear)
    assert type(linear).__qualname__ == "Linear"
    assert type(other) is nnx.Linear  # no other module is marked
    assert not jaxport.to_onnx(other, [(1, 2)]).functions
    assert jnp.array_equal(copy.deepcopy(linear)(x), plain)
    with pytest.raises(ValueError, match=r"custom\.Linear"):
        onnx_function(linear, namespace="other")


class EquinoxNet(eqx.Module):
    linear: eqx.nn.Linear

    def __call__(self, x):
        return self.linear(x) + 1


class LinenNet(nn.Module):
    def setup(self):
        self.dense = onnx_function(nn.Dense(3))

    def __call__(self, x):
        return self.dense(x) + 1

    def twice(self, x):
        return self(self(x))


def test_a_module_of_equinox_keeps_its_weights():
    net = EquinoxNet(onnx_function(eqx.nn.Linear(3, 3, key=jax.random.key(0))))
    assert len(jax.tree.leaves(net)) == 2
    model = jaxport.to_onnx(net, [(3,)], params_as_inputs=True)
    assert [function.name for function in model.functions] == ["Linear"]
    assert [value.name for value in model.graph.input] == ["x", "linear.weight", "linear.bias"]


def test_a_module_of_linen_keeps_its_weights():
    net, x = LinenNet(), np.ones((2, 3), np.float32)
    variables = net.init(jax.random.key(0), x)
    assert list(variables["params"]) == ["dense"]
    model = jaxport.to_onnx((net, variables), [(2, 3)])
    assert [function.name for function in model.functions] == ["Dense"]
    np.testing.assert_allclose(result_of(model, x), net.apply(variables, x), rtol=1e-6)


def test_a_method_of_linen():
    net, x = LinenNet(), np.ones((2, 3), np.float32)
    variables = net.init(jax.random.key(0), x)
    model = jaxport.to_onnx((onnx_function(net.twice), variables), [(2, 3)])
    assert [function.name for function in model.functions] == ["Dense", "twice"]
    wanted = net.apply(variables, x, method="twice")
    np.testing.assert_allclose(result_of(model, x), wanted, rtol=1e-6)
