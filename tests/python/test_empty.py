# SPDX-License-Identifier: Apache-2.0
"""Arrays without elements: static sizes of 0 beside symbolic ones, and symbolic ones that are 0."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from support.cases import (
    boolean,
    case,
    examples_of,
    f16,
    f32,
    i32,
    models_of,
    parity,
    run_jax,
)
from support.isolated import RefusalError, Runner
from support.tolerances import assert_close

WEIGHT = jnp.linspace(-1, 1, 20).reshape(4, 5)
KERNEL = jnp.linspace(-1, 1, 18).reshape(2, 3, 3)
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32")
GATES = jnp.linspace(-1, 1, 7 * 12).reshape(7, 12)


@pytest.fixture(scope="module")
def runner():
    runner = Runner()
    yield runner
    runner.close()


def row(name, fn, *inputs, opsets=(17, 23)):
    return case(name, fn, inputs, tolerance="sum", opsets=opsets, sizes=(0, 1, 3))


def norm(x, axis):
    mean = x.mean(axis, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(axis, keepdims=True) + 1e-5)


def attention(q, k, v):
    return jax.nn.softmax(jnp.einsum("btd,bsd->bts", q, k), -1) @ v


def conv(x, padding="VALID"):
    return lax.conv_general_dilated(x, KERNEL, (1,), padding)


def lstm(x, state):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ GATES, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (state, state), x)


def gru(x, state):
    def step(h, x):
        r, z = jnp.split(jax.nn.sigmoid(x @ GATES[:4, :6] + h @ GATES[4:, :6]), 2, -1)
        h = (1 - z) * jnp.tanh(x @ GATES[:4, 6:9] + r * (h @ GATES[4:, 6:9])) + z * h
        return h, h

    return lax.scan(step, state, x)


def maximum(x, axis):
    return lax.reduce(x, -jnp.inf, lax.max, (axis,))


def cumulative(x):
    return jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, 0), lax.cummax(x, 1), jnp.cumprod(x, 0)


def bytes_of(x):
    """There and back."""
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint8), jnp.int32)


# A static 0 beside a symbolic batch, which is 0, 1 and 3 in turn.
STATIC = [
    row("slice", lambda x: x[:, 1:1], f32("B", 4)),
    row("zeros", lambda x: jnp.zeros((3, x.shape[0], 0, 2)), f32("B", 4)),
    row("zeros of other dtypes", lambda x: (z(x, bool), z(x, "int32"), z(x, "float16")), f32("B")),
    row("arithmetic", lambda x: (x, x * 2, jnp.where(x > 0, x, 1), x.astype(bool)), f32("B", 0)),
    row("broadcast against 0", lambda x, y: x + y[:, :1], f32("B", 0), f32("B", 4)),
    row("outer product", lambda x, y: x[:, :, None] * y[:, None], f32("B", 0), f32("B", 4)),
    row("sums", lambda x: (x.sum(1), x.sum(0), x.sum(), x.prod(1), x.mean(1)), f32("B", 0)),
    row("mean of all", lambda x: x.mean(), f32("B", 0)),
    row("maxima", lambda x: (x.max(1, initial=-1), maximum(x, 1), maximum(x, 0)), f32("B", 0)),
    row("any and all", lambda x: ((x > 0).any(1), (x > 0).all(1), (x > 0).all()), f32("B", 0)),
    row("concatenate", lambda x, y: jnp.concatenate([x, y, x], 1), f32("B", 0), f32("B", 4)),
    row("concatenate rows", lambda x: jnp.concatenate([x, x, jnp.ones((2, 0))]), f32("B", 0)),
    row("stack", lambda x: jnp.stack([x, x + 1], 1), f32("B", 0)),
    row("split", lambda x: jnp.split(x, [0, 2], 1), f32("B", 4)),
    row("pad", lambda x: (jnp.pad(x, ((0, 0), (1, 2))), jnp.pad(x, ((1, 0), (0, 0)))), f32("B", 0)),
    row("pad to nothing", lambda x: lax.pad(x, 0.0, ((0, 0, 0), (-2, -2, 0))), f32("B", 4)),
    row("interior padding", lambda x: lax.pad(x, 0.0, ((0, 0, 1), (1, 0, 2))), f32("B", 0)),
    row("dot over nothing", lambda x, y: x @ y + jnp.arange(3), f32("B", 0), f32(0, 3)),
    row("dot to nothing", lambda x, y: x @ y, f32("B", 4), f32(4, 0)),
    row("dot with itself", lambda x: (x.T @ x, x @ x.T), f32("B", 0)),
    row("batched dot", lambda x: (x @ x.mT, x.mT @ x), f32("B", 3, 0)),
    row("einsum", lambda x, y: jnp.einsum("bsd,bs->bd", x, y), f32("B", 3, 0), f32("B", 3)),
    row("convolution to nothing", lambda x: conv(x) + jnp.arange(2)[:, None], f32("B", 3, 2)),
    row("convolution of nothing", lambda x: conv(x, ((2, 2),)), f32("B", 3, 0)),
    row(
        "convolution of integers without channels",
        lambda x: lax.conv_general_dilated(
            x.astype("int8"), jnp.ones((2, 0, 3), "int8"), (1,), "VALID"
        ),
        f32("B", 0, 5),
    ),
    row(
        "convolution without channels",
        lambda x: lax.conv_general_dilated(x, jnp.ones((2, 0, 3)), (1,), "VALID"),
        f32("B", 0, 5),
    ),
    row(
        "convolution without features",
        lambda x: lax.conv_general_dilated(x, jnp.ones((0, 3, 3)), (1,), "VALID"),
        f32("B", 3, 5),
    ),
    row(
        "window", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "SAME"), f32("B", 0)
    ),
    row("gather nothing", lambda x, i: x[:, i], f32("B", 4), i32(0)),
    row("gather from nothing", lambda x, i: x[i], f32(5, 0), i32("B", lo=0, hi=4)),
    row("take along", lambda x, i: jnp.take_along_axis(x, i, 1), f32("B", 4), i32("B", 0)),
    row("dynamic slice", lambda x, i: lax.dynamic_slice_in_dim(x, i, 0, 1), f32("B", 4), i32()),
    row(
        "dynamic update",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        *(f32("B", 4), f32("B", 0), i32()),
    ),
    row("scatter nothing", lambda x, i: x.at[:, i].set(1.0), f32("B", 4), i32(0)),
    row("scatter into nothing", lambda x, i: x.at[i].add(1.0), f32("B", 0), i32(2)),
    row(
        "segment sum", lambda x, i: jax.ops.segment_sum(x, i, 5), f32("B", 0), i32("B", lo=0, hi=4)
    ),
    row("sort", lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1), jnp.sort(x, 0)), f32("B", 0)),
    row("top_k", lambda x: lax.top_k(x, 0), f32("B", 4)),
    row("cumulative", cumulative, f32("B", 0)),
    row("reshape", lambda x: (x.reshape(x.shape[0], 0, 5), x.reshape(0, x.shape[0])), f32("B", 0)),
    row("reshape to static", lambda x: (x.reshape(0), x.reshape(3, 0)), f32("B", 0)),
    row("transpose", lambda x: x.transpose(2, 0, 1) + 1, f32("B", 3, 0)),
    row("broadcast", lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 0, 4)), f32("B", 4)),
    row("tile and repeat", lambda x: (jnp.tile(x, (2, 0)), jnp.repeat(x, 0, 0)), f32("B", 4)),
    row("reverse", lambda x: x[:, ::-1], f32("B", 0)),
    row("softmax", lambda x: (jax.nn.softmax(x, 1), jax.nn.log_softmax(x, 0)), f32("B", 0)),
    row("logsumexp", lambda x: (jax.nn.logsumexp(x, 1), jax.nn.logsumexp(x, 0)), f32("B", 0)),
    row("norms", lambda x: (norm(x, -1), norm(x, 0), jnp.linalg.norm(x, axis=1)), f32("B", 0)),
    row("argmax", lambda x: x.argmax(1), f32("B", 3, 0)),
    row("attention to nothing", attention, f32("B", 3, 4), f32("B", 0, 4), f32("B", 0, 4)),
    row("attention of nothing", attention, f32("B", 0, 4), f32("B", 3, 4), f32("B", 3, 4)),
    row(
        "scan over nothing",
        lambda x: lax.scan(lambda c, a: (c + a, c), x[:, :0].sum(1), x.T),
        f32("B", 0),
    ),
    row(
        "scan carries nothing",
        lambda x: lax.scan(lambda c, a: (c + a, c), x, jnp.ones(7)),
        f32("B", 0),
    ),
    row(
        "scan gives nothing",
        lambda x: lax.scan(lambda c, a: (c + a, a[:0]), jnp.ones(4), x),
        f32("B", 4),
    ),
    row(
        "while",
        lambda x: lax.fori_loop(0, 5, lambda i, c: (c[0] + i, c[1] * 2), (0, x)),
        f32("B", 0),
    ),
    row("cond", lambda x, p: lax.cond(p > 0, jnp.sin, jnp.cos, x), f32("B", 0), i32()),
    row("map", lambda x: lax.map(lambda a: (a * 2, a.sum()), x), f32("B", 0)),
    row("one hot", lambda x: (jax.nn.one_hot(x, 0), jax.nn.one_hot(x, 4)), i32("B", 0)),
    row("linear algebra", lambda x: (jnp.linalg.cholesky(x), jnp.linalg.inv(x)), f32("B", 0, 0)),
    row("resize", lambda x: jax.image.resize(x, (x.shape[0], 0, 3), "nearest"), f32("B", 4, 3)),
    row("bits", lambda x: lax.population_count(x), i32("B", 0)),
    row(
        "gradient", jax.grad(lambda x: (jnp.concatenate([x, x[:, :0]], 1) ** 2).sum()), f32("B", 4)
    ),
]


def z(x, dtype):
    return jnp.zeros((x.shape[0], 0), dtype)


# Symbolic sizes that are 0, 1 and 3 in turn, as are pairs of them.
DYNAMIC = [
    row("means", lambda x: (x.mean(), x.mean(0), x.mean(1), x - x.mean(0)), f32("B", 4)),
    row("means over two symbols", lambda x: (x.mean(1), x.mean((0, 1))), f32("B", "T", 4)),
    row("mean with a class token", lambda x: jnp.pad(x, ((1, 0), (0, 0))).mean(0), f32("T", 4)),
    row("variance", lambda x: (x.var(0), x.std(), x.var(0, ddof=1)), f32("B", 4)),
    row("median", lambda x: (jnp.median(x, 1), jnp.nanmean(x, 0)), f32("B", 4)),
    row("sums", lambda x: (x.sum(0), x.prod(0), x.max(0, initial=-1.0)), f32("B", 4)),
    row("maxima", lambda x: (maximum(x, 1), maximum(x, 0)), f32("B", "T")),
    row("any and all", lambda x: (x.any(0), x.all(0), x.all(), x.any(1)), boolean("B", 4)),
    row("softmax", lambda x: (jax.nn.softmax(x, 0), jax.nn.softmax(x, 1)), f32("B", 4)),
    row("log softmax", lambda x: jax.nn.log_softmax(x, 1), f32("B", "T", 4)),
    row("logsumexp", lambda x: (jax.nn.logsumexp(x, 0), jax.nn.logsumexp(x, 1)), f32("B", 4)),
    row("sort", lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, 1)), f32("B", 4)),
    row("top_k of all", lambda x: lax.top_k(x, x.shape[-1]), f32("B", "T")),
    row("top_k of one", lambda x: lax.top_k(x, 1), f32("B", "T")),
    row("top_k of columns", lambda x: lax.top_k(x.T, 2), f32(4, "B")),
    row("argmax", lambda x: (x.argmax(0), x.argmin(1)), f32("B", "T")),
    row("sums of integers", lambda x: (x.sum(0), x.prod(0), x.prod(1), x.prod()), i32("B", 4)),
    row(
        "products of other integers",
        lambda x: [(x % 5).astype(d).prod(0) for d in INTEGERS],
        i32("B", 4),
    ),
    row("maxima of integers", lambda x: (x.max(0, initial=-7), x.min(1), x.argmax(1)), i32("B", 4)),
    row("bits", lambda x: (lax.clz(x), lax.population_count(x), bytes_of(x)), i32("B", 4)),
    row(
        "bits of all",
        lambda x: lax.reduce(x, jnp.int32(-1), lax.bitwise_and, (1,)),
        i32("B", 4),
        opsets=(18, 23),
    ),
    row("cumulative, integers", cumulative, i32("B", 4)),
    row("cumulative", cumulative, f32("B", 4)),
    row("gather columns", lambda x, i: x[:, i], f32("B", 4), i32(2, lo=0, hi=3)),
    row("gather by symbols", lambda x, i: x[i], f32(7, 4), i32("B", lo=0, hi=6)),
    row("slices", lambda x: (x[1:], x[:-1], x[::2], x[::-1], jnp.diff(x, axis=0)), f32("B", 4)),
    row("dynamic slice", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), f32("B", 4), i32()),
    row("scatter", lambda x, i: jnp.zeros(7).at[i].add(x), f32("B"), i32("B", lo=0, hi=6)),
    row("update", lambda x: x.at[:, 1].set(3.0), f32("B", 4)),
    row("pad", lambda x: jnp.pad(x, ((1, 2), (0, 1))), f32("B", 4)),
    row("pad and cut", lambda x: lax.pad(x, 0.0, ((-1, 2, 0), (0, 0, 0))), f32("B", 4)),
    row("pad more than there is", lambda x: lax.pad(x, 0.0, ((4, -3, 0), (0, 0, 0))), f32("B", 4)),
    row("dilate", lambda x: lax.pad(x, 0.0, ((-1, 1, 1), (0, 0, 2))), f32("B", 4)),
    row("concatenate", lambda x: jnp.concatenate([x, jnp.ones((2, 4)), x]), f32("B", 4)),
    row("merge", lambda x: (x.reshape(-1, 4), x.reshape(-1)), f32("B", "T", 4)),
    row(
        "reshape to other symbols",
        lambda x: x.reshape(x.shape[1] * 4, x.shape[0]),
        f32("B", "T", 4),
    ),
    row("tile and repeat", lambda x: (jnp.tile(x, (2, 2)), jnp.repeat(x, 2, 0)), f32("B", 4)),
    row("dot", lambda x: (x @ WEIGHT, x.T @ x, x @ x.T), f32("B", 4)),
    row("batched dot", lambda x, y: x @ y, f32("B", "T", 4), f32("B", 4, "T")),
    row("convolution of no images", lambda x: conv(x, "SAME"), f32("B", 3, 5)),
    row(
        "pool of no images",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2), (1, 1, 2), "VALID"),
        f32("B", 3, 4),
    ),
    row(
        "window of integers",
        lambda x: lax.reduce_window(x, 0, lax.add, (3,), (1,), "VALID"),
        i32("T"),
    ),
    row("norms", lambda x: (norm(x, -1), norm(x, 0), norm(x, (0, 1))), f32("B", 4)),
    row("instance norm", lambda x: norm(x, 1) * jnp.arange(3) + 1, f32("B", "T", 3)),
    row("scan", lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.ones(4), x), f32("B", 4)),
    row(
        "reverse scan",
        lambda x: lax.scan(lambda c, a: (c + 1, (c, a > 0)), 0, x, reverse=True),
        f32("B", 4),
    ),
    row(
        "batched scan",
        jax.vmap(lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.ones(4), x)),
        f32("B", "T", 4),
    ),
    row("map", lambda x: lax.map(lambda a: jnp.sin(a).sum(), x), f32("B", 4)),
    row(
        "batched while",
        lambda x: lax.while_loop(lambda c: (c < 9).any(), lambda c: c + 10, x),
        f32("B", 4),
    ),
    row("lstm over no steps", lambda x: lstm(x, jnp.zeros((2, 3))), f32("T", 2, 4)),
    row("lstm of no sequences", lambda x, h: lstm(x, h), f32("T", "B", 4), f32("B", 3)),
    row("gru", lambda x: gru(x, jnp.zeros((x.shape[1], 3))), f32("T", "B", 4)),
    row(
        "heads of one sequence",
        lambda x, w: jnp.einsum("thd,hde->the", x, w),
        f32("B", 3, 4),
        f32(3, 4, 5),
    ),
    row("scores of one sequence", lambda x: jnp.einsum("thd,shd->hts", x * 0.5, x), f32("B", 3, 4)),
    row("a sum of outer products", lambda x: jnp.einsum("thd,the->hde", x, x + 1), f32("B", 3, 4)),
    row(
        "a sum of outer products in f16",
        lambda x: jnp.einsum("tgd,tge->gde", 0.25 * x, x),
        f16("B", 3, 4),
    ),
    row("products", lambda x, y: x.mT @ y, f32(64, "B", 8), f32(64, "B", 8)),
    row("matrices by one", lambda x, y: x.mT @ y, f32(64, "B", 8), f32("B", 8)),
    row(
        "a window that is longer than the axis",
        lambda x: lax.reduce_window(x, 2.0, lax.add, (3, 1), (2, 1), "VALID", None, (2, 1)),
        f32("B", 4),
    ),
    row(
        "a strided window over padding alone",
        lambda x: lax.reduce_window(x, 0, lax.max, (3, 1), (2, 1), ((1, 1), (0, 0))),
        i32("B", 4),
    ),
    row(
        "a window function over a short axis",
        lambda x: lax.reduce_window(x, 2.0, lambda a, b: a * b, (3,), (2,), "VALID"),
        f32("B"),
    ),
    row("sizes as arrays", lambda x: (jnp.arange(x.shape[0]), jnp.eye(x.shape[0])), f32("B", 4)),
    row("linear algebra", lambda x: jnp.linalg.inv(x + 5 * jnp.eye(3)), f32("B", 3, 3)),
    row("systems by doubling", lambda x: jnp.linalg.inv(x + 9 * jnp.eye(5)), f32("B", 5, 5)),
    row("systems by blocks", lambda x: jnp.linalg.inv(x + 99 * jnp.eye(40)), f32("B", 40, 40)),
    row("singular values of two", lambda x: jnp.linalg.svd(x, compute_uv=False), f32("B", 3, 2)),
    row("gradient", jax.grad(lambda x: (jax.nn.softmax(x) * x**2).mean()), f32("B", 4)),
]


def expected(case):
    """Inputs at each size and what JAX gives; None where it refuses the size."""
    for arrays in examples_of(case.inputs, case.sizes):
        try:
            yield arrays, run_jax(case.fn, arrays)
        except (ValueError, TypeError, IndexError, ZeroDivisionError):
            yield arrays, None


def check_all_sizes(case, runner):
    examples = list(expected(case))
    for _, proto in models_of(case):
        model = proto.SerializeToString()
        for arrays, results in examples:
            if results is None:
                try_to_run(runner, model, arrays)
                continue
            outputs = runner.run(model, arrays)
            for i, (have, want) in enumerate(zip(outputs, results, strict=True)):
                assert_close(f"output {i}", want, have, case.tolerance)


def try_to_run(runner, model, arrays):
    """The model may refuse what JAX refuses, or not; it must not crash."""
    with contextlib.suppress(RefusalError):
        runner.run(model, arrays)


@parity(STATIC)
def test_static_sizes_of_zero(case, runner):
    check_all_sizes(case, runner)


@parity(DYNAMIC)
def test_symbolic_sizes_of_zero(case, runner):
    check_all_sizes(case, runner)


# ONNX Runtime refuses these, but whatever stands for the batch, it must not be the heads: no heads
# end the process.
NO_ATTENTION = [
    row("attention of one head", attention, f32("B", 5, 4), f32("B", 7, 4), f32("B", 7, 4)),
    row(
        "attention of products",
        lambda x, y, v: attention(x @ y.mT, x @ y.mT, v),
        *(f32("B", 6, 1), f32("B", 5, 1), f32("B", 6, 2)),
    ),
    row(
        "attention of heads beside",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v),
        *(f32(2, 5, "B", 4), f32(2, 7, "B", 4), f32(2, 7, "B", 4)),
    ),
]


@parity(NO_ATTENTION)
def test_attention_of_nothing_is_right_or_refused(case, runner):
    examples = list(expected(case))
    for _, proto in models_of(case):
        model = proto.SerializeToString()
        for arrays, results in examples:
            if 0 in arrays[0].shape:
                try_to_run(runner, model, arrays)
                continue
            for i, (have, want) in enumerate(zip(runner.run(model, arrays), results, strict=True)):
                assert_close(f"output {i}", want, have, case.tolerance)
