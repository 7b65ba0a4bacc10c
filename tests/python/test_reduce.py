# SPDX-License-Identifier: Apache-2.0
"""Reductions, cumulative operations and what is built from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from support.cases import bf16, boolean, c64, case, check, f16, f32, f64, i32, parity


def with_nan(x):
    """Rows where NaN comes first, last, twice, beside infinities, and not at all."""
    nan, inf = jnp.nan, jnp.inf
    rows = [
        [1, nan, 3],
        [nan, 1, nan],
        [-inf, -inf, nan],
        [inf, nan, inf],
        [1, 1, 0],
        [inf, -inf, 0],
    ]
    return jnp.concatenate([jnp.asarray(rows, x.dtype), x + jnp.zeros((1, 3), x.dtype)])


SHAPES = [[f32("B", 3, 4)], [f64(2, 3, 4)]]


def reduction(name, fn, tolerance="sum"):
    """A reduction over one axis, over two, over all and without a surviving rank."""
    return [
        case(
            f"{name} axis 1", lambda x: fn(x, axis=1), [f32(2, 3, 4)], SHAPES, tolerance=tolerance
        ),
        case(
            f"{name} axes 0, 2",
            lambda x: fn(x, axis=(0, 2)),
            [f32(2, 3, 4)],
            SHAPES,
            tolerance=tolerance,
        ),
        case(
            f"{name} all", lambda x: fn(x, axis=None), [f32(2, 3, 4)], SHAPES, tolerance=tolerance
        ),
        case(
            f"{name} keepdims",
            lambda x: fn(x, axis=-1, keepdims=True),
            [f32("B", 4)],
            tolerance=tolerance,
        ),
    ]


REDUCTIONS = [
    *reduction("sum", jnp.sum),
    *reduction("mean", jnp.mean),
    *reduction("prod", jnp.prod),
    *reduction("max", jnp.max, "exact"),
    *reduction("min", jnp.min, "exact"),
    *reduction("var", jnp.var),
    *reduction("std", jnp.std),
    *reduction("logsumexp", jax.nn.logsumexp),
    case("sum of integers", lambda x: x.sum(0), [i32(4, 3)], also=[[i32("B", 3)]]),
    case("max of integers", lambda x: x.max(1), [i32(4, 3)]),
    case("sum of booleans", lambda x: x.sum(0), [boolean(4, 3)]),
    case("any", lambda x: x.any(0), [boolean(2, 9)], also=[[boolean("B", 3)]]),
    case("all", lambda x: x.all(1), [boolean(9, 2)]),
    case("reduce_xor", lambda x: lax.reduce_xor_p.bind(x, axes=(0,)), [boolean(3, 9)]),
    case("max with nan", lambda x: jnp.log(x).max(0), [f32(3, 4)], tolerance="function"),
    case("argmax", lambda x: jnp.argmax(x, axis=1), [f32(3, 4)], also=[[f32("B", 4)], [i32(3, 9)]]),
    case("argmax over all", jnp.argmax, [f32(3, 4)]),
    *(
        case(
            f"{name} with nan along {axis}",
            lambda x, name=name, axis=axis: getattr(jnp, name)(with_nan(x), axis),
            [f32("B", 1)],
            [[f64(2, 1)], [f16(2, 1)], [bf16(2, 1)]],
            tolerance="exact",
        )
        for name in ("argmax", "argmin", "nanargmax", "nanargmin")
        for axis in (0, 1, -2, None)
    ),
    case("argmax of equal numbers", jnp.argmax, [i32(40, lo=0, hi=1)], [[f32(40, lo=0, hi=0)]]),
    case("argmin takes the first", lambda x: lax.argmin(x, 0, jnp.int32), [i32(9, 4, lo=0, hi=1)]),
    case("norm", lambda x: jnp.linalg.norm(x, axis=-1), [f32("B", 4)], tolerance="sum"),
]

CUMULATIVE = [
    case(
        "cumsum",
        lambda x: lax.cumsum(x, 1),
        [f32(2, 5)],
        also=[[f32("B", 5)], [i32(2, 5)]],
        tolerance="sum",
    ),
    case("cumsum reverse", lambda x: lax.cumsum(x, 0, reverse=True), [f32(5, 2)], tolerance="sum"),
    *[
        case(
            f"{fn.__name__}{' reverse' if reverse else ''}",
            lambda x, fn=fn, reverse=reverse: fn(x, 0, reverse=reverse),
            [f32(9, 2)],
            also=[[f32("T", 3)], [f32(1, 3)], *([] if fn is lax.cumlogsumexp else [[i32(7)]])],
            tolerance="sum",
            opsets=(17, 26),
        )
        for fn in (lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)
        for reverse in (False, True)
    ],
    case(
        "cumlogsumexp of infinities",
        lambda x: lax.cumlogsumexp(jnp.float32([-jnp.inf, -jnp.inf, 1, jnp.inf, jnp.inf]) + x),
        [f32()],
        tolerance="function",
    ),
]


def reduce_with(combine, init, dimensions):
    return lambda x: lax.reduce(x, jnp.asarray(init, x.dtype), combine, dimensions)


# A lambda keeps lax.reduce from choosing reduce_sum and its kin by itself.
GENERAL = [
    case("add", reduce_with(lambda a, b: b + a, 3, (0,)), [f32(4, 3)], tolerance="sum"),
    case("mul", reduce_with(lambda a, b: a * b, 2, (0, 1)), [f32(2, 3)], tolerance="sum"),
    case(
        "max", reduce_with(lambda a, b: lax.max(a, b), 1, (1,)), [f32("B", 3)], also=[[i32(4, 3)]]
    ),
    case(
        "sum of squares",
        reduce_with(lambda a, b: a + b * b, 1, (0, 2)),
        [f32(3, 4, 5)],
        also=[[f32("T", "B", 2)]],
        tolerance="sum",
    ),
    case("complex product", reduce_with(lambda a, b: a * b, 2, (1,)), [c64(2, 3)], tolerance="sum"),
    case(
        "the last of the largest, with its position",
        lambda x, i: lax.reduce(
            (x, i),
            (jnp.float32(-9), jnp.int32(-1)),
            lambda a, b: tuple(jnp.where(b[0] >= a[0], q, p) for p, q in zip(a, b, strict=True)),
            (1,),
        ),
        [f32(3, 4), i32(3, 4)],
    ),
    case("twice the last", reduce_with(lambda a, b: b + b, 1, (1,)), [f32(3, 4)]),
    case(
        "two results, crosswise",
        lambda x, y: lax.reduce(
            (x, y),
            (jnp.float32(1), jnp.float32(0)),
            lambda a, b: (lax.max(a[1], b[0]), lax.min(a[0], b[1])),
            (0,),
        ),
        [f32(4, 3), f32(4, 3)],
    ),
    case(
        "two results",
        lambda x, y: lax.reduce(
            (x, y),
            (jnp.float32(1), jnp.int32(0)),
            lambda a, b: (lax.max(a[0], b[0]), lax.min(a[1], b[1])),
            (0,),
        ),
        [f32(4, 3), i32(4, 3)],
    ),
    *[
        case(
            f"{name} of integers",
            lambda x, prim=prim: prim.bind(x, axes=(0,)),
            [i32(4, 9)],
            also=[[i32("B", 3)]],
        )
        for name, prim in (
            ("and", lax.reduce_and_p),
            ("or", lax.reduce_or_p),
            ("xor", lax.reduce_xor_p),
        )
    ],
]


def layer_norm(x, scale, bias, epsilon=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + epsilon) * scale + bias


def rms_norm(x, scale, epsilon=1e-6):
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + epsilon) * scale


COMPOSED = [
    case(
        "softmax",
        jax.nn.softmax,
        [f32(2, 5)],
        also=[[f32("B", 2, 5)], [f64(2, 5)]],
        tolerance="sum",
    ),
    case("softmax axis 0", lambda x: jax.nn.softmax(x, axis=0), [f32(3, 5)], tolerance="sum"),
    case(
        "softmax over two axes",
        lambda x: jax.nn.softmax(x, axis=(0, 2)),
        [f32(3, 5, 2)],
        tolerance="sum",
    ),
    case(
        "softmax of large numbers", lambda x: jax.nn.softmax(100 * x), [f32(2, 5)], tolerance="sum"
    ),
    case(
        "softmax with a mask",
        lambda x, m: jax.nn.softmax(x, where=m),
        [f32(2, 5), boolean(2, 5)],
        tolerance="sum",
    ),
    case("log_softmax", jax.nn.log_softmax, [f32(2, 5)], also=[[f32("B", 5)]], tolerance="sum"),
    case(
        "layer_norm",
        layer_norm,
        [f32(2, 3, 8), f32(8), f32(8)],
        also=[[f32("B", "T", 8), f32(8), f32(8)]],
        tolerance="network",
    ),
    case(
        "layer_norm of a transposed array",
        lambda x, s, b: layer_norm(x.T, s, b),
        [f32(8, 3), f32(8), f32(8)],
        tolerance="network",
    ),
    case(
        "rms_norm",
        rms_norm,
        [f32(2, 3, 8), f32(8)],
        also=[[f32("B", "T", 8), f32(8)]],
        tolerance="network",
    ),
    case(
        "standardize", lambda x: jax.nn.standardize(x, axis=-1), [f32("B", 8)], tolerance="network"
    ),
    case(
        "gradient of logsumexp", jax.grad(lambda x: jax.nn.logsumexp(x)), [f32(5)], tolerance="sum"
    ),
    case(
        "vmap of softmax",
        jax.vmap(jax.nn.softmax, in_axes=1, out_axes=1),
        [f32(4, 3)],
        tolerance="sum",
    ),
]


@parity(REDUCTIONS + CUMULATIVE + GENERAL + COMPOSED)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)
