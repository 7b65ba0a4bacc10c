# SPDX-License-Identifier: Apache-2.0
"""State that calls change: frozen with a remark, or inputs and outputs of the model."""

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
    run_on,
)


def remarks_of(model):
    return [finding.reason.split("'")[1] for finding in model.report.left_out]


def steps_of(model, batches, output, **first):
    """Runs a model on one batch after the other, with the state that the last run gave."""
    state, results = dict(model.state), []
    for batch in batches:
        given = run_on(model, {**first, **state, inputs_of(model)[0]: batch})
        results.append(given[output])
        state = {name: given.get(f"{name}_out", value) for name, value in state.items()}
    return results, state


class NnxNorm(nnx.Module):
    def __init__(self):
        self.bn = nnx.BatchNorm(3, momentum=0.5, rngs=nnx.Rngs(0))

    def __call__(self, x):
        return self.bn(x)


class NnxDropout(nnx.Module):
    def __init__(self):
        self.rngs = nnx.Rngs(dropout=7)
        self.dropout = nnx.Dropout(0.5, rngs=self.rngs)

    def __call__(self, x):
        return self.dropout(x)


BATCHES = [numbers(4, 3, seed=seed) for seed in range(3)]


# --- Flax NNX


def test_statistics_of_nnx_are_frozen_with_a_remark():
    net = NnxNorm()
    model = check(net, [(4, 3)])
    assert inputs_of(model) == ["x"]
    assert outputs_of(model) == ["output"]
    assert sorted(remarks_of(model)) == ["bn.mean", "bn.var"]
    assert 'state="io"' in str(model.report)
    assert_close(net.bn.mean[...], np.zeros(3))  # the user's module is as it was


def test_nothing_is_remarked_in_inference():
    net = NnxNorm()
    net.eval()
    for state in ("frozen", "io"):
        model = check(net, [("B", 3)], state=state)
        assert inputs_of(model) == ["x"]
        assert model.report.left_out == ()


def test_statistics_of_nnx_go_in_and_out():
    net = NnxNorm()
    model = check(net, [("B", 3)], state="io")
    assert inputs_of(model) == ["x", "bn.mean", "bn.var"]
    assert outputs_of(model) == ["output", "bn.mean_out", "bn.var_out"]
    assert model.report.left_out == ()
    results, state = steps_of(model, BATCHES, "output")
    for batch, result in zip(BATCHES, results, strict=True):
        assert_close(result, net(batch))
    assert_close(state["bn.mean"], net.bn.mean[...])
    assert_close(state["bn.var"], net.bn.var[...])


def test_random_keys_of_nnx_go_in_and_counters_go_out():
    net = NnxDropout()
    frozen = check(net, [(4, 3)])
    assert set(remarks_of(frozen)) >= {"dropout.rngs.count"}
    model = check(net, [(4, 3)], state="io")
    names = inputs_of(model)[1:]
    assert sorted(names) == ["dropout.rngs.count", "dropout.rngs.key"]
    assert outputs_of(model) == ["output", "dropout.rngs.count_out"]
    results, state = steps_of(model, BATCHES, "output")
    for batch, result in zip(BATCHES, results, strict=True):
        assert_close(result, net(batch))
    assert state["dropout.rngs.count"] == 3
    other = run(model, x=BATCHES[0], **{"dropout.rngs.key": np.array([1, 2], np.uint32)})
    assert not np.array_equal(other["output"], results[0])


def test_nnx_under_jit_hands_on_what_it_does_not_change():
    class Net(nnx.Module):
        def __init__(self):
            self.bn = nnx.BatchNorm(3, momentum=0.5, rngs=nnx.Rngs(0))
            self.linear = nnx.Linear(3, 3, rngs=nnx.Rngs(0))

        @nnx.jit
        def __call__(self, x):
            return nnx.remat(lambda m, y: m(y))(self.linear, self.bn(x))

    model = check(Net(), [("B", 3)], state="io")
    assert inputs_of(model) == ["x", "bn.mean", "bn.var"]
    assert sorted(remarks_of(check(Net(), [("B", 3)]))) == ["bn.mean", "bn.var"]


@pytest.mark.skipif(not hasattr(nnx.Variable, "get_value"), reason="new in Flax 0.12")
def test_a_variable_of_nnx_that_holds_a_tree():
    class Net(nnx.Module):
        def __init__(self):
            self.value = nnx.Variable((jnp.zeros(3), {"steps": jnp.zeros(())}))

        def __call__(self, x):
            total, steps = self.value.get_value()
            self.value.set_value((total + x, {"steps": steps["steps"] + 1}))
            return total + x

    net = Net()
    model = check(net, [(3,)], state="io")
    assert inputs_of(model) == ["x", "value.0", "value.1.steps"]
    results, state = steps_of(model, [batch[0] for batch in BATCHES], "output")
    assert_close(results[2], sum(batch[0] for batch in BATCHES))
    assert state["value.1.steps"] == 3


def test_keys_that_nobody_draws_from_are_no_inputs():
    net = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
    assert remarks_of(check(net, [(2, 5, 3)])) == ["rngs.count"]
    assert inputs_of(check(net, [(2, 5, 3)], state="io")) == ["inputs", "rngs.count"]


def test_a_cache_of_nnx_goes_in_and_out():
    attention = nnx.MultiHeadAttention(2, 4, rngs=nnx.Rngs(0), decode=True)
    attention.init_cache((1, 5, 4))
    model = jaxport.to_onnx(attention, [(1, 1, 4)], return_mode="model", state="io")
    assert inputs_of(model)[1:] == ["cache_index", "cached_key", "cached_value"]
    tokens = [numbers(1, 1, 4, seed=seed) for seed in range(3)]
    results, _ = steps_of(model, tokens, "output")
    for token, result in zip(tokens, results, strict=True):
        assert_close(result, attention(token))


# --- Flax Linen


class LinenNorm(nn.Module):
    training: bool = True

    @nn.compact
    def __call__(self, x):
        return nn.BatchNorm(use_running_average=not self.training, momentum=0.5, name="bn")(x)


def test_statistics_of_linen():
    module = LinenNorm()
    variables = module.init(jax.random.key(0), jnp.ones((2, 3)))
    for fn in ((module, variables), module.bind(variables)):
        frozen = check(fn, [("B", 3)])
        assert inputs_of(frozen) == ["x"]
        assert sorted(remarks_of(frozen)) == ["batch_stats.bn.mean", "batch_stats.bn.var"]
        model = check(fn, [("B", 3)], state="io")
        assert inputs_of(model)[1:] == ["batch_stats.bn.mean", "batch_stats.bn.var"]
        results, state = steps_of(model, BATCHES, "output")
        current = variables
        for batch, result in zip(BATCHES, results, strict=True):
            want, new = module.apply(current, batch, mutable=["batch_stats"])
            current = {**variables, **new}
            assert_close(result, want)
        assert_close(state["batch_stats.bn.mean"], current["batch_stats"]["bn"]["mean"])


def test_random_keys_of_linen():
    module = nn.Dropout(0.5, deterministic=False)
    fn = (module, {}, {"dropout": jax.random.key(3)})
    assert remarks_of(check(fn, [(4, 3)])) == ["rngs.dropout"]
    model = check(fn, [(4, 3)], state="io")
    assert inputs_of(model) == ["inputs", "rngs.dropout"]
    key = jax.random.key(9)
    given = run(model, inputs=BATCHES[0], **{"rngs.dropout": jax.random.key_data(key)})
    assert_close(given["output"], module.apply({}, BATCHES[0], rngs={"dropout": key}))


# --- Equinox


class EqxNorm(eqx.Module):
    norm: eqx.nn.BatchNorm

    def __init__(self):
        self.norm = eqx.nn.BatchNorm(3, axis_name="batch", momentum=0.5, mode="batch")

    def __call__(self, x, state):
        return self.norm(x, state)


def test_state_of_equinox():
    module, state = eqx.nn.make_with_state(EqxNorm)()
    batched = jax.vmap(module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    frozen = check((batched, state), [(4, 3)])
    assert inputs_of(frozen) == ["x"]
    assert outputs_of(frozen) == ["output"]
    assert remarks_of(frozen)
    assert all(name.startswith("norm.") for name in remarks_of(frozen))
    model = check((batched, state), [(4, 3)], state="io")
    assert inputs_of(model)[1:] == [name[: -len("_out")] for name in outputs_of(model)[1:]]
    results, last = steps_of(model, BATCHES, "output")
    current = jax.tree.map(lambda leaf: leaf, state)
    for batch, result in zip(BATCHES, results, strict=True):
        want, current = batched(batch, current)
        assert_close(result, want)
    for have, want in zip(last.values(), jax.tree.leaves(current), strict=True):
        assert_close(have, want)


def test_state_of_equinox_in_inference_mode():
    module, state = eqx.nn.make_with_state(EqxNorm)()
    batched = jax.vmap(
        eqx.nn.inference_mode(module), axis_name="batch", in_axes=(0, None), out_axes=(0, None)
    )
    model = check((batched, state), [("B", 3)])
    assert model.report.left_out == ()


# --- Haiku


def test_state_of_haiku():
    hk = haiku()
    net = hk.transform_with_state(
        lambda x: hk.BatchNorm(True, True, 0.5, name="bn")(x, is_training=True)
    )
    params, state = net.init(None, jnp.ones((2, 3)))
    assert remarks_of(check((net, params, state), [("B", 3)]))
    model = check((net, params, state), [("B", 3)], state="io")
    assert "bn/~/mean_ema.average" in inputs_of(model)
    results, last = steps_of(model, BATCHES, "output")
    current = state
    for batch, result in zip(BATCHES, results, strict=True):
        want, current = net.apply(params, current, None, batch)
        assert_close(result, want)
    assert_close(last["bn/~/mean_ema.average"], current["bn/~/mean_ema"]["average"])


def test_random_keys_of_haiku():
    hk = haiku()
    net = hk.transform(lambda x: hk.dropout(hk.next_rng_key(), 0.5, x))
    fn = (net, {}, jax.random.PRNGKey(1))
    assert remarks_of(check(fn, [(4, 3)])) == ["rng"]
    model = check(fn, [(4, 3)], state="io")
    assert inputs_of(model) == ["x", "rng"]
    key = jax.random.PRNGKey(5)
    assert_close(run(model, x=BATCHES[0], rng=key)["output"], net.apply({}, key, BATCHES[0]))


# --- Keras


def test_state_of_keras(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    net = keras.Sequential(
        [keras.Input((3,), name="x"), keras.layers.BatchNormalization(momentum=0.5, name="bn")],
        name="net",
    )
    training = functools.partial(net, training=True)
    assert sorted(remarks_of(check(training, [("B", 3)]))) == [
        *("net.bn.moving_mean", "net.bn.moving_variance")
    ]
    model = check(training, [("B", 3)], state="io")
    assert inputs_of(model) == ["x", "net.bn.moving_mean", "net.bn.moving_variance"]
    results, last = steps_of(model, BATCHES, "bn")
    for batch, result in zip(BATCHES, results, strict=True):
        assert_close(result, net(batch, training=True))
    assert_close(last["net.bn.moving_mean"], net.layers[0].moving_mean.value)


def test_seeds_of_keras(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    net = keras.Sequential(
        [keras.Input((3,), name="x"), keras.layers.Dropout(0.5, seed=3, name="drop")], name="net"
    )
    model = check(functools.partial(net, training=True), [(4, 3)], state="io")
    (seed,) = inputs_of(model)[1:]
    assert model.state[seed].dtype == np.uint32
    results, _ = steps_of(model, BATCHES, "drop")
    for batch, result in zip(BATCHES, results, strict=True):
        assert_close(result, net(batch, training=True))


def test_variables_that_no_layer_of_keras_lists(monkeypatch):
    keras = keras_on_jax(monkeypatch)
    rnn = keras.layers.LSTM(3, stateful=True, name="rnn")
    net = keras.Sequential([keras.Input((5, 4), batch_size=2, name="x"), rnn], name="net")
    names = ["net.rnn.rnn_state", "net.rnn.rnn_state_0"]
    assert remarks_of(check(net, [(2, 5, 4)])) == names
    model = check(net, [(2, 5, 4)], state="io")
    assert inputs_of(model) == ["x", *names]
    batches = [numbers(2, 5, 4, seed=seed) for seed in range(3)]
    results, _ = steps_of(model, batches, "rnn")
    for batch, result in zip(batches, results, strict=True):
        assert_close(result, net(batch))


# --- others


def test_plain_functions_have_no_state():
    model = check(lambda x: x + 1, [(3,)], state="io")
    assert inputs_of(model) == ["x"]
    assert model.state == {}


def test_an_unknown_mode_of_state():
    with pytest.raises(jaxport.ConversionError, match="state 'keep' is unknown") as caught:
        jaxport.to_onnx(jnp.tanh, [(3,)], state="keep")
    assert caught.value.code == "E075"
