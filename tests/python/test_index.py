# SPDX-License-Identifier: Apache-2.0
"""Gather, scatter, dynamic slices, sorting."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from support.cases import boolean, case, check, f32, f64, i32, parity


def exact(name, fn, inputs, also=(), **options):
    return case(name, fn, inputs, also, tolerance="exact", **options)


GATHER = [
    exact("one row often", lambda x, i: jnp.take(x, i, axis=0, mode="clip"), [f32(1, 3), i32("B")]),
    exact("one row or NaN", lambda x, i: jnp.take(x, i, axis=0), [f32(1, 3), i32(4, lo=-2, hi=2)]),
    exact("one element twice", lambda x: x[jnp.array([3, 3])], [f32("N")], sizes=(1, 3, 5)),
    exact(
        "take rows",
        lambda x, i: x[i],
        [f32(5, 3), i32(4, lo=0, hi=4)],
        also=[[f32(5, 3), i32("B", lo=0, hi=4)]],
    ),
    exact(
        "embedding",
        lambda table, i: jnp.take(table, i, axis=0),
        [f32(9, 4), i32("B", "T", lo=0, hi=8)],
    ),
    exact(
        "take along the last axis",
        lambda x, i: jnp.take(x, i, axis=-1),
        [f32("B", 5), i32(3, lo=0, hi=4)],
    ),
    exact("negative indices", lambda x, i: x[i], [f32(5, 3), i32(4, lo=-5, hi=4)]),
    exact(
        "indices out of bounds clip",
        lambda x, i: x.at[i].get(mode="clip"),
        [f32(5, 3), i32(6, lo=-9, hi=9)],
    ),
    exact(
        "indices out of bounds fill",
        lambda x, i: x.at[i].get(mode="fill", fill_value=-7.0),
        [f32(5, 3), i32(6, lo=0, hi=9)],
    ),
    exact("one dynamic index", lambda x, i: x[i], [f32(5, 3), i32(lo=0, hi=4)]),
    exact(
        "two index arrays",
        lambda x, i, j: x[i, j],
        [f32(4, 5, 3), i32(6, lo=0, hi=3), i32(6, lo=0, hi=4)],
    ),
    exact("index and slice", lambda x, i: x[:, i, 1:], [f32("B", 4, 5), i32(3, lo=0, hi=3)]),
    exact(
        "take_along_axis",
        lambda x, i: jnp.take_along_axis(x, i, axis=1),
        [f32(3, 5), i32(3, 2, lo=0, hi=4)],
        also=[[f32("B", 5), i32("B", 2, lo=0, hi=4)]],
    ),
    exact("static index array", lambda x: x[:, jnp.array([2, 0, 1])], [f32("B", 3)]),
    exact("vmap of indexing", jax.vmap(lambda x, i: x[i]), [f32(3, 5), i32(3, lo=0, hi=4)]),
    exact(
        "one_hot",
        lambda i: jax.nn.one_hot(i, 5),
        [i32(6, lo=0, hi=4)],
        also=[[i32("B", lo=0, hi=4)]],
    ),
]

SCATTER = [
    exact("set one row", lambda x: x.at[1].set(7.0), [f32(4, 3)], also=[[f32(4, "B")]]),
    exact("set a column", lambda x, y: x.at[:, 2].set(y), [f32("B", 4), f32("B")]),
    exact(
        "set rows",
        lambda x, i, y: x.at[i].set(y, unique_indices=True),
        [f32(5, 3), i32(1, lo=0, hi=4), f32(1, 3)],
    ),
    exact("set every third", lambda x, y: x.at[:, 1::3].set(y), [f32("B", 6), f32("B", 2)]),
    exact("set every third of seven", lambda x, y: x.at[:, 1::3].set(y), [f32(4, 7), f32(4, 2)]),
    exact("set every second from 3", lambda x, y: x.at[3::2].set(y), [f32(8, 2), f32(3, 2)]),
    exact("set several rows", lambda x, y: x.at[jnp.arange(2) + 1].set(y), [f32(5, 2), f32(2, 2)]),
    exact("add to every second", lambda x, y: x.at[..., ::2].add(y), [f32(3, 4), f32(3, 2)]),
    exact("set a block", lambda x, y: x.at[1:3, 2:].set(y), [f32(4, 5), f32(2, 3)]),
    exact(
        "set drops out of bounds",
        lambda x, i: x.at[i].set(9.0, mode="drop"),
        [f32(5), i32(6, lo=3, hi=9)],
    ),
    case(
        "add rows",
        lambda x, i, y: x.at[i].add(y),
        [f32(5, 3), i32(8, lo=0, hi=4), f32(8, 3)],
        also=[[f64(5, 3), i32("B", lo=0, hi=4), f64("B", 3)]],
        tolerance="sum",
    ),
    case(
        "multiply rows",
        lambda x, i, y: x.at[i].multiply(y),
        [f32(5), i32(4, lo=0, hi=4), f32(4)],
        tolerance="sum",
    ),
    exact(
        "max rows",
        lambda x, i, y: x.at[i].max(y),
        [f32(5), i32(8, lo=0, hi=4), f32(8)],
        opsets=(18, 23),
    ),
    exact(
        "min rows",
        lambda x, i, y: x.at[i].min(y),
        [f32(5), i32(8, lo=0, hi=4), f32(8)],
        opsets=(18, 23),
    ),
    case("apply", lambda x: x.at[1:3].apply(jnp.tanh), [f32(5, 3)], tolerance="function"),
    case(
        "apply as often as an index occurs",
        lambda x, i: x.at[i].apply(lambda old: 2 * old + 1),
        [f32(5, 3), i32(4, lo=0, hi=6)],
    ),
    case(
        "apply, batched",
        jax.vmap(lambda x, i: x.at[i].apply(lambda old: 2 * old + 1)),
        [f32(2, 5), i32(2, 8, lo=0, hi=6)],
    ),
    exact(
        "gradient of max rows at known places",
        jax.grad(lambda x, y: jnp.square(x.at[jnp.array([1, 3])].max(y)).sum(), (0, 1)),
        [f32(5, 2), f32(2, 2)],
        opsets=(18, 23),
    ),
    exact(
        "a broken promise to write inside",
        lambda x, i: x.at[i].set(9.0, mode="promise_in_bounds"),
        [f32(5), i32(6, lo=3, hi=9)],
    ),
    exact(
        "a broken promise to read inside",
        lambda x, i: x.at[i].get(mode="promise_in_bounds"),
        [f32(5, 2), i32(6, lo=3, hi=9)],
        also=[[f32("B", 2), i32(6, lo=0, hi=9)]],
    ),
    case(
        "segment_sum",
        lambda x, i: jax.ops.segment_sum(x, i, 4),
        [f32(9, 2), i32(9, lo=0, hi=3)],
        tolerance="sum",
    ),
    case(
        "gradient of indexing",
        jax.grad(lambda x, i: jnp.square(x[i]).sum()),
        [f32(5), i32(8, lo=0, hi=4)],
        tolerance="sum",
    ),
]

DYNAMIC = [
    exact(
        "an empty update",
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)),
        [f32(5, 6), f32(0, 3), i32()],
    ),
    exact(
        "dynamic_slice",
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        [f32(5, 6), i32(), i32()],
    ),
    exact(
        "dynamic_slice clamps",
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 3, 1),
        [f32("B", 5), i32(lo=3, hi=9)],
    ),
    exact(
        "dynamic_update_slice",
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 1)),
        [f32(5, 6), f32(2, 3), i32()],
    ),
    exact(
        "dynamic_index_in_dim",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
        [f32(5, 6), i32(lo=0, hi=4)],
    ),
    exact("roll", lambda x: jnp.roll(x, 2, axis=1), [f32("B", 5)]),
]

ORDER = [
    exact(
        "sort", lambda x: lax.sort(x, dimension=0), [f32(5, 3)], also=[[i32(9, 2)], [f32("B", 3)]]
    ),
    exact("sort descending", lambda x: jnp.sort(x, axis=-1, descending=True), [f32(3, 5)]),
    exact("argsort is stable", lambda x: jnp.argsort(x, axis=-1), [i32(3, 9, lo=0, hi=2)]),
    exact(
        "sort two operands by one key",
        lambda x, y: lax.sort((x, y), dimension=1, num_keys=1),
        [i32(2, 9, lo=0, hi=3), f32(2, 9)],
    ),
    exact("top_k", lambda x: lax.top_k(x, 3), [f32(2, 5)], also=[[f32("B", 5)]]),
    exact("median", lambda x: jnp.median(x, axis=1), [f32(3, 5)]),
    exact(
        "where of one mask",
        lambda m, x: jnp.where(m, x, jnp.zeros_like(x)),
        [boolean("B", 3), f32("B", 3)],
    ),
]


@parity(GATHER + SCATTER + DYNAMIC + ORDER)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize(
    ("count", "ops"), [(1000, {"Mul": 1}), (2_000_000, {"Gather": 1, "Div": 1})]
)
def test_table_at_known_places_is_a_constant_unless_it_is_large(count, ops):
    table = np.sin(np.arange(7, dtype=np.float32))
    look_up = lambda x: x * jnp.asarray(table)[jnp.arange(count) % 7]  # noqa: E731
    model = jaxport.to_onnx(look_up, [()], return_mode="model")
    assert {op: model.stats()["ops"].get(op) for op in ops} == ops
    assert model.stats()["initializer_bytes"] < 3_000_000 * len(ops)
