# SPDX-License-Identifier: Apache-2.0
"""Bits of integers and floats: shifts, counts, reinterpretation, rounding to fewer digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxport import to_onnx
from support.cases import Case, case, check, f32, i8, i32, i64, load, parity, u8, u32

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
    *(
        case(
            f"shift by {by}",
            lambda x, by=by: (lax.shift_left(x, x * 0 + by), x << by, x >> by),
            [i32(40, **WIDE)],
            also=[[i8("B", lo=-128, hi=127)], [i64(9, lo=-(2**63), hi=2**63 - 1)], [u32(9)]],
        )
        for by in (0, 1, 5, 7)
    ),
    case("shift by 30 and 31", lambda x: (x << 30, x >> 30, x << 31, x >> 31), [i32(40, **WIDE)]),
    case(
        "shift of the ends",
        lambda x: [
            (x + end) >> by for end in (-(2**31), 2**31 - 1, -1) for by in (1, 16, 30, 31, 32, 40)
        ],
        [i32(3, lo=0, hi=0)],
    ),
    case(
        "shift of 64 bits",
        lambda x: [(x + end) >> by for end in (-(2**63), 2**63 - 1, -1) for by in (1, 33, 62, 63)],
        [i64(3, lo=0, hi=0)],
    ),
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


EDGES = np.array([0, -0.0, 1, -1.5, 2e-38, -2e-38, np.inf, -np.inf, np.nan, 3e38, -7], np.float32)


def run(fn: Callable[..., Any], *arrays: np.ndarray, opset: int) -> Any:
    session = load(to_onnx(fn, list(arrays), opset=opset), opset)
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def signs_agree(got: Any, want: Any) -> None:
    """The same numbers with the same signs, zeros included; a NaN has none before opset 26."""
    got, want = np.asarray(got, np.float32), np.asarray(want, np.float32)
    np.testing.assert_array_equal(got, want)
    real = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(want[real]))


@pytest.mark.parametrize("opset", [17, 23, 26])
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32])
def test_signs_of_zeros_and_infinities(dtype: Any, opset: int) -> None:
    edges = np.asarray(jnp.asarray(EDGES).astype(dtype))
    x, y = (a.reshape(-1) for a in np.meshgrid(edges, edges))
    for fn in (jnp.copysign, lambda x, y: (jnp.signbit(y) ^ jnp.signbit(x)).astype(x.dtype)):
        signs_agree(run(fn, x, y, opset=opset), fn(x, y))


@pytest.mark.parametrize("opset", [17, 26])
def test_bits_of_every_half(opset: int) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    signs_agree(run(to(jnp.float16), bits, opset=opset), bits.view(np.float16))
    numbers = bits.view(np.float16)[~np.isnan(bits.view(np.float16))]
    codes = run(to(jnp.int16), numbers, opset=opset)
    np.testing.assert_array_equal(codes, numbers.view(np.int16))


@pytest.mark.parametrize("opset", [17, 23])
def test_bits_beside_powers_of_two(opset: int) -> None:
    """Where a logarithm may round to the other side of an integer."""
    codes = np.arange(1, 255, dtype=np.int64)[:, None] * 2**23 + np.array([-1, 0, 1])
    bits = np.concatenate([codes.reshape(-1), codes.reshape(-1) - 2**31])
    bits = bits[(bits & (2**31 - 1)) >= 2**23].astype(np.int32)
    floats = run(to(jnp.float32), bits, opset=opset)
    np.testing.assert_array_equal(floats.view(np.int32), bits)
    np.testing.assert_array_equal(run(to(jnp.int32), floats, opset=opset), bits)
