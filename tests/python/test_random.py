# SPDX-License-Identifier: Apache-2.0
"""jax.random: the bits are JAX's for the same key, whether it is an input or a constant."""

from __future__ import annotations

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import lax, random

import jaxport
from jaxport import _jax, runtime
from support.cases import case, check, f32, i32, parity, u32

OPSETS = (18, 23)  # ONNX has bitwise operations from opset 18 on
RAW = u32(2, hi=2**32 - 1)
RAW_BATCH = u32("B", 2, hi=2**32 - 1)


def row(name, fn, *inputs, tolerance="exact"):
    """fn(key, …) with the words of a key as the first input."""

    def with_raw_key(words, *rest):
        return fn(random.wrap_key_data(words), *rest)

    return case(name, with_raw_key, [RAW, *inputs], tolerance=tolerance, opsets=OPSETS)


def truncated(key, shape):
    return random.truncated_normal(key, -1.0, 2.0, shape)


def multivariate(key, a):
    return random.multivariate_normal(key, jnp.zeros(3), a @ a.T + jnp.eye(3), (4,))


def looped(key):
    """The state of most training loops: a key that is split again and again."""

    def step(key, _):
        key, here = random.split(key)
        return key, random.bits(here, (2,))

    key, bits = lax.scan(step, key, None, 3)
    return random.key_data(lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), key)), bits


BITS = [
    *(row(f"bits u{n}", lambda k, n=n: random.bits(k, (5,), f"uint{n}")) for n in (8, 16, 32)),
    row("bits of no shape", lambda k: random.bits(k)),
    row("bits of an odd size", lambda k: random.bits(k, (3, 1, 3))),
    row("bits of a symbolic size", lambda k, x: random.bits(k, x.shape), f32("B", 3)),
    row("bits in the original order", lambda k: original_order(k, (2, 3))),
    row("split", lambda k: random.key_data(random.split(k))),
    row("split in a grid", lambda k: random.key_data(random.split(k, (2, 3)))),
    row("fold_in", lambda k, n: random.key_data(random.fold_in(k, n)), i32()),
    row("fold_in of many", lambda k, n: folded(k, n), i32(4)),
    row("clone", lambda k: random.bits(random.clone(k), (2,))),
    case("raw keys", lambda k: random.bits(random.split(k)[1], (3,)), [RAW], opsets=OPSETS),
    case("seed", lambda n: random.key_data(random.key(n)), [i32()], opsets=OPSETS),
    case(
        "keys under vmap",
        jax.vmap(lambda k: random.bits(k, (3,))),
        [RAW_BATCH],
        opsets=OPSETS,
    ),
]

NUMBERS = [
    row("uniform", lambda k: random.uniform(k, (5, 2))),
    # XLA rounds bits * (maxval - minval) + minval once.
    row(
        "uniform in a range",
        lambda k: random.uniform(k, (9,), minval=-2.0, maxval=3.0),
        tolerance="function",
    ),
    row("uniform of a symbolic size", lambda k, x: random.uniform(k, x.shape), f32("B")),
    row("randint", lambda k: random.randint(k, (5, 2), -3, 17)),
    row("bernoulli", lambda k: random.bernoulli(k, 0.3, (20,))),
    row("categorical", lambda k, x: random.categorical(k, x), f32(4, 7)),
    row("permutation", lambda k: random.permutation(k, 11)),
    row("permutation of rows", lambda k, x: random.permutation(k, x), f32(5, 2)),
    row("choice", lambda k: random.choice(k, 9, (4,), replace=False)),
    row("choice by weight", lambda k, p: random.choice(k, 6, (5,), p=p), f32(6, lo=0.1)),
    row("rademacher", lambda k: random.rademacher(k, (9,))),
    row("normal", lambda k: random.normal(k, (5, 3)), tolerance="function"),
    row("truncated normal", lambda k: truncated(k, (9,)), tolerance="network"),
    row("gamma", lambda k: random.gamma(k, 2.5, (4,)), tolerance="function"),
    row("beta", lambda k: random.beta(k, 2.0, 0.5, (4,)), tolerance="network"),
    row("dirichlet", lambda k: random.dirichlet(k, jnp.ones(3), (2,)), tolerance="network"),
    row("binomial", lambda k: random.binomial(k, 10, jnp.array([0.0, 0.3, 1.0]))),
    row("multinomial", lambda k: random.multinomial(k, 10, jnp.array([0.2, 0.0, 0.8]))),
    row("poisson", lambda k: random.poisson(k, 3.0, (6,))),
    row("multivariate normal", multivariate, f32(3, 3), tolerance="network"),
    row("keys in a loop", looped),
    row("gumbel", lambda k: random.gumbel(k, (9,)), tolerance="function"),
    row("exponential", lambda k: random.exponential(k, (9,)), tolerance="function"),
]


def original_order(key, shape):
    with jax.threefry_partitionable(False):
        return random.bits(key, shape)


def folded(key, numbers):
    return random.key_data(jax.vmap(random.fold_in, (None, 0))(key, numbers))


def generated(algorithm, shape, dtype="uint32"):
    return lambda key: lax.rng_bit_generator(key, shape, dtype, algorithm)


def with_rbg_keys(impl):
    """XLA's generator behind the keys of jax.random."""

    def fn(words):
        key = random.wrap_key_data(words, impl=impl)
        first, second = random.split(key)
        return random.bits(random.fold_in(first, 3), (3,)), random.uniform(second, (2, 2))

    return fn


FOUR = [u32(4, hi=2**32 - 1)]
GENERATOR = [
    case("philox", generated(lax.RandomAlgorithm.RNG_PHILOX, (5, 7)), FOUR, opsets=OPSETS),
    case("default", generated(lax.RandomAlgorithm.RNG_DEFAULT, (), "uint8"), FOUR, opsets=OPSETS),
    case("threefry", generated(lax.RandomAlgorithm.RNG_THREE_FRY, (5, 7)), FOUR, opsets=OPSETS),
    case("even", generated(lax.RandomAlgorithm.RNG_THREE_FRY, (3, 4)), FOUR, opsets=OPSETS),
    case("rbg keys", with_rbg_keys("rbg"), FOUR, opsets=OPSETS),
    case("unsafe_rbg keys", with_rbg_keys("unsafe_rbg"), FOUR, opsets=OPSETS),
]


def moves_keys(words, i):
    """Keys are moved by whatever moves arrays."""
    keys = random.wrap_key_data(words)
    picked = lax.dynamic_index_in_dim(keys, i, keepdims=False)
    stacked = jnp.stack([picked, keys[0]]).reshape(1, 2).T
    chosen = jnp.where(jnp.arange(2)[:, None] == i, stacked, keys[3])
    return random.key_data(chosen), keys[0] == keys, keys[::2] != keys[1::2]


MOVES = [case("moved keys", moves_keys, [u32(4, 2), i32(lo=0, hi=1)], opsets=OPSETS)]


@parity(BITS + NUMBERS + GENERATOR + MOVES)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_typed_key_is_an_input_of_words(shape):
    def fn(keys):
        return random.bits(keys.ravel()[0], (4,)), random.clone(keys)

    keys = random.split(random.key(3), shape) if shape else random.key(3)
    model = jaxport.to_onnx(fn, [keys])
    (entry,) = model.graph.input
    assert [dim.dim_value for dim in entry.type.tensor_type.shape.dim] == [*shape, 2]
    outputs = runtime.run(runtime.open_session(model), [_jax.host_array(keys)]).values()
    for have, want in zip(outputs, fn(keys), strict=True):
        np.testing.assert_array_equal(have, _jax.host_array(want))
    fits, message = jaxport.allclose(fn, model, [keys])
    assert fits, message
    fits, message = jaxport.allclose(fn, model, [jax.ShapeDtypeStruct(shape, keys.dtype)])
    assert fits, message


def ops_of(fn, inputs):
    return jaxport.to_onnx(fn, inputs, return_mode="model").stats()["ops"]


def test_a_constant_key_is_folded():
    noise = ops_of(lambda x: x + random.uniform(random.key(0), (3,)), [(3,)])
    assert noise == {"Add": 1}


def test_a_key_that_nobody_uses_leaves_nothing():
    def fn(x):
        keys = random.split(random.key(0), 8)
        for key in keys:
            random.fold_in(key, 1)
        return x * 2.0

    assert ops_of(fn, [(3,)]) == {"Mul": 1}


class LinenDropout(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dropout(0.5, deterministic=True)(linen.Dense(4)(x))


def nnx_dropout():
    model = nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(1)))
    model.eval()
    return model


def linen_dropout():
    model = LinenDropout()
    variables = model.init(random.key(0), jnp.ones((2, 3)))
    return lambda x: model.apply(variables, x, rngs={"dropout": random.key(1)})


def equinox_dropout():
    model = eqx.nn.Sequential(
        [eqx.nn.Linear(3, 4, key=random.key(0)), eqx.nn.Dropout(0.5, inference=True)]
    )
    keys = random.split(random.key(1), 2)
    return jax.vmap(lambda x: model(x, key=random.split(keys[0])[1]))


def haiku_dropout():
    def forward(x):
        hk.next_rng_key()
        return hk.dropout(hk.next_rng_key(), 0.0, hk.Linear(4)(x))

    model = hk.transform(forward)
    weights = model.init(random.key(0), jnp.ones((2, 3)))
    return lambda x: model.apply(weights, random.key(1), x)


@pytest.mark.parametrize("make", [nnx_dropout, linen_dropout, equinox_dropout, haiku_dropout])
def test_dropout_in_inference_leaves_nothing(make):
    assert ops_of(make(), [(2, 3)]) == {"Gemm": 1}


def test_equal_draws_are_traced_once(monkeypatch):
    from jaxport.decompose import random as decompositions

    calls = []
    original = decompositions.threefry2x32
    monkeypatch.setattr(
        decompositions, "threefry2x32", lambda *xs: calls.append(len(xs)) or original(*xs)
    )

    def fn(key):
        return [random.bits(key, (3,)) for key in random.split(key, 4)]

    jaxport.to_onnx(fn, [random.key(0)])
    assert len(calls) == 2  # one for the split, one for all draws


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_without_a_key_differ_in_every_run(dtype):
    def draw(lo, hi):
        return lax.rng_uniform(lo, hi, (40, 50))

    scalar = jax.ShapeDtypeStruct((), dtype)
    double = dtype == "float64"
    model = jaxport.to_onnx(draw, [scalar] * 2, opset=21, enable_double_precision=double)
    session = runtime.open_session(model)
    bounds = [np.asarray(bound, dtype) for bound in (2, 5)]
    (first,), (second,) = (runtime.run(session, bounds).values() for _ in range(2))
    assert first.dtype == dtype
    assert (first >= 2).all()
    assert (first <= 5).all()
    assert abs(first.astype("float32").mean() - 3.5) < 0.1
    assert (first != second).any()


def test_onnx_runtime_draws_numbers_without_a_key_until_opset_21():
    def draw(x):
        return x + lax.rng_uniform(0.0, 1.0, (3,))

    with pytest.raises(jaxport.ConversionError, match="cannot compute RandomUniform"):
        jaxport.to_onnx(draw, [(3,)], opset=22)
    jaxport.to_onnx(draw, [(3,)], opset=22, target="onnx")
