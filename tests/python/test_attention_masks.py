# SPDX-License-Identifier: Apache-2.0
"""Masks and biases of attention, where they meet: rows that are masked everywhere, what stands
outside of a bias, NaN and infinities in masked places. q is (5, 8), k and v are (7, 8)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from support.cases import boolean, case, check, f16, f32, parity, structs

softmax, where = jax.nn.softmax, jnp.where
INFINITY = jnp.inf
LOWEST = float(jnp.finfo(jnp.float32).min)
FILLS = {"-1e4": -1e4, "-1e9": -1e9, "-1e30": -1e30, "lowest": LOWEST, "-inf": -INFINITY}
TRIANGLE = np.tri(5, 7, dtype=bool)
FACTORS = np.float32([[-1], [0], [0.5], [1], [2]])
QKV = [f32(5, 8), f32(7, 8), f32(7, 8)]
B, M, N = f32(5, 7), boolean(5, 7), boolean(5, 7)


def attend(change):
    """Attention of scores that are changed; further inputs are handed on."""
    return lambda q, k, v, *more: softmax(change(q @ k.T, *more), -1) @ v


def hidden(m, *rows):
    """A mask that hides all of these rows."""
    return m & ~jnp.isin(jnp.arange(5), jnp.array(rows))[:, None]


def halves(m, n):
    """Masks that hide row 0 and 1 each alone, row 2 together, and row 3 by halves."""
    left = jnp.arange(7) < 4
    m, n = hidden(m, 0, 2), hidden(n, 1, 2)
    row = jnp.arange(5)[:, None] == 3
    return where(row, left, m), where(row, ~left, n)


def two(change):
    return attend(lambda s, m, n: change(s, *halves(m, n)))


def row(name, change, inputs, wrap=attend):
    return case(name, wrap(change), [*QKV, *inputs], tolerance="network", opsets=(17, 23))


ONE_NODE = [
    row("factor outside of a bias", lambda s, b, t: (s + b) * t, [B, f32()]),
    row("factor of each query", lambda s, b, t: (s + b) * t, [B, f32(5, 1)]),
    row("factor of each key", lambda s, b, t: (s + b) * t, [B, f32(7)]),
    row("constant factors", lambda s, b: (s + b) * FACTORS, [B]),
    row("divisor outside of a bias", lambda s, b, t: (s + b) / t, [B, f32(lo=1, hi=2)]),
    row("factor outside of a difference", lambda s, b, t: (s - b) * t, [B, f32(5, 1)]),
    row("factor outside of a shift", lambda s, m, t: where(m, s, s - 5) * t, [M, f32(5, 1)]),
    row("two factors, two biases", lambda s, b, t: ((s + b) * t - b) * t, [B, f32(5, 1)]),
    row("mask times 0.5", lambda s, m: where(hidden(m, 1), s, -1e9) * 0.5, [M]),
    row("NaN under a mask", lambda s, m, b: where(m, s + where(m, b, jnp.nan), LOWEST), [M, B]),
    row("inf under a mask", lambda s, m, b: where(m, s + where(m, b, INFINITY), -INFINITY), [M, B]),
    row("bias on -1e30", lambda s, m, b: where(hidden(m, 1), s, -1e30) + b, [M, B]),
    row("bias on -inf", lambda s, m, b: where(hidden(m, 1), s, -INFINITY) + b, [M, B]),
    row("bias in the lowest", lambda s, m, b: where(hidden(m, 1), s + b, LOWEST), [M, B]),
    row(
        "bias of -inf in a causal mask",
        lambda s, m, b: where(TRIANGLE, s + where(hidden(m, 1), b, -INFINITY), LOWEST),
        [M, B],
    ),
    row("-1e9 in -1e30", lambda s, m, n: where(n, where(m, s, -1e9), -1e30), [M, N], two),
    row("-1e30 in -1e9", lambda s, m, n: where(n, where(m, s, -1e30), -1e9), [M, N], two),
    row("-1e9 in -inf", lambda s, m, n: where(n, where(m, s, -1e9), -INFINITY), [M, N], two),
    row("lowest twice", lambda s, m, n: s + where(m, 0, LOWEST) + where(n, 0, LOWEST), [M, N], two),
    row("-1e9 twice", lambda s, m, n: s + where(m, 0, -1e9) + where(n, 0, -1e9), [M, N], two),
    row("-1e30 twice", lambda s, m, n: s + where(m, 0, -1e30) + where(n, 0, -1e30), [M, N], two),
    row("lowest of rows", lambda s, m: s + where(m, 0, LOWEST), [boolean(5, 1)]),
    row("-inf of rows", lambda s, m: s + where(m, 0, -INFINITY), [boolean(5, 1)]),
    *(
        row(
            f"triangle of {name} and -inf",
            lambda s, m, fill=fill: (
                s + where(TRIANGLE, 0, fill) + where(hidden(m, 1, 2), 0, -INFINITY)
            ),
            [M],
        )
        for name, fill in FILLS.items()
    ),
    row(
        "triangle as a constant and -1e9",
        lambda s, m: s + np.where(TRIANGLE, 0, -1e9).astype(np.float32) + where(m, 0, -1e9),
        [M],
    ),
]


def nan_is_zero(q, k, v, m, n):
    m, n = halves(m, n)
    return jnp.nan_to_num(softmax(where(n, where(m, q @ k.T, -1e9), -INFINITY), -1)) @ v


def factor_then_rows(q, k, v, keep, factor):
    factor = where(keep, factor, jnp.nan)
    return where(keep, softmax(q @ k.T, -1) * factor, 0) @ v


ONE_NODE += [
    case("NaN of two fills is zero", nan_is_zero, [*QKV, M, N], tolerance="network"),
    case(
        "NaN in rows that are zero",
        factor_then_rows,
        [*QKV, boolean(5, 1), f32(5, 1)],
        tolerance="network",
    ),
]


def value_factor(q, k, v, g):
    return jnp.einsum("tsj,sj->t", softmax(q @ k.T)[..., None] * g, v)


def divided_by_kept(q, k, v, m):
    m = hidden(m, 1)
    weights = softmax(where(m, q @ k.T, -1e9), -1) / m.sum(-1, keepdims=True)
    return where(m, weights, 0) @ v


APART = [
    *(
        row(f"mask times {t}", lambda s, m, t=t: where(m, s, -1e9) * t, [M])
        for t in (-1.0, -0.5, 0.0)
    ),
    row("-inf times 0", lambda s, m: where(m, s, -INFINITY) * 0.0, [M]),
    row("mask times an input", lambda s, m, t: where(m, s, -1e9) * t, [M, f32(lo=-1, hi=0)]),
    row("mask times an array", lambda s, m: where(m, s, -1e9) * FACTORS, [M]),
    row("bias on -1e4", lambda s, m, b: where(hidden(m, 1), s, -1e4) + b, [M, B]),
    row("bias on -1e9", lambda s, m, b: where(hidden(m, 1), s, -1e9) + b, [M, B]),
    row(
        "bias of -1e9 in -1e9",
        lambda s, m, n, b: where(n, s + where(m, b, -1e9), -1e9),
        [M, N, B],
        lambda change: attend(lambda s, m, n, b: change(s, *halves(m, n), b)),
    ),
    row(
        "bias of -1e9 in a causal mask",
        lambda s, m, b: where(TRIANGLE, s + where(hidden(m, 1), b, -1e9), -1e9),
        [M, B],
    ),
    row("-1e9 added in -1e9", lambda s, m, n: where(n, s + where(m, 0, -1e9), -1e9), [M, N], two),
    row("-1e9 added on -1e9", lambda s, m, n: where(n, s, -1e9) + where(m, 0, -1e9), [M, N], two),
    row(
        "fills that differ by 10",
        lambda s, m, n: where(n, where(m, s, -1e4), -10010.0),
        [M, N],
        two,
    ),
    case("factor of a summed axis", value_factor, [*QKV, f32(8)], tolerance="network"),
    case("weights divided by what is kept", divided_by_kept, [*QKV, M], tolerance="network"),
    case(
        "added in 16 bits",
        attend(lambda s, m: s + where(hidden(m, 1), 0, jnp.float16(-30000))),
        [*(f16(n, 8, lo=-1, hi=1) for n in (5, 7, 7)), M],
        tolerance="network",
    ),
]


@parity([*ONE_NODE, *APART])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def ops_of(case):
    return jaxport.to_onnx(case.fn, structs(case.inputs), return_mode="model").stats()["ops"]


@pytest.mark.parametrize("case", [rows[0] for rows in ONE_NODE], ids=lambda case: case.name)
def test_it_is_one_node(case):
    assert ops_of(case).get("Attention") == 1


@pytest.mark.parametrize("case", [rows[0] for rows in APART], ids=lambda case: case.name)
def test_it_stays_as_it_is_written(case):
    assert "Attention" not in ops_of(case)
