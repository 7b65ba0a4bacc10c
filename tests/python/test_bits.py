# SPDX-License-Identifier: Apache-2.0
"""Bits of integers and floats: shifts, counts, reinterpretation, rounding to fewer digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from support.cases import Case, case, check, f32, i8, i32, parity, u8, u32

WIDE = {"lo": -(2**31), "hi": 2**31 - 1}
# Without subnormal numbers, which XLA reads as zeros.
SPECIAL = np.float32([0, 1, -1, 1.5, 2e-38, np.inf, -np.inf, np.nan, 2, 0.99999994, 3.4028235e38])


def special_floats(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """fn of inputs and of numbers at the edges, which meet a zero from outside to stay unknown."""
    return lambda x: (fn(x), fn(jnp.asarray(SPECIAL) + 0 * x[0]))


def to(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: lax.bitcast_convert_type(x, dtype)


def fewer(exponent_bits: int, mantissa_bits: int) -> Callable[[Any], Any]:
    return special_floats(lambda x: lax.reduce_precision(x, exponent_bits, mantissa_bits))


CASES = [
    # amounts from negative ones to more than the width
    case("shift_left", lax.shift_left, [i32(40, **WIDE), i32(40, lo=-3, hi=35)]),
    case(
        "shift_right_logical",
        lax.shift_right_logical,
        [i32(40, **WIDE), i32(40, lo=-3, hi=35)],
        also=[[u8("B", hi=255), u8("B", hi=9)], [u32(9, hi=2**32 - 1), u32(9, hi=35)]],
    ),
    case(
        "shift_right_arithmetic",
        lax.shift_right_arithmetic,
        [i32(40, **WIDE), i32(40, lo=-3, hi=35)],
        also=[[u32(9, hi=2**32 - 1), u32(9, hi=35)]],
    ),
    case("shift by a constant", lambda x: (x << 3) + (x >> 5), [i32(9, **WIDE)]),
    case("population_count", lax.population_count, [i32(40, **WIDE)], also=[[u8("B", 3, hi=255)]]),
    case("clz", lax.clz, [i32(40, lo=-9, hi=300)], also=[[u8("B", 3, hi=255)], [i8(9)]]),
    case("float to int", special_floats(to(jnp.int32)), [f32("B")], opsets=(17, 23, 26)),
    case("float to bytes", to(jnp.uint8), [f32("B", 2)], opsets=(17, 26)),
    case("int to float", to(jnp.float32), [i32("B", **WIDE)], opsets=(17, 26)),
    case("bytes to float", to(jnp.float32), [u8("B", 4, hi=255)], opsets=(17, 26)),
    case("nextafter", lambda x, y: lax.nextafter(x, y), [f32("B"), f32("B")]),
    case("reduce_precision as bf16", fewer(8, 7), [f32("B")]),
    case("reduce_precision as f16", fewer(5, 10), [f32("B")]),
    case("reduce_precision", fewer(3, 2), [f32("B")]),
]


@parity(CASES)
def test_numbers_are_jax_s(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)


TOWARDS = [
    case(f"nextafter {y}", lambda x, y=y: lax.nextafter(jnp.asarray(SPECIAL) + 0 * x, y), [f32()])
    for y in (np.float32(np.inf), np.float32(-1), np.float32(np.nan))
]


@parity(TOWARDS)
def test_nextafter_at_the_edges(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)
