# SPDX-License-Identifier: Apache-2.0
"""What is known of values makes models smaller: no NaN, whole numbers, positions, known amounts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from support.cases import load

FLOATS = np.array([0.0, -0.0, 1.5, -1.5, np.nan, np.inf, -np.inf, 1e-7, 3e4])
INTEGERS = np.array([0, 1, -1, 2, -5, 7, 100, -100, 2**31 - 1, -(2**31)])


def converted(fn, *arrays):
    """The ops of the model, and its results for these arrays."""
    model = jaxport.to_onnx(fn, [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays])
    session = load(model, 23)
    names = [value.name for value in session.get_inputs()]
    results = session.run(None, dict(zip(names, arrays, strict=True)))
    return {node.op_type for node in model.graph.node}, results


def assert_same(have, want):
    for given, wanted in zip(have, jax.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(given, np.asarray(wanted))


def guarded(x):
    return jnp.where(jnp.isnan(x), -jnp.inf, x)


def finite_only(x):
    return jnp.where(jnp.isfinite(x), x, 0.0)


def rows_of(values, rows, columns, dtype):
    random = np.random.default_rng(rows * 31 + columns)
    return random.choice(values, (rows, columns)).astype(dtype)


def taken_at_the_largest(x, table):
    _, index = lax.top_k(x, 2)
    return jnp.take(table, index, axis=0), index


def taken_in_order(x, table):
    return jnp.take(table, jnp.argsort(x, axis=1), axis=0)


ORDERS = [
    ("nanargmax", lambda x: jnp.nanargmax(x, 1)),
    ("nanargmin", lambda x: jnp.nanargmin(x, 0)),
    ("argmax of numbers", lambda x: jnp.argmax(finite_only(x), 1)),
    ("argmax of a maximum", lambda x: jnp.argmax(jnp.exp(-jnp.abs(guarded(x))), 0)),
    ("sort", lambda x: jnp.sort(guarded(x), 1)),
    ("top_k", lambda x: lax.top_k(jnp.abs(guarded(x)), 2)),
    ("argsort", lambda x: jnp.argsort(guarded(x), 1)),
    ("of integers", lambda x: jnp.argmax(jnp.isnan(x).astype(jnp.float32) * 1, 1)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("fn", [row[1] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_orders_without_nan_have_no_branch(fn, dtype):
    with jax.enable_x64(dtype == np.float64):
        for rows, columns in ((3, 9), (1, 2), (40, 17)):
            x = rows_of(FLOATS, rows, columns, dtype)
            ops, have = converted(fn, x)
            assert "If" not in ops
            assert_same(have, fn(x))


NOT_KNOWN = [
    ("a plain argmax", lambda x: jnp.argmax(x, 1)),
    ("the guard of another value", lambda x: jnp.argmax(jnp.where(jnp.isnan(x[::-1]), 0, x), 1)),
    ("a guard that gives NaN", lambda x: jnp.argmax(jnp.where(jnp.isnan(x), jnp.nan, x), 1)),
    ("a guard the wrong way", lambda x: jnp.argmax(jnp.where(jnp.isnan(x), x, 0), 1)),
    ("infinities that meet", lambda x: jnp.argmax(guarded(x) - guarded(x), 1)),
    ("zero times infinity", lambda x: jnp.argmax(guarded(x) * guarded(x[::-1]), 1)),
    ("a root", lambda x: jnp.argmax(jnp.sqrt(guarded(x)), 1)),
]


@pytest.mark.parametrize("fn", [row[1] for row in NOT_KNOWN], ids=[row[0] for row in NOT_KNOWN])
def test_what_may_be_nan_keeps_the_branch(fn):
    x = rows_of(FLOATS, 6, 9, np.float32)
    ops, have = converted(fn, x)
    assert "If" in ops
    assert_same(have, fn(x))


@pytest.mark.parametrize("fn", [taken_at_the_largest, taken_in_order], ids=lambda f: f.__name__)
def test_positions_that_an_order_gives_are_inside(fn):
    x, table = rows_of(FLOATS, 4, 5, np.float32), np.arange(15, dtype=np.float32).reshape(5, 3)
    ops, have = converted(fn, x, table)
    assert "Equal" not in ops
    assert_same(have, fn(x, table))


def test_positions_in_a_longer_axis_are_tested():
    def fn(x, table):
        return jnp.take(table, jnp.argsort(x, axis=1), axis=0)

    x, table = rows_of(FLOATS, 4, 5, np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    ops, have = converted(fn, x, table)
    assert "Equal" in ops
    assert_same(have, fn(x, table))


WHOLE = [
    ("expm1", lambda n: jnp.expm1(n), {"Cast", "Exp", "Sub"}),
    ("log1p", lambda n: jnp.log1p(n), {"Cast", "Add", "Log"}),
    ("copysign", lambda n: jnp.copysign(2.5, n), {"Cast", "Less", "Where"}),
    (
        "expm1 of a part",
        lambda n: jnp.expm1(n[2:].astype(jnp.float32)),
        {"Slice", "Cast", "Exp", "Sub"},
    ),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.bool_], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("fn", "ops"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE])
def test_functions_of_whole_numbers(fn, ops, dtype):
    n = INTEGERS.astype(dtype)
    found, (have,) = converted(fn, n)
    if dtype == np.int32:
        assert found == ops
    np.testing.assert_allclose(have, np.asarray(fn(n)), rtol=5e-7)


def test_small_numbers_keep_their_digits():
    x = np.float32([1e-7, -1e-7, 1e-3, -0.0])
    _, (have,) = converted(jnp.expm1, x)
    np.testing.assert_allclose(have, np.expm1(x), rtol=1e-6)


def test_a_derivative_of_expm1_is_plain():
    def fn(x):
        return jnp.expm1(x) + 1

    x = np.float32([1e-7, -1e-7, 0, -0.0, 3, -3, -20, -200, 100, np.inf, -np.inf, np.nan])
    ops, (have,) = converted(fn, x)
    assert ops == {"Exp", "Sub", "Add"}
    np.testing.assert_allclose(have, np.asarray(fn(x)), rtol=1e-6, atol=1.2e-7)


def test_expm1_that_is_read_twice_keeps_its_digits():
    def fn(x):
        y = jnp.expm1(x)
        return y, y + 1

    x = np.float32([1e-7, -1e-7, 0, 3, -3])
    ops, (have, _) = converted(fn, x)
    assert "Tanh" in ops
    np.testing.assert_allclose(have, np.expm1(x), rtol=1e-6)


@pytest.mark.parametrize("term", [0.5, -0.25])
def test_a_small_term_keeps_the_digits(term):
    ops, _ = converted(lambda x: jnp.expm1(x) + jnp.float32(term), np.float32([1e-7]))
    assert "Tanh" in ops


@pytest.mark.parametrize("amount", [0, 1, 31, 32, 40, -1])
@pytest.mark.parametrize(
    "shift", [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32], ids=lambda d: d.__name__)
def test_shifts_by_known_amounts(shift, amount, dtype):
    n = INTEGERS.astype(dtype)

    def fn(n):
        return shift(n, jnp.asarray(amount).astype(n.dtype))

    ops, have = converted(fn, n)
    assert not {"Min", "LessOrEqual"} & ops
    assert_same(have, fn(n))


def test_integers_are_themselves():
    def fn(n):
        return jnp.where(jnp.isnan(n), 7, n & -1), n == n, n != n

    n = INTEGERS.astype(np.int32)
    ops, have = converted(fn, n)
    assert not {"Where", "BitwiseAnd", "Equal"} & ops
    assert_same(have, fn(n))


@pytest.mark.parametrize("width", [127, 128, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32], ids=lambda d: d.__name__)
def test_rows_outside_are_filled(width, dtype):
    def fn(table, index):
        rows = jnp.asarray(table).at[index].get(mode="fill")
        return rows, jnp.take(table, index, axis=1, fill_value=3)

    values = [1, -2, 3] if dtype == np.int32 else FLOATS[:-1]
    table = rows_of(values, width, width, dtype)
    index = np.int32([[0, -1, width], [width - 1, -width, -width - 1]])
    ops, have = converted(fn, table, index)
    assert ("Mul" in ops) == (width >= 128 and dtype == np.float32)
    for given, want in zip(have, fn(table, index), strict=True):
        np.testing.assert_array_equal(given, np.asarray(want))
