# SPDX-License-Identifier: Apache-2.0
"""Control flow: cond, switch, while_loop, fori_loop, scan, map, and what is inlined."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec

import jaxport
from support.cases import (
    bf16,
    boolean,
    case,
    check,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    parity,
    structs,
    u8,
    u32,
)

WEIGHT = np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)
SQUARE = np.random.default_rng(1).normal(size=(40, 40)).astype(np.float32) / 40


def switch(i, x):
    return lax.switch(i, [jnp.sin, lambda y: y + 1, lambda y: y * 2, jnp.negative, jnp.abs], x)


def nested_cond(p, q, x):
    def outer(y):
        return lax.cond(q, lambda z: z * 2, lambda z: z + y.sum(), y)

    return lax.cond(p, outer, jnp.tanh, x)


def two_results(p, x, y):
    return lax.cond(p, lambda a, b: (a, b * 2), lambda a, b: (b, a), x, y)


CONDITIONS = [
    case(
        "cond",
        lambda p, x: lax.cond(p, lambda y: y + 1, lambda y: y * 3, x),
        [boolean(), f32(4, 3)],
        also=[[boolean(), f32("B", 3)], [boolean(), f64(3)], [boolean(), i32("B")]],
    ),
    case("cond of a computed bool", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), [f32(5)]),
    case("cond without operands", lambda p: lax.cond(p, lambda: 1.5, lambda: 2.5), [boolean()]),
    case(
        "branches with captured weights",
        lambda p, x: lax.cond(p, lambda y: jnp.tanh(y @ WEIGHT), lambda y: y @ (2 * WEIGHT), x),
        [boolean(), f32(2, 3)],
        also=[[boolean(), f32("B", 3)]],
        tolerance="sum",
    ),
    case("results that are operands", two_results, [boolean(), f32(3), f32(3)]),
    case("nested cond", nested_cond, [boolean(), boolean(), f32("B")], tolerance="sum"),
    case("switch", switch, [i32(lo=-2, hi=6), f32(7)], also=[[i32(lo=-2, hi=6), f32("B")]]),
    case("vmap of switch", jax.vmap(switch), [i32(9, lo=0, hi=4), f32(9, 2)]),
    case("constant index", lambda x: switch(2, x), [f32(3)]),
    case(
        "gradient of cond",
        lambda p, x: jax.grad(lambda y: lax.cond(p, jnp.sin, jnp.cos, y).sum())(x),
        [boolean(), f32(4)],
    ),
    case(
        "softmax inside cond",
        lambda p, x: lax.cond(p, jax.nn.softmax, jax.nn.gelu, x),
        [boolean(), f32("B", 5)],
        tolerance="sum",
    ),
]


def collatz(n):
    def body(c):
        n, steps = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda c: c[0] > 1, body, (n, jnp.zeros_like(n)))


def newton(x):
    return lax.while_loop(
        lambda y: jnp.abs(y * y - x) > 1e-3 * x, lambda y: 0.5 * (y + x / y), jnp.ones_like(x)
    )


def counted(condition, start=0, step=1):
    """A while loop that counts, as programs spell a loop of known length."""

    def run(x):
        def body(c):
            i, y = c
            return i + step, jnp.tanh(y * 0.5) + i

        return lax.while_loop(lambda c: condition(c[0]), body, (jnp.int32(start), x))

    return run


def count_to_bound(x):
    """The bound is carried, as fori_loop has it."""
    bounds = jnp.int32(2), jnp.int32(9)
    return lax.fori_loop(*bounds, lambda i, c: jnp.tanh(c) * i, x)


COUNTED = [
    case("while i < n", counted(lambda i: i < 9), [f32(3)], also=[[f32("B")], [f64(2)]]),
    case("while i <= n", counted(lambda i: i <= 9, start=3), [f32(3)]),
    case("while i < n by threes", counted(lambda i: i < 20, start=-1, step=3), [f32(3)]),
    case("while i < n, which it is not", counted(lambda i: i < 0), [f32(3)]),
    case("while i <= n, once", counted(lambda i: i <= 0), [f32(3)]),
    case("fori_loop with known arrays as bounds", count_to_bound, [f32(3)], tolerance="function"),
]
# A condition that says something else: the loop counts, but for how long depends on the numbers.
UNCOUNTED = [
    case("while i != n", counted(lambda i: i != 9), [f32(3)]),
    case("while n > i", counted(lambda i: jnp.int32(9) > i), [f32(3)]),
    case("while i < n, downwards", counted(lambda i: i > -9, step=-1), [f32(3)]),
    case(
        "while i < n and y is small",
        lambda x: lax.while_loop(
            lambda c: (c[0] < 20) & (c[1].sum() < 50), lambda c: (c[0] + 1, c[1] + 1.5), (0, x)
        ),
        [f32(3)],
    ),
    case(
        "while i < n where i skips",
        lambda x: lax.while_loop(
            lambda c: c[0] < 20, lambda c: (c[0] + 1 + c[0] % 2, c[1] + 1.5), (0, x)
        ),
        [f32(3)],
    ),
    case(
        "while i < n where n falls",
        lambda x: lax.while_loop(
            lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] - 1, c[2] + 1.5), (0, 20, x)
        ),
        [f32(3)],
    ),
]

LOOPS = [
    case("while_loop", collatz, [i32(lo=1, hi=30)], also=[[i64(lo=1, hi=30)]]),
    case("vmap of while_loop", jax.vmap(collatz), [i32(6, lo=1, hi=30)], also=[[i32("B", lo=1)]]),
    case("vmap of a float while_loop", jax.vmap(newton), [f32(5, lo=1, hi=9)]),
    case(
        "two vmaps of while_loop",
        jax.vmap(jax.vmap(collatz)),
        [i32("B", 3, lo=1, hi=30)],
    ),
    case(
        "a loop that does not run",
        lambda x: lax.while_loop(lambda c: c.sum() < -1e9, lambda c: c * 2, x),
        [f32(3)],
    ),
    case(
        "while_loop with captured values",
        lambda x, y: lax.while_loop(
            lambda c: jnp.sum(c) < jnp.sum(jnp.abs(y)), lambda c: c + jnp.abs(y) + 1, x
        ),
        [f32("B"), f32("B")],
        tolerance="sum",
    ),
    case(
        "fori_loop",
        lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x),
        [f32(4, 3)],
        also=[[f32("B")], [f64(2)]],
    ),
    case(
        "fori_loop with run-time bounds",
        lambda a, b, x: lax.fori_loop(a, b, lambda i, c: c * 0.5 + i, x),
        [i32(lo=-2, hi=2), i32(lo=0, hi=5), f32(3)],
    ),
    case(
        "fori_loop over a symbolic size",
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i] * i, jnp.zeros(3)),
        [f32("B", 3)],
        tolerance="sum",
    ),
    case(
        "nested fori_loop",
        lambda x: lax.fori_loop(
            0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, d: d * 0.5 + i * j, c) + x, x
        ),
        [f32("B", 2)],
    ),
    case(
        "dynamic update in a loop",
        lambda x: lax.fori_loop(0, 4, lambda i, c: c.at[i].set(c[i - 1] + 1), x),
        [f32(5)],
    ),
]


def accumulate(carry, x):
    return carry * 0.5 + x, carry - x


def cell(h, x):
    h = jnp.tanh(x @ WEIGHT + h @ SQUARE)
    return h, h.sum()


def scan(body, init, **options):
    return lambda *xs: lax.scan(body, init, xs if len(xs) > 1 else xs[0], **options)


SCANS = [
    case(
        "scan",
        scan(accumulate, jnp.zeros(3)),
        [f32(4, 3)],
        also=[[f32("T", 3)], [f32(1, 3)], [f32(0, 3)]],
    ),
    case(
        "carries of other dtypes",
        lambda x: lax.scan(lambda c, y: (c + y, jnp.maximum(c, y)), jnp.zeros_like(x[0]), x),
        [f16("T", 2)],
        also=[[bf16("T", 2)], [i8("T", 2)], [u8("T", 2)], [u32("T", 2)], [i64("T", 2)]],
    ),
    case(
        "scan of attention over symbolic features",
        lambda x: lax.scan(lambda c, y: (c, jax.nn.softmax(y @ y.T) @ y), 0, x)[1],
        [f32(3, 2, "T")],
        tolerance="network",
    ),
    case("scan of integers", scan(lambda c, x: (c + x, c), jnp.int32(0)), [i32("T")]),
    case("scan of doubles", lambda x: lax.scan(accumulate, jnp.zeros_like(x[0]), x), [f64("T", 2)]),
    case(
        "reverse scan",
        scan(accumulate, jnp.zeros(3), reverse=True),
        [f32(4, 3)],
        also=[[f32("T", 3)]],
    ),
    case("two steps", scan(accumulate, jnp.zeros(3)), [f32(2, 3)]),
    case("three steps backwards", scan(accumulate, jnp.zeros(3), reverse=True), [f32(3, 3)]),
    case(
        "four steps without xs",
        lambda x: lax.fori_loop(0, 4, lambda i, c: c * 0.5 + i, x),
        [f32(3)],
    ),
    case("unrolled scan", scan(accumulate, jnp.zeros(3), unroll=3), [f32(7, 3)]),
    case(
        "several xs and ys",
        scan(lambda c, xs: (c + xs[0], (c, xs[1] * 2)), jnp.zeros(2)),
        [f32("T", 2), f32("T", 3)],
    ),
    case("scan without ys", scan(lambda c, x: (c * 0.5 + x, None), jnp.zeros(3)), [f32("T", 3)]),
    case("scan without a carry", scan(lambda c, x: (c, jnp.sin(x)), None), [f32("T", 3)]),
    case(
        "scan without xs",
        lambda x: lax.scan(lambda c, _: (c * 0.5, c + 1), x, None, length=5),
        [f32(3)],
    ),
    case(
        "reverse scan without xs",
        lambda x: lax.scan(lambda c, _: (c * 0.5, c + 1), x, None, length=5, reverse=True),
        [f32(3)],
    ),
    case(
        "recurrent cell with captured weights",
        scan(cell, jnp.zeros(40)),
        [f32(6, 3)],
        also=[[f32("T", 3)]],
        tolerance="sum",
    ),
    case(
        "vmap of a recurrent cell",
        jax.vmap(scan(cell, jnp.zeros(40))),
        [f32("B", "T", 3)],
        tolerance="sum",
    ),
    case(
        "nested scans",
        scan(lambda c, row: lax.scan(accumulate, c, row), jnp.float32(0)),
        [f32("T", 4)],
    ),
    case(
        "scan inside cond",
        lambda p, x: lax.cond(p, scan(accumulate, jnp.zeros(3)), lambda y: (y[0], y), x),
        [boolean(), f32(4, 3)],
    ),
    case(
        "cond inside scan",
        scan(lambda c, x: (lax.cond(c > 0, lambda: c - 1, lambda: c + x), c), jnp.float32(0)),
        [f32("T")],
    ),
    case(
        "softmax inside scan",
        scan(lambda c, x: (c + jax.nn.softmax(x), jax.nn.gelu(x)), jnp.zeros(5)),
        [f32("T", 5)],
        tolerance="sum",
    ),
    case(
        "gradient of scan",
        jax.grad(
            lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), c * y), jnp.zeros(3), x)[0].sum()
        ),
        [f32(4, 3)],
        also=[[f32("T", 3)]],
        tolerance="sum",
    ),
    case(
        "gradient of a recurrent cell",
        jax.grad(lambda x: lax.scan(cell, jnp.zeros(40), x)[1].sum()),
        [f32("T", 3)],
        tolerance="sum",
    ),
    case("map", lambda x: lax.map(lambda y: jnp.sin(y).sum(), x), [f32("B", 3)], tolerance="sum"),
    case("map in batches", lambda x: lax.map(jnp.sin, x, batch_size=2), [f32(5, 3)]),
    case(
        "associative_scan",
        lambda x: lax.associative_scan(jnp.add, x),
        [f32(5, 2)],
        also=[[f32(1, 2)], [f32(8)], [f32(13, "B")]],
        tolerance="sum",
    ),
    case(
        "reverse associative_scan of a pair",
        lambda a, b: lax.associative_scan(
            lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a, b), reverse=True
        ),
        [f32(6, 2), f32(6, 2)],
        tolerance="sum",
    ),
]


# --- steps that do not wait for each other


def step_of_views(x):
    """Dims that are merged, cut, moved and repeated beside those of the steps."""
    merged = x.T.reshape(-1)
    halves = jnp.concatenate([merged[6:], merged[::2], jnp.stack([merged[0], merged[5]])])
    return jnp.tile(halves.reshape(7, 2), (1, 3)).sum(0) + x[:, None, 1:3].mean()


def step_of_products(x):
    return jnp.einsum("ij,kj->ik", x, x) @ x, jnp.vdot(x, x), x @ WEIGHT[:, :3].T


def mapped(step):
    return lambda *xs: lax.map(lambda args: step(*args), xs)


def behind(c, x):
    """The next carry; of what is collected, all but the carry is computed behind the loop."""
    new = jnp.sin(c @ SQUARE[:3, :3] + x)
    return new, (new, jax.nn.softmax(new * x), new.sum() > 0, new @ WEIGHT, c.max(), jnp.ones(2))


AT_ONCE = [
    case(
        "views of a step",
        mapped(step_of_views),
        [f32(5, 4, 3)],
        also=[[f64("T", 4, 3)]],
        tolerance="sum",
    ),
    case(
        "products in a step",
        mapped(step_of_products),
        [f32(5, 3, 3)],
        also=[[f32("T", 3, 3)], [i32(5, 3, 3)]],
        tolerance="sum",
    ),
    case(
        "scalars of a step",
        mapped(lambda a, x, b: jnp.where(b, a * x, x / a).astype(jnp.float16) + a.astype("int8")),
        [f32(9), f32(9, 2), boolean(9)],
        also=[[f32("T"), f32("T", 3), boolean("T")]],
        tolerance="function",
    ),
    case(
        "calls in a step",
        mapped(lambda x: jax.nn.silu(jax.nn.logsumexp(x)) + jnp.var(x) + log1pexp(x)),
        [f32("T", 7)],
        tolerance="sum",
    ),
    case("steps that are all the same", lambda x: lax.map(lambda _: x * 2, jnp.zeros(9)), [f32(3)]),
    case("positions of the steps", lambda x: lax.map(lambda i: x * i, jnp.arange(9.0)), [f32(3)]),
    case("map of a map", mapped(lambda x: lax.map(jnp.sin, x).sum()), [f32(5, 6)], tolerance="sum"),
    case("map under vmap", jax.vmap(lambda x: lax.map(jnp.max, x)), [f32("B", 6, 2)]),
    case("map with a sort in it", mapped(lambda x: jnp.sort(x) * x.max()), [f32(5, 6)]),
    case("map over a large grid", mapped(lambda x: (x * jnp.ones((800, 800))).sum()), [f32(5)]),
    case(
        "gradient of map",
        jax.grad(lambda x: lax.map(lambda row: jnp.tanh(row @ WEIGHT).sum(), x).sum()),
        [f32(6, 3)],
        tolerance="sum",
    ),
    *(
        case(
            f"computed behind the loop{', backwards' if reverse else ''}",
            lambda c, x, reverse=reverse: lax.scan(behind, c, x, reverse=reverse),
            [f32(3), f32(9, 3)],
            also=[[f32(3), f32("T", 3)], [f64(3), f64(7, 3)]],
            tolerance="sum",
        )
        for reverse in (False, True)
    ),
    case(
        "computed behind a loop under vmap",
        jax.vmap(lambda c, x: lax.scan(behind, c, x)),
        [f32(4, 3), f32(4, 9, 3)],
        tolerance="sum",
    ),
]


@pytest.mark.parametrize("rows", [COUNTED, UNCOUNTED], ids=["counted", "uncounted"])
def test_loops_of_known_length_are_scans(rows):
    for row in rows:
        fn, inputs = row[0].fn, structs(row[0].inputs)
        ops = [node.op_type for node in jaxport.to_onnx(fn, inputs).graph.node]
        assert ("Loop" in ops) == (rows is UNCOUNTED), row[0].name


def test_steps_at_once_have_no_loop():
    def ops(fn, *shapes):
        model = jaxport.to_onnx(fn, list(shapes))
        return [node.op_type for node in model.graph.node]

    assert ops(mapped(jnp.sin), ("T", 3)) == ["Sin"]
    assert ops(mapped(lambda x: jnp.tanh(x @ WEIGHT)), (9, 3)) == ["MatMul", "Tanh"]
    assert "Scan" in ops(mapped(lambda x: jnp.sort(x)), (9, 3))
    assert "Scan" in ops(mapped(lambda x: (x * jnp.arange(2.0**20)).sum()), (9,))
    found = ops(lambda c, x: lax.scan(behind, c, x)[1][1], (3,), (9, 3))
    assert found[:2] == ["Scan", "Mul"]
    assert "Softmax" in found


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


log1pexp.defjvps(lambda dx, ans, x: dx * (1 - 1 / (1 + jnp.exp(x))))


@jax.custom_vjp
def clip_gradient(x):
    return x * 2


clip_gradient.defvjp(lambda x: (x * 2, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))


MESH = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))


def one_device(fn):
    parts = PartitionSpec("i")
    return jax.shard_map(fn, mesh=MESH, in_specs=parts, out_specs=parts, check_vma=False)


COLLECTIVES = [
    case(
        "shard_map over one device",
        one_device(lambda x: x * lax.psum(x, "i") + lax.axis_index("i")),
        [f32(4, 3)],
    ),
    case("all_gather", one_device(lambda x: lax.all_gather(x, "i")), [f32(4, 3)]),
    case("all_gather tiled", one_device(lambda x: lax.all_gather(x, "i", tiled=True)), [f32(4)]),
    case("all_to_all", one_device(lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True)), [f32(4, 3)]),
    case("psum_scatter", one_device(lambda x: lax.psum_scatter(x, "i", tiled=True)), [f32(4)]),
    case(
        "psum over a vmapped axis",
        jax.vmap(lambda x: x - lax.psum(x, "batch"), axis_name="batch"),
        [f32("B", 3)],
        tolerance="sum",
    ),
    case(
        "pmean over a vmapped axis",
        jax.vmap(lambda x: x - lax.pmean(x, "batch"), axis_name="batch"),
        [f32(4, 3)],
        tolerance="sum",
    ),
    case(
        "pmax and pmin over a vmapped axis",
        jax.vmap(lambda x: lax.pmax(x, "b") - lax.pmin(x, "b"), axis_name="b"),
        [f32(4, 3)],
    ),
]

CALLS = [
    case("custom_jvp", log1pexp, [f32(3)]),
    case(
        "gradient of custom_jvp",
        jax.grad(lambda x: log1pexp(x).sum()),
        [f32(3)],
        tolerance="function",  # a sigmoid
    ),
    case("custom_vjp", clip_gradient, [f32(3)]),
    case("gradient of custom_vjp", jax.grad(lambda x: clip_gradient(x).sum()), [f32(3)]),
    case("checkpoint", jax.checkpoint(lambda x: jnp.sin(jnp.cos(x))), [f32("B")]),
    case(
        "gradient of checkpoint",
        jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.cos(y)))(x).sum()),
        [f32("B")],
        tolerance="sum",
    ),
    case("optimization_barrier", lambda x: lax.optimization_barrier((x, x + 1)), [f32("B")]),
    case(
        "custom_linear_solve",
        lambda x: lax.custom_linear_solve(lambda v: 2 * v, x, lambda _, b: b / 2),
        [f32("B")],
    ),
    case(
        "custom_root",
        lambda x: lax.custom_root(
            lambda y: y * y - x, x, lambda f, y: y - f(y) / 4, lambda g, y: y / g(1.0)
        ),
        [f32(lo=1, hi=4)],
    ),
]


@parity(CONDITIONS + COUNTED + UNCOUNTED + LOOPS + SCANS + AT_ONCE + COLLECTIVES + CALLS)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)
