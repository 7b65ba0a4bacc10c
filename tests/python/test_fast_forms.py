# SPDX-License-Identifier: Apache-2.0
"""What stands in for kernels of ONNX Runtime that are slow: values, ops, near misses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from jaxport import _jax, runtime
from support.cases import bf16, case, check, f16, f32, f64, i32, parity, structs

EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 20.0, -20.0, 87.0, -87.0, 3e38, -3e38]

ACTIVATIONS = {
    "softplus": jax.nn.softplus,
    "mish": jax.nn.mish,
    "log_sigmoid": jax.nn.log_sigmoid,
    "softplus of a scalar": lambda x: jax.nn.softplus(x.sum()) + x,
}
OTHER_FLOATS = [[f32("B", 8)], [f64(8)], [f16(8)], [bf16(8)], [f32()]]
ROWS = [
    case(name, fn, [f32(2, 8, lo=-30, hi=30)], OTHER_FLOATS, tolerance="function")
    for name, fn in ACTIVATIONS.items()
]


def run(model, x):
    (result,) = runtime.run(runtime.open_session(model), [x]).values()
    return result


def with_hostile_numbers(x):
    """A column with NaN, one with both infinities and one with each."""
    columns = jnp.float32([[jnp.nan, 1, 1], [jnp.inf, jnp.inf, -jnp.inf], [0, -jnp.inf, 1]])
    return x.at[..., :3, :3].set(columns.astype(x.dtype))


# The reduction, the shape, and the ops that f32 becomes.
PRODUCT, SPLIT = "MatMul", "two reductions"
REDUCTIONS = [
    ("sum of rows", lambda x: x.sum(0), (64, 96), PRODUCT),
    ("mean of rows", lambda x: x.mean(0, keepdims=True), (64, 96), PRODUCT),
    ("mean of tokens", lambda x: x.mean(1), (2, 64, 96), PRODUCT),
    ("mean of tokens in one image", lambda x: x.mean(-2), (1, 64, 96), PRODUCT),
    ("sum over (1, 3)", lambda x: x.sum((1, 3)), (4, 16, 8, 16), SPLIT),
    ("mean over (0, 2)", lambda x: x.mean((0, 2), keepdims=True), (4, 16, 8, 16), SPLIT),
    ("max over (1, 3)", lambda x: x.max((1, 3)), ("B", 16, 32, 16), SPLIT),
    ("min over (0, 2, 4)", lambda x: x.min((0, 2, 4)), (4, 4, 8, 16, 8), SPLIT),
]
SUMS = [
    case(name, fn, [f32(*shape)], [[f64(*shape)], [f16(*shape)]], tolerance="sum")
    for name, fn, shape, _ in REDUCTIONS
]
SUMS += [
    case(
        f"{name}, not finite",
        lambda x, fn=fn: fn(with_hostile_numbers(x)),
        [f32(*shape)],
        tolerance="sum",
    )
    for name, fn, shape, _ in REDUCTIONS
    if "max" not in name and "min" not in name
]
SUMS += [
    case("any", lambda x: (x > 2.9).any(1), [f32(64, 96)], also=[[f32("B", 8192)]]),
    case("all", lambda x: (x > -2.9).all((0, 1), keepdims=True), [f32(64, 96)], [[f64(64, 96)]]),
    case("sign", jnp.sign, [f32(64, 96)], also=[[f64(64, 96)], [f16(64, 96)], [i32(64, 96)]]),
    case("mean of columns", lambda x: x.mean(1), [f32(64, 96)], tolerance="sum"),
    case("sum of few rows", lambda x: x.sum(0), [f32(3, 4096)], tolerance="sum"),
    case("sum of integers", lambda x: x.sum(0), [i32(64, 96)]),
    case("sum of nothing", lambda x: x.sum(0), [f32(0, 4096)], tolerance="sum"),
    case("of nothing", lambda x: x.sum(1), [f32(0, 64, 96)], tolerance="sum"),
    case("under vmap", jax.vmap(lambda x: x.mean(0)), [f32("B", 64, 96)], tolerance="sum"),
    case(
        "in a loop",
        lambda x: jax.lax.fori_loop(0, 7, lambda _, y: jax.nn.softplus(y) - y.mean(0), x),
        [f32(64, 96)],
        tolerance="network",
    ),
]


def resized(*shape):
    return lambda x: jax.image.resize(x, (x.shape[0], *shape), "nearest")


# What is fast in another order, and the ops that it becomes.
ORDERS = [
    ("cumsum of rows", lambda x: x.cumsum(-1), (64, 96), "CumSum"),
    ("cumsum of rows of rows", lambda x: x.cumsum(2), ("B", 16, 256), "CumSum"),
    ("cumsum backwards", lambda x: jax.lax.cumsum(x, axis=1, reverse=True), (64, 96), "CumSum"),
    ("images twice as large", resized(16, 16, 64), (2, 8, 8, 64), "Gather"),
    ("images that are wider", resized(8, 24, 64), (1, 8, 8, 64), "Gather"),
    ("images that are taller", resized(32, 8, 64), ("B", 8, 8, 64), "Gather"),
]
MOVES = [
    case(
        name,
        fn,
        [f32(*shape)],
        [[f64(*shape)], [f16(*shape)]] if "images" in name else [[f64(*shape)]],
        tolerance="sum" if "cumsum" in name else "rounding",
    )
    for name, fn, shape, _ in ORDERS
]
MOVES += [
    case(
        "cumsum of what is not finite",
        lambda x: with_hostile_numbers(x).cumsum(-1),
        [f32(64, 96)],
        tolerance="sum",
    ),
    case("cumsum of no rows", lambda x: x.cumsum(-1), [f32(0, 96)]),
    case("images of one pixel", resized(4, 4, 4096), [f32(1, 1, 1, 4096)]),
    case("smaller images", resized(4, 4, 64), [f32(1, 8, 8, 64)]),
    case("images of another size", resized(12, 12, 64), [f32(1, 8, 8, 64)]),
]


@parity([*ROWS, *SUMS, *MOVES])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("name", ["softplus", "mish"])
def test_edges(name):
    """NaN and infinities are JAX's, and the digits those of f64."""
    x = np.concatenate([np.float32(EDGES), np.linspace(-80, 80, 20001, dtype=np.float32)])
    fn = ACTIVATIONS[name]
    have = run(jaxport.to_onnx(fn, [("N",)]), x)
    with _jax.double_precision(True):
        want = np.asarray(jax.jit(fn)(x.astype(np.float64)))
    np.testing.assert_allclose(have, want, rtol=2e-6, atol=1e-37)


def test_edges_of_sign():
    tiny = np.finfo(np.float32).tiny
    x = np.float32([*EDGES, tiny, -tiny, 1e-45, -1e-45] * 300)
    ours, kernel = (
        run(jaxport.to_onnx(jnp.sign, [x.shape], target=target), x)
        for target in ("onnxruntime", "onnx")
    )
    np.testing.assert_array_equal(ours, kernel)
    np.testing.assert_array_equal(np.signbit(ours[x == 0]), np.signbit(x[x == 0]))


def test_batch_of_nothing():
    model = jaxport.to_onnx(lambda x: x.mean(1), [("B", 64, 96)])
    assert run(model, np.zeros((0, 64, 96), np.float32)).shape == (0, 96)


def ops_of(fn, shape, **choices):
    model = jaxport.to_onnx(fn, structs([f32(*shape)]), **choices)
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda row: row[0])
def test_slow_reductions_have_another_form(row):
    _, fn, shape, form = row
    ops = ops_of(fn, shape)
    assert ops == ["MatMul"] if form is PRODUCT else len(ops) >= 2
    assert ops != ops_of(fn, shape, target="onnx")


@pytest.mark.parametrize("row", ORDERS, ids=lambda row: row[0])
def test_slow_orders_have_another_form(row):
    _, fn, shape, form = row
    ops = ops_of(fn, shape)
    assert form in ops
    assert "Resize" not in ops
    assert len(ops) > len(ops_of(fn, shape, target="onnx"))


def test_no_images():
    model = jaxport.to_onnx(resized(16, 16, 64), [("B", 8, 8, 64)])
    assert run(model, np.zeros((0, 8, 8, 64), np.float32)).shape == (0, 16, 16, 64)


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: x.cumsum(0), (64, 96)),
        (lambda x: x.cumsum(-1), (4, 4096)),  # few rows
        (lambda x: x.cumsum(-1), ("B", 4096)),
        (lambda x: x.cumsum(), (8192,)),
        (resized(12, 16, 64), (1, 8, 8, 64)),
        (resized(32, 32, 3), (1, 16, 16, 3)),  # few channels
        (lambda x: x.sum(0), (16, 64)),  # few elements
        (lambda x: x.sum(0), ("T", 96)),
        (lambda x: x.mean(1), ("B", 64, 96)),
        (lambda x: x.max(0), (64, 96)),
        (lambda x: x.sum(1), (64, 96)),
        (lambda x: x.sum((0, 2)), (64, 16, 64)),  # three groups of axes
        (lambda x: x.sum((1, 3)), (2, 2, 2, 2)),
        (jnp.sign, (64, 63)),
        (jnp.sign, ("B", 64)),
        (lambda x: (x > 0).any(0), (64, 63)),
    ],
)
def test_near_misses(fn, shape):
    assert ops_of(fn, shape) == ops_of(fn, shape, target="onnx")


def test_other_targets_keep_the_ops():
    assert ops_of(jax.nn.softplus, (3,), target="onnx") == ["Softplus"]
    assert ops_of(jax.nn.mish, (3,), target="onnx") == ["Mish"]
    assert ops_of(jax.nn.mish, (3,), target="openvino") == ["Mish"]
