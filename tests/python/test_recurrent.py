# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells under scan: one LSTM, GRU or RNN node where the runtime is faster with it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import lax

import jaxport
from raising.libraries import equinox_module, filled, linen_function, nnx_module
from support.cases import bf16, case, check, f16, f32, f64, parity, structs

KEY = jax.random.key(0)
FEATURES, UNITS = 3, 4


def weights(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / 2


def zeros(x, count):
    """The initial state for sequences [steps, batch, features]."""
    zero = jnp.zeros((*x.shape[1:-1], UNITS), x.dtype)
    return (zero, zero) if count == 2 else zero


def of_nnx(make, states):
    cell = nnx_module(lambda rngs: make(FEATURES, UNITS, rngs=rngs))
    return lambda x: lax.scan(cell, zeros(x, states), x)


def of_linen(make):
    return linen_function(linen.RNN(make(UNITS), return_carry=True), (1, 2, FEATURES))


def linen_bidirectional():
    module = linen.Bidirectional(linen.RNN(linen.LSTMCell(UNITS)), linen.RNN(linen.GRUCell(UNITS)))
    return linen_function(module, (1, 2, FEATURES))


def of_equinox(make):
    cell = equinox_module(lambda: make(FEATURES, UNITS, key=KEY))

    def step(state, x):
        state = cell(x, state)
        return state, state[0] if isinstance(state, tuple) else state

    def fn(x):
        return lax.scan(step, zeros(x, 2 if make is eqx.nn.LSTMCell else 1), x)

    return fn


def haiku_lstm(x):
    """x and h side by side; 1 is added to the forget gate."""
    w, b = weights(FEATURES + UNITS, 4 * UNITS), weights(4 * UNITS)

    def step(state, x):
        h, c = state
        i, g, f, o = jnp.split(jnp.concatenate([x, h], -1) @ w + b, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, zeros(x, 2), x)


def haiku_gru(x):
    """z brings the new value; r scales the state."""
    w, u, b = weights(FEATURES, 3 * UNITS), weights(UNITS, 3 * UNITS), weights(3 * UNITS)

    def step(h, x):
        x_zr, x_a = jnp.split(x @ w, [2 * UNITS], -1)
        zr = jax.nn.sigmoid(x_zr + h @ u[:, : 2 * UNITS] + b[: 2 * UNITS])
        z, r = jnp.split(zr, 2, -1)
        a = jnp.tanh(x_a + (r * h) @ u[:, 2 * UNITS :] + b[2 * UNITS :])
        h = (1 - z) * h + z * a
        return h, h

    return lax.scan(step, zeros(x, 1), x)


def keras_gru(x):
    """Sequences first; the products with x outside of the loop, r after the product with h."""
    w, u, b = weights(FEATURES, 3 * UNITS), weights(UNITS, 3 * UNITS), weights(2, 3 * UNITS)

    def step(h, x):
        x_z, x_r, x_h = jnp.split(x, 3, -1)
        h_z, h_r, h_h = jnp.split(h @ u + b[1], 3, -1)
        z, r = jax.nn.sigmoid(x_z + h_z), jax.nn.sigmoid(x_r + h_r)
        h = z * h + (1 - z) * jnp.tanh(x_h + r * h_h)
        return h, h

    steps = jnp.swapaxes(x @ w + b[0], 0, 1)
    last, ys = lax.scan(step, zeros(steps, 1), steps)
    return jnp.swapaxes(ys, 0, 1), last


def lstm_step(w, r, b):
    def step(state, x):
        c, h = state
        i, f, g, o = jnp.split(x @ w + h @ r + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (c, h), h

    return step


STEP = lstm_step(weights(FEATURES, 4 * UNITS), weights(UNITS, 4 * UNITS), weights(4 * UNITS))


def both_directions(x):
    there = lax.scan(STEP, zeros(x, 2), x)[1]
    back = lax.scan(STEP, zeros(x, 2), x, reverse=True)[1]
    return jnp.concatenate([there, back], -1)


def given_state(x, c, h):
    return lax.scan(STEP, (c, h), x)


def given_weights(x, w, r, b):
    return lax.scan(lstm_step(w, r, b), zeros(x, 2), x)


def two_layers(x):
    second = lstm_step(weights(UNITS, 4 * UNITS), weights(UNITS, 4 * UNITS), weights(4 * UNITS) * 2)
    first = lax.scan(STEP, zeros(x, 2), x)[1]
    return lax.scan(second, zeros(x, 2), first)[1]


def simple(activation):
    w, r, b = weights(FEATURES, UNITS), weights(UNITS, UNITS), weights(UNITS)

    def step(h, x):
        w_, r_, b_ = (array.astype(x.dtype) for array in (w, r, b))
        h = activation(x @ w_ + h @ r_ + b_)
        return h, h

    return lambda x: lax.scan(step, zeros(x, 1), x)


def half_weights(xs, w, r):
    """Products of halves that are f32, as those who train in mixed precision write them."""

    def times(a, b):
        dims = (((a.ndim - 1,), (0,)), ((), ()))
        return lax.dot_general(a, b, dims, preferred_element_type=jnp.float32)

    def step(h, x):
        in_r, in_z, in_n = jnp.split(times(x, w), 3, -1)
        h_r, h_z, h_n = jnp.split(times(h, r), 3, -1)
        reset, update = jax.nn.sigmoid(in_r + h_r), jax.nn.sigmoid(in_z + h_z)
        h = (1 - update) * jnp.tanh(in_n + reset * h_n) + update * h
        return h, h

    return lax.scan(step, jnp.zeros((xs.shape[1], UNITS), jnp.float32), xs)


def every_c(state, x):
    state, _ = STEP(state, x)
    return state, state[0]


def cell(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="network")


STEPS = [f32("T", "B", FEATURES)]
SEQUENCES = [f32("B", "T", FEATURES)]
ONE = [f32(6, FEATURES)]

LSTM = [
    cell("nnx LSTMCell", of_nnx(nnx.LSTMCell, 2), [f32(6, 2, FEATURES)], also=[STEPS]),
    cell("nnx OptimizedLSTMCell", of_nnx(nnx.OptimizedLSTMCell, 2), STEPS),
    cell("linen LSTMCell", of_linen(linen.LSTMCell), SEQUENCES),
    cell("linen OptimizedLSTMCell", of_linen(linen.OptimizedLSTMCell), SEQUENCES),
    cell("equinox LSTMCell", of_equinox(eqx.nn.LSTMCell), ONE, also=[[f32("T", FEATURES)]]),
    cell("equinox LSTMCell vmapped", jax.vmap(of_equinox(eqx.nn.LSTMCell)), SEQUENCES),
    cell(
        "equinox LSTMCell vmapped twice",
        jax.vmap(jax.vmap(of_equinox(eqx.nn.LSTMCell), in_axes=1)),
        [f32(2, 6, 3, FEATURES)],
    ),
    cell("as Haiku writes it", haiku_lstm, STEPS),
    cell("given state", given_state, [*STEPS, f32("B", UNITS), f32("B", UNITS)]),
    cell(
        "given weights",
        given_weights,
        [*STEPS, f32(FEATURES, 16), f32(UNITS, 16), f32(16)],
    ),
    cell("last state only", lambda x: lax.scan(STEP, zeros(x, 2), x)[0], STEPS),
]
GRU = [
    cell("nnx GRUCell", of_nnx(nnx.GRUCell, 1), [f32(6, 2, FEATURES)], also=[STEPS]),
    cell("linen GRUCell", of_linen(linen.GRUCell), SEQUENCES),
    cell("linen MGUCell", of_linen(linen.MGUCell), SEQUENCES),
    cell("equinox GRUCell", of_equinox(eqx.nn.GRUCell), ONE, also=[[f32("T", FEATURES)]]),
    cell("equinox GRUCell vmapped", jax.vmap(of_equinox(eqx.nn.GRUCell)), SEQUENCES),
    cell("as Haiku writes it", haiku_gru, STEPS),
    cell("as Keras writes it", keras_gru, SEQUENCES),
    cell(
        "weights in halves",
        half_weights,
        [*STEPS, f16(FEATURES, 12), f16(UNITS, 12)],
        also=[
            [f16("T", "B", FEATURES), f32(FEATURES, 12), f32(UNITS, 12)],
            [f16("T", "B", FEATURES), bf16(FEATURES, 12), f16(UNITS, 12)],
        ],
    ),
]
RNN = [
    cell("tanh", simple(jnp.tanh), ONE, also=[[f32("T", FEATURES)], [f32("T", 1, FEATURES)]]),
]
TWO = [
    cell("both directions", both_directions, STEPS),
    cell("linen Bidirectional", linen_bidirectional(), SEQUENCES),
    cell("two layers", two_layers, STEPS),
]
LOOPS = [
    cell("another activation", simple(jax.nn.sigmoid), STEPS),
    cell("relu, of which the op makes 0 where it is NaN", simple(jax.nn.relu), ONE),
    cell("several sequences of a simple cell", simple(jnp.tanh), STEPS),
    cell("f64", simple(jnp.tanh), [f64("T", FEATURES)]),
    cell("f16", simple(jnp.tanh), [f16("T", FEATURES)]),
    cell(
        "a cell for each element of a batch",
        jax.vmap(lambda x, w: given_weights(x, w, jnp.ones((UNITS, 16)), jnp.ones(16))),
        [f32(2, 6, FEATURES), f32(2, FEATURES, 16)],
    ),
    cell("every c", lambda x: lax.scan(every_c, zeros(x, 2), x)[1], STEPS),
    cell("its gradient", jax.grad(lambda x: both_directions(x).sum()), [f32(6, 2, FEATURES)]),
]


def ops(case):
    stats = jaxport.to_onnx(
        case.fn,
        structs(case.inputs),
        return_mode="model",
        enable_double_precision=case.needs_double_precision,
    ).stats()
    return stats["ops"]


def assert_ops(case, **expected):
    found = ops(case)
    assert {op: found.get(op, 0) for op in ("GRU", "LSTM", "RNN", "Scan")} == {
        op: expected.get(op, 0) for op in ("GRU", "LSTM", "RNN", "Scan")
    }


@parity(LSTM)
def test_an_lstm_is_one_node(case, capfd):
    check(case, capfd)
    assert_ops(case, LSTM=1)


@parity(GRU)
def test_a_gru_is_one_node(case, capfd):
    check(case, capfd)
    assert_ops(case, GRU=1)


@parity(RNN)
def test_an_rnn_is_one_node(case, capfd):
    check(case, capfd)
    assert_ops(case, RNN=1)


@parity(TWO)
def test_two_cells_leave_no_loop(case, capfd):
    check(case, capfd)
    assert "Scan" not in ops(case)


@parity(LOOPS)
def test_what_stays_a_scan(case, capfd):
    check(case, capfd)
    found = ops(case)
    assert found["Scan"] >= 1
    assert not {"GRU", "LSTM", "RNN"} & set(found)


@pytest.mark.parametrize(
    ("make", "op"),
    [(nnx.LSTMCell, "LSTM"), (nnx.OptimizedLSTMCell, "LSTM"), (nnx.GRUCell, "GRU")],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_nnx_rnn_whose_call_counts_random_keys(make, op):
    module = nnx_module(lambda rngs: nnx.RNN(make(FEATURES, UNITS, rngs=rngs)))
    x = jax.random.normal(KEY, (2, 5, FEATURES))
    model = jaxport.to_onnx(module, [("B", "T", FEATURES)], return_mode="model")
    assert op in model.stats()["ops"]
    equal, message = jaxport.allclose(module, model, [x], rtol=1e-5, atol=1e-5)
    assert equal, message


def test_remarks_say_why_a_loop_stays():
    remarks = jaxport.to_onnx(LOOPS[1][0].fn, [("T", "B", FEATURES)], return_mode="model").remarks
    assert any("several sequences" in str(remark) for remark in remarks)


@pytest.mark.parametrize(("name", "op"), [("LSTM", "LSTM"), ("GRU", "GRU")])
def test_a_haiku_cell_is_one_node(name, op):
    haiku = pytest.importorskip("haiku", reason="the oldest environment has no Haiku")

    def network(x):
        core = getattr(haiku, name)(UNITS)
        state = core.initial_state(x.shape[0])
        return haiku.dynamic_unroll(core, x, state, time_major=False)[0]

    x = jax.random.normal(KEY, (2, 5, FEATURES))
    transformed = haiku.without_apply_rng(haiku.transform(network))
    parameters = filled(jax.eval_shape(transformed.init, KEY, x))

    def fn(x):
        return transformed.apply(parameters, x)

    model = jaxport.to_onnx(fn, [x.shape])
    assert [node.op_type for node in model.graph.node].count(op) == 1
    equal, message = jaxport.allclose(fn, model, [x], rtol=1e-5, atol=1e-5)
    assert equal, message
