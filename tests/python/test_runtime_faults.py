# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime rewrites models when it loads them, and some of its rewrites are wrong: it dies, it
refuses its own result, or it loses digits. Small programs around those are enumerated here."""

from __future__ import annotations

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from jaxport import _jax
from support.isolated import CrashError, RefusalError, Runner
from support.tolerances import assert_close

SIZE = 4  # of every dim, so that every program fits and JAX compiles each operation once


@pytest.fixture(scope="module")
def process():
    runner = Runner()
    yield runner
    runner.close()


def problem_of(process, fn, inputs, kind="sum"):
    """Why the model does not load or gives other numbers than JAX; None when all is well."""
    double = inputs[0].dtype == np.float64
    with _jax.double_precision(double):
        arrays = [jnp.asarray(array) for array in inputs]
        want = [_jax.host_array(leaf) for leaf in jax.tree.leaves(fn(*arrays))]
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        model = jaxport.to_onnx(fn, shapes, enable_double_precision=double)
    try:
        have = process.run(model.SerializeToString(), inputs)
    except (CrashError, RefusalError) as error:
        return str(error)
    for i, (expected, output) in enumerate(zip(want, have, strict=True)):
        try:
            assert_close(f"output {i}", expected, output, kind)
        except AssertionError as error:
            return str(error)
    return None


def normal(seed, *shape, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(getattr(jnp, dtype))


# --- Transpose, Cast, MatMul: MatmulTransposeFusion

BETWEEN = {
    "nothing": lambda x: x,
    "relu": jax.nn.relu,
    "scale": lambda x: x * x.dtype.type(0.5),
    "f32": lambda x: x.astype(jnp.float32),
    "unit dim": lambda x: x[:, None],
}
WEIGHT, VECTOR = normal(1, SIZE, SIZE), normal(2, SIZE)
PRODUCTS = {
    "right": lambda x: x @ WEIGHT.astype(x.dtype),
    "left": lambda x: WEIGHT.astype(x.dtype) @ x,
    "vector": lambda x: x @ VECTOR.astype(x.dtype),
    "bias": lambda x: x @ WEIGHT.astype(x.dtype) + VECTOR.astype(x.dtype),
    "first axis": lambda x: jnp.tensordot(x, WEIGHT.astype(x.dtype), axes=(0, 0)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("between", BETWEEN)
def test_transposed_narrow_floats_are_multiplied(process, between, dtype):
    x = normal(3, SIZE, SIZE, SIZE, dtype=dtype)
    problems = {}
    for perm, name in itertools.product(itertools.permutations(range(3)), PRODUCTS):

        def fn(x, perm=perm, name=name):
            return PRODUCTS[name](BETWEEN[between](x.transpose(perm)))

        if problem := problem_of(process, fn, [x]):
            problems[perm, name] = problem
    assert not problems


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.transpose(1, 0, 2) @ normal(1, 8, 3).astype(x.dtype),
        lambda x: jnp.einsum("abc,c->ba", x, normal(1, 8).astype(x.dtype)),
        lambda x: jnp.tensordot(x, normal(1, 2, 3).astype(x.dtype), axes=(0, 0)),
        lambda x: (x.transpose(1, 0, 2), x.transpose(1, 0, 2) @ normal(1, 8, 3).astype(x.dtype)),
        lambda x: jax.lax.map(
            lambda y: y.transpose(1, 0, 2) @ normal(1, 8, 3).astype(x.dtype), x[None]
        ),
    ],
    ids=["matmul", "einsum", "tensordot", "also an output", "in a loop"],
)
def test_the_first_dim_moves_into_the_matrices(process, fn, dtype):
    assert problem_of(process, fn, [normal(3, 2, 5, 8, dtype=dtype)]) is None


def test_the_cast_comes_before_the_transpose():
    def fn(x):
        return x.transpose(1, 0, 2).astype(jnp.float32) @ WEIGHT

    model = jaxport.to_onnx(fn, [jax.ShapeDtypeStruct((2, 5, SIZE), jnp.float16)])
    assert [node.op_type for node in model.graph.node] == ["Cast", "Transpose", "MatMul"]


def test_other_transposes_keep_their_place():
    def fn(x):
        return x.transpose(0, 2, 1).astype(jnp.float32) @ WEIGHT

    model = jaxport.to_onnx(fn, [jax.ShapeDtypeStruct((2, SIZE, 5), jnp.float16)])
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Cast", "MatMul"]


# --- products with constants beside MatMul: MatMulScaleFusion

SCALES = (0.01, 0.5, 3.0)


def scaled_products(seed):
    """Scales, products, sums and transposes of matrices, which share operands at random."""
    choose = random.Random(seed)
    steps = [
        (
            choose.choice("ssssddmmmmmmta"),
            choose.randrange(max(0, i - 2), i + 2),
            choose.randrange(i + 2),
            choose.choice(SCALES),
        )
        for i in range(choose.randint(3, 7))
    ]

    def fn(*inputs):
        values = list(inputs)
        for kind, a, b, c in steps:
            x, y, scale = values[a], values[b], values[a].dtype.type(c)
            values.append(
                {
                    "s": lambda x, y, c: x * c,
                    "d": lambda x, y, c: x / c,
                    "m": lambda x, y, c: x @ y,
                    "t": lambda x, y, c: x.T,
                    "a": lambda x, y, c: x + y,
                }[kind](x, y, scale)
            )
        used = {i for kind, a, b, _ in steps for i in ((a, b) if kind in "ma" else (a,))}
        return [value for i, value in enumerate(values) if i >= 2 and i not in used]

    return fn, steps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("part", range(4))
def test_scales_and_products_that_share_operands(process, part, dtype):
    inputs = [normal(seed, SIZE, SIZE, dtype=dtype) for seed in (4, 5)]
    problems = {}
    for seed in range(25 * part, 25 * (part + 1)):
        fn, steps = scaled_products(seed)
        if problem := problem_of(process, fn, inputs):
            problems[seed] = (problem, steps)
    assert not problems


def shared_scale(x, y):
    s = x * 0.01
    return ((s * 0.5) @ y) @ s


def ways_of_one_and_two(x, y):
    s = x * 0.01
    return (((s * 0.5) / 3) @ y) @ (s * 0.3)


def transposed_between(x, y):
    s = x * 0.01
    return ((s * 0.5).T @ y) @ s.T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", [shared_scale, ways_of_one_and_two, transposed_between])
def test_a_scale_that_two_products_share(process, fn, dtype):
    inputs = [normal(seed, SIZE, SIZE, dtype=dtype) for seed in (4, 5)]
    assert problem_of(process, fn, inputs) is None


EXTREMES = {
    "large": lambda x, y: ((x * 1e-20) * 1e30) @ ((y * 1e-20) * 1e30),
    "large and small": lambda x, y: ((x * 1e25) @ (y * 1e25)) * 1e-30 * 1e-20,
    "zero": lambda x, y: (jnp.exp(x * 1e3) * 0.0) @ y,
    "infinite": lambda x, y: (x / 0.0) @ jnp.eye(SIZE),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_scales_that_one_number_of_f32_cannot_hold(process, name):
    inputs = [abs(normal(seed, SIZE, SIZE)) * 1e-6 + 1 for seed in (4, 5)]
    assert problem_of(process, EXTREMES[name], inputs) is None


def test_scales_are_merged_where_that_is_right():
    """The constants stay scalars, so that ONNX Runtime makes one node of each line."""

    def fn(x, y):
        return ((x * 0.5) @ (y / 3)) * 0.7

    shape = jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32)
    model = jaxport.to_onnx(fn, [shape, shape])
    assert all(not constant.dims for constant in model.graph.initializer)


# --- constants of f64 that f32 takes for 0 or 1: NoopElimination

NEARLY_NEUTRAL = {
    "sum": lambda x: x / (jnp.abs(x) + 1e-300),
    "difference": lambda x: x / (jnp.abs(x) - 1e-46),
    "product": lambda x: (jnp.abs(x) * (1 + 1e-12) - jnp.abs(x)) * 1e12,
    "quotient": lambda x: (jnp.abs(x) / (1 - 1e-12) - jnp.abs(x)) * 1e12,
}


@pytest.mark.parametrize("shape", [(SIZE, SIZE), (1,), ()])
@pytest.mark.parametrize("name", NEARLY_NEUTRAL)
def test_constants_that_only_f32_takes_for_neutral(process, name, shape):
    inputs = [np.round(np.atleast_1d(normal(4, *shape, dtype="float64")) / 2).reshape(shape)]
    assert problem_of(process, NEARLY_NEUTRAL[name], inputs) is None


def test_sums_with_small_constants_of_f32_are_one_node():
    model = jaxport.to_onnx(lambda x: jnp.abs(x) + 1e-30, [(SIZE,)])
    assert [node.op_type for node in model.graph.node] == ["Abs", "Add"]


# --- kernels that see special numbers in another way than others of the same op

SPECIAL = (0.0, np.nan, np.inf, -np.inf, 1000.0)
ROW_FUNCTIONS = {
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=-1),
    "mean": lambda x: jnp.mean(x, -1),
    "cumsum": lambda x: jnp.cumsum(x, -1),
    "prod": lambda x: jnp.prod(x, -1),
    "layer norm": lambda x: jax.nn.standardize(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ROW_FUNCTIONS)
def test_rows_of_special_numbers(process, name, dtype):
    rows = np.asarray(list(itertools.product(SPECIAL, repeat=3)), getattr(jnp, dtype))
    assert problem_of(process, ROW_FUNCTIONS[name], [rows]) is None
