# SPDX-License-Identifier: Apache-2.0
"""Parameters as inputs of the model: which, under which names, fed with other values."""

from __future__ import annotations

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
    run_on,
    weights_of,
)

X = numbers(2, 4)


class Pair(nnx.Module):
    def __init__(self, rngs):
        self.encoder = nnx.Linear(4, 8, rngs=rngs)
        self.decoder = nnx.Linear(8, 4, rngs=rngs)
        self.scale = nnx.Param(jnp.array(2.0))

    def __call__(self, x):
        return self.decoder(jnp.tanh(self.encoder(x))) * self.scale[...]


def others_for(arrays):
    """Other values for arrays, by name."""
    return {
        name: numbers(*array.shape, seed=seed) for seed, (name, array) in enumerate(arrays.items())
    }


def fed(model, values):
    (name, *_) = inputs_of(model)
    (result,) = run_on(model, {name: X, **values}).values()
    return result


# --- which become inputs


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("decoder.*", {"decoder.kernel", "decoder.bias"}),
        (["*.bias", "scale"], {"encoder.bias", "decoder.bias", "scale"}),
        (lambda path: path.endswith("kernel"), {"encoder.kernel", "decoder.kernel"}),
        (["scale", lambda path: path == "decoder.bias"], {"scale", "decoder.bias"}),
    ],
    ids=["pattern", "patterns", "function", "mixed"],
)
def test_a_filter_chooses_parameters(wanted, names):
    net = Pair(nnx.Rngs(0))
    model = check(net, [("B", 4)], params_as_inputs=wanted)
    assert inputs_of(model)[0] == "x"
    assert set(inputs_of(model)[1:]) == set(model.parameters) == names
    everything = {*("encoder.kernel", "encoder.bias", "decoder.kernel", "decoder.bias", "scale")}
    assert weights_of(model) <= everything - names


def test_a_filter_that_fits_nothing():
    with pytest.raises(jaxport.ConversionError, match="fits no array") as caught:
        jaxport.to_onnx(Pair(nnx.Rngs(0)), [(1, 4)], params_as_inputs="encodr.*")
    assert caught.value.code == "E086"
    assert "encoder.kernel" in str(caught.value)


def test_a_part_of_a_filter_that_fits_nothing():
    wide = np.ones(3)  # JAX narrows it to a new array, which nobody holds under a name
    with pytest.raises(jaxport.ConversionError, match="'wide' fits no array"):
        jaxport.to_onnx(
            lambda x: x @ WEIGHTS["w"] + wide, [(1, 4)], params_as_inputs=["*.w", "wide"]
        )


def test_nothing_is_asked_for():
    for nothing in (None, False):
        model = check(Pair(nnx.Rngs(0)), [(1, 4)], params_as_inputs=nothing)
        assert inputs_of(model) == ["x"]
        assert model.parameters == {}


# --- other values


def test_nnx_with_other_weights():
    net = Pair(nnx.Rngs(0))
    model = check(net, [("B", 4)], params_as_inputs=True)
    assert weights_of(model) == set()
    assert_close(fed(model, {}), net(X))
    other = others_for(model.parameters)
    for path, value in other.items():
        owner, _, leaf = path.rpartition(".")
        variable = getattr(getattr(net, owner) if owner else net, leaf)
        variable[...] = value
    assert_close(fed(model, other), net(X))
    good, message = jaxport.allclose(net, model, [X])
    assert good, message


def test_linen_with_other_weights():
    module = nn.Dense(3)
    variables = module.init(jax.random.key(0), X)
    model = check((module, variables), [("B", 4)], params_as_inputs=True)
    other = others_for(model.parameters)
    assert set(other) == {"params.kernel", "params.bias"}
    swapped = {"params": {name.split(".")[-1]: value for name, value in other.items()}}
    assert_close(fed(model, other), module.apply(swapped, X))


def test_equinox_with_other_weights():
    net = jax.vmap(eqx.nn.Linear(4, 3, key=jax.random.key(0)))
    model = check(net, [("B", 4)], params_as_inputs=True)
    other = others_for(model.parameters)
    assert set(other) == {"weight", "bias"}
    assert_close(fed(model, other), X @ other["weight"].T + other["bias"])


def test_haiku_with_other_weights():
    hk = haiku()
    net = hk.without_apply_rng(hk.transform(lambda x: hk.Linear(3, name="head")(x)))
    params = net.init(jax.random.PRNGKey(0), X)
    model = check((net, params), [("B", 4)], params_as_inputs=True)
    other = others_for(model.parameters)
    swapped = {"head": {name.split(".")[-1]: value for name, value in other.items()}}
    assert_close(fed(model, other), net.apply(swapped, X))


def test_keras_with_other_weights(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="head")], name="net")
    model = check(net, [("B", 4)], params_as_inputs=True)
    other = others_for(model.parameters)
    for variable in net.variables:
        variable.assign(other[variable.path.replace("/", ".")])
    assert_close(fed(model, other), net(X))


def test_state_and_parameters_as_inputs():
    net = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
    model = check(net, [("B", 4)], params_as_inputs=True, state="io")
    assert inputs_of(model) == ["x", "mean", "var", "scale", "bias"]
    assert set(model.state) == {"mean", "var"}
    assert set(model.parameters) == {"scale", "bias"}


# --- plain functions

WEIGHTS = {"w": jnp.asarray(numbers(4, 3)), "b": numbers(3)}


def test_arrays_that_a_function_closes_over():
    scale = numbers(3, seed=1)

    def fn(x):
        return x @ WEIGHTS["w"] * scale + WEIGHTS["b"]

    model = check(fn, [("B", 4)], params_as_inputs=True)
    assert set(inputs_of(model)[1:]) == {"WEIGHTS.w", "WEIGHTS.b", "scale"}
    other = others_for(model.parameters)
    assert_close(fed(model, other), X @ other["WEIGHTS.w"] * other["scale"] + other["WEIGHTS.b"])


def test_arrays_that_functions_under_jit_close_over():
    @jax.jit
    def inner(x):
        return x @ WEIGHTS["w"]

    @jax.jit
    def outer(x):
        return inner(x) + inner(2 * x) + WEIGHTS["w"][0]

    model = check(outer, [("B", 4)], params_as_inputs=True)
    assert inputs_of(model) == ["x", "WEIGHTS.w"]
    other = others_for(model.parameters)
    assert_close(fed(model, other), 3 * X @ other["WEIGHTS.w"] + other["WEIGHTS.w"][0])


SHIFT, SCALE = jnp.asarray(numbers(4, seed=1)), jnp.asarray(numbers(4, seed=2))
add = jax.jit(lambda x: x + SHIFT)
scale = jax.jit(lambda x: x * SCALE)


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: add(y), x), {"SHIFT"}),
        (lambda x: jax.lax.scan(lambda c, y: (add(c), scale(y)), x[0], x), {"SHIFT", "SCALE"}),
        (
            lambda x: jax.lax.while_loop(
                lambda y: add(y).sum() < 50, lambda y: scale(y) ** 2 + y, x
            ),
            {"SHIFT", "SCALE"},
        ),
        (lambda x: jax.lax.cond(x.sum() > 0, add, scale, x), {"SHIFT", "SCALE"}),
        (lambda x: jax.lax.switch(1, [lambda y: y, lambda y: add(add(y))], x), {"SHIFT"}),
        (lambda x: jax.vmap(lambda y: jax.lax.map(lambda z: z + add(x[0]).sum(), y))(x), {"SHIFT"}),
    ],
    ids=["fori_loop", "scan", "while_loop", "cond", "switch", "map under vmap"],
)
def test_arrays_that_jitted_functions_hold_inside_of_control_flow(fn, names, monkeypatch):
    model = check(fn, [(2, 4)], params_as_inputs=True)
    assert set(inputs_of(model)[1:]) == names
    other = others_for(model.parameters)
    given = run_on(model, {"x": X, **other})
    with monkeypatch.context() as patch:
        for name, value in other.items():
            patch.setitem(globals(), name, jnp.asarray(value))
        jax.clear_caches()  # JAX remembers the arrays that jitted functions held before
        expected = jax.tree.leaves(fn(X))
    jax.clear_caches()
    for have, want in zip(given.values(), expected, strict=True):
        assert_close(have, want)


def test_an_array_that_cannot_be_reached():
    matrix = 4 * jnp.eye(4)
    apply = jax.jit(lambda x: matrix @ x)

    def fn(b):
        return jax.lax.custom_linear_solve(apply, b, lambda _, y: apply(y), symmetric=True)

    with pytest.raises(jaxport.ConversionError, match="'matrix' cannot be an input") as caught:
        jaxport.to_onnx(fn, [(4,)], params_as_inputs=True)
    assert caught.value.code == "E086"


def test_arrays_inside_of_loops_and_branches():
    bias = jnp.asarray(numbers(4))

    def fn(x):
        y = jax.lax.fori_loop(0, 3, lambda _, y: y * 0.5 + bias, x)
        return jax.lax.cond(x.sum() > 0, lambda: y + bias, lambda: y)

    model = check(fn, [(2, 4)], params_as_inputs=True)
    assert inputs_of(model) == ["x", "bias"]
    other = others_for(model.parameters)
    y = X
    for _ in range(3):
        y = y * 0.5 + other["bias"]
    assert_close(fed(model, other), y + other["bias"] if X.sum() > 0 else y)


def test_an_array_that_is_used_twice_is_one_input():
    table = jnp.asarray(numbers(4, 4))
    model = check(lambda x: (x @ table) @ table.T, [(2, 4)], params_as_inputs="table")
    assert inputs_of(model) == ["x", "table"]


def test_a_parameter_with_the_name_of_an_input():
    x = jnp.asarray(numbers(4))
    model = jaxport.to_onnx(
        lambda y: y + x, [(4,)], input_names=["x"], params_as_inputs=True, return_mode="model"
    )
    assert inputs_of(model) == ["x", "x_0"]
    assert set(model.parameters) == {"x_0"}


def test_parameters_in_double_precision():
    weights = numbers(4).astype(np.float64)
    model = jaxport.to_onnx(
        lambda x: x * weights,
        [(4,)],
        enable_double_precision=True,
        params_as_inputs=True,
        return_mode="model",
    )
    assert model.parameters["weights"].dtype == np.float64


def test_parameters_inside_of_a_checkpoint():
    weights = {"a": jnp.asarray(numbers(4, 3)), "c": jnp.asarray(numbers(3))}
    inner = jax.jit(lambda x: x @ weights["a"] + weights["c"])
    model = check(jax.checkpoint(lambda x: inner(x) * 2), [("B", 4)], params_as_inputs=True)
    assert len(inputs_of(model)) == 3
