# SPDX-License-Identifier: Apache-2.0
"""Primitives that move data: no value changes, so all results are exact."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from support.cases import boolean, case, check, f32, f64, i32, parity


def exact(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="exact")


def in_turn(axis):
    """x[0], y[0], x[1], y[1], …, as lax.associative_scan writes it; x may have one element more."""

    def put(x, low, size):
        high = size - low - (2 * x.shape[axis] - 1)
        config = [(0, 0, 0)] * x.ndim
        config[axis] = (low, high, 1)
        return lax.pad(x, x.dtype.type(0), config)

    def both(x, y):
        size = x.shape[axis] + y.shape[axis]
        even, odd = put(x, 0, size), put(y, 1, size)
        return even | odd if x.dtype == bool else even + odd

    return both


CASES = [
    exact("reshape", lambda x: x.reshape(6, 2), [f32(3, 4)], also=[[i32(3, 4)], [boolean(3, 4)]]),
    exact("reshape merges a symbolic axis", lambda x: x.reshape(-1, 4), [f32("B", 3, 4)]),
    exact("reshape splits", lambda x: x.reshape(x.shape[0], 2, -1, 3), [f32("B", 12)]),
    exact("reshape splits a symbolic axis", lambda x: x.reshape(-1, 4, 3), [f32("4*B", 3)]),
    exact("reshape to a scalar", lambda x: x.reshape(()), [f32(1, 1)]),
    exact("reshape from a scalar", lambda x: x.reshape(1, 1), [f32()]),
    exact("ravel", jnp.ravel, [f32("B", "T", 2)]),
    exact(
        "transpose",
        lambda x: lax.transpose(x, (2, 0, 1)),
        [f32(2, 3, 4)],
        also=[[f64("B", 3, "T")]],
    ),
    exact(
        "transpose of a reshape",
        lambda x: x.reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8),
        [f32(24)],
    ),
    exact("swapaxes twice", lambda x: x.swapaxes(0, 2).swapaxes(1, 2), [f32("B", 3, 4)]),
    exact("squeeze", lambda x: lax.squeeze(x, (0, 2)), [f32(1, 3, 1, 4)]),
    exact("expand_dims", lambda x: lax.expand_dims(x, (0, 2)), [f32("B", 3)]),
    exact("broadcast_in_dim new leading axes", lambda x: jnp.broadcast_to(x, (2, 3, 4)), [f32(4)]),
    exact(
        "broadcast_in_dim in the middle",
        lambda x: lax.broadcast_in_dim(x, (3, 5, 4), (0, 2)),
        [f32(3, 4)],
    ),
    exact("broadcast_in_dim of a unit axis", lambda x: jnp.broadcast_to(x, (3, 4)), [f32(3, 1)]),
    exact(
        "broadcast to a symbolic size",
        lambda x, y: jnp.broadcast_to(y, x.shape),
        [f32("B", 3), f32(3)],
    ),
    exact("full of a symbolic size", lambda x: jnp.full(x.shape[:1], 7, jnp.int32), [f32("B", 3)]),
    exact("concatenate", lambda x, y: lax.concatenate([x, y, x], 1), [f32(2, 3), f32(2, 4)]),
    exact(
        "concatenate symbolic", lambda x, y: jnp.concatenate([x, y], 0), [f32("B", 3), f32("T", 3)]
    ),
    exact("stack", lambda x, y: jnp.stack([x, y], axis=1), [f32("B", 3), f32("B", 3)]),
    exact("stack last", lambda x, y: jnp.stack([x, y], axis=-1), [i32(3), i32(3)]),
    exact("split", lambda x: jnp.split(x, [1, 4], axis=1), [f32("B", 6)]),
    exact("split equally", lambda x: jnp.split(x, 3, axis=0), [f32(6, 2)]),
    exact("slice of one row", lambda x: x[:, 1:2], [f32(2, 3, 4)], also=[[f32("B", 3, "T")]]),
    exact("slice of one element", lambda x: x[:1, 1:2], [f32(2, 3, 4)]),
    exact("rows without one", lambda x: jnp.delete(x, 1, axis=0), [f32(3, 4)]),
    exact("rows backwards", lambda x: jnp.stack([x[2], x[0]]), [f32(3, 4)]),
    exact("stack of columns", lambda x: jnp.stack([x[:, 1], x[:, 3]], axis=1), [f32("B", 5)]),
    exact("parts of a sum", lambda x: jnp.stack([x[0] + 1, x[1] + 1]), [f32(2, 4)]),
    exact("number in all places", lambda x: jnp.full((2, 3), x), [f32()]),
    exact("tile", lambda x: jnp.tile(x, (2, 3)), [f32(2, 3)], also=[[f32("B", 3)]]),
    exact("repeat", lambda x: jnp.repeat(x, 3, axis=0), [f32(2, 3)]),
    exact("slice", lambda x: lax.slice(x, (1, 0), (4, 5), (1, 2)), [f32(5, 6)]),
    exact("slice of a symbolic axis", lambda x: x[:, 1:3], [f32("B", 4)]),
    exact("slice from the end", lambda x: x[..., -2:], [f32("B", "T + 2")]),
    exact("slice backwards", lambda x: x[::-2], [f32(7, 2)]),
    exact("take one index", lambda x: x[:, 0], [f32("B", 3, 4)]),
    exact("rev", lambda x: lax.rev(x, (0, 2)), [f32(2, 3, 4)], also=[[f32("B", 3, 4)]]),
    exact(
        "pad", lambda x: lax.pad(x, 7.0, ((1, 2, 0), (0, 3, 0))), [f32(2, 3)], also=[[f32("B", 3)]]
    ),
    exact("in turn", in_turn(0), [f32(3, 4)] * 2, also=[[boolean(3)] * 2, [f32(1)] * 2]),
    exact("in turn along the last axis", in_turn(-1), [f32("B", 3)] * 2, also=[[i32(2, 3)] * 2]),
    exact("in turn, one more", in_turn(1), [f32("B", 3, 2), f32("B", 2, 2)]),
    exact("in turn, one more of few", in_turn(0), [f32(2), f32(1)], also=[[f64(2), f64(1)]]),
    exact("in turn under vmap", jax.vmap(in_turn(0), (1, 0)), [f32(3, 4), f32(4, 3)]),
    exact("in turn, not finite", lambda x: in_turn(0)(x / 0, x * jnp.nan), [f32(9)]),
    exact("pad inside", lambda x: lax.pad(x, 7.0, ((1, 2, 1), (0, 0, 2))), [f32(2, 3)]),
    exact(
        "pad with negative edges", lambda x: lax.pad(x, 7.0, ((-1, 2, 0), (1, -2, 0))), [f32(3, 4)]
    ),
    exact("pad of integers", lambda x: jnp.pad(x, ((1, 1), (0, 2))), [i32(2, 3)]),
    exact("pad repeats the edge", lambda x: jnp.pad(x, ((1, 2),), mode="edge"), [f32(4)]),
    exact("iota", lambda x: x + lax.broadcasted_iota(jnp.int32, (3, 4), 1), [i32(3, 4)]),
    exact("arange of a symbolic size", lambda x: jnp.arange(x.shape[0]) + x, [i32("B")]),
    exact("shape as a value", lambda x: x[0] * 0 + x.shape[0], [i32("B")]),
    exact("eye", lambda x: x + jnp.eye(3), [f32(3, 3)]),
    exact("tril", jnp.tril, [f32(4, 4)], also=[[f32("T", "T")]]),
    exact(
        "diagonal of ones", lambda x: jnp.where(jnp.tri(4, k=1, dtype=bool), x, 0.0), [f32(4, 4)]
    ),
    exact("result is an argument", lambda x: x, [f32("B")]),
    exact("the same result twice", lambda x: (x + x, x + x), [f32(3)]),
    exact("result is a constant", lambda x: (x, jnp.arange(3.0)), [f32(2)]),
    exact("nested results", lambda x: {"b": (x, -x), "a": [x[0]]}, [f32(3)]),
    exact("an empty array", lambda x: jnp.concatenate([x, x]), [f32(0, 3)]),
    exact("sums of nothing", lambda x: (x.sum(0), x.prod(0), x.sum(1)), [f32(0, 3)]),
    exact("products over nothing", jnp.matmul, [f32(3, 0), f32(0, 4)]),
    exact(
        "nothing of a unit axis",
        lambda x: jnp.pad(x[:, :0] * x[:, :1], ((0, 0), (2, 0))),
        [f32(3, 2)],
    ),
    exact(
        "space to depth",
        lambda x: (
            x.reshape(x.shape[0], 2, 2, 2, 2, 3)
            .transpose(0, 1, 3, 2, 4, 5)
            .reshape(x.shape[0], 2, 2, 12)
        ),
        [f32("B", 4, 4, 3)],
    ),
]


@parity(CASES)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)
