# SPDX-License-Identifier: Apache-2.0
"""Reductions of windows with any function, and the derivatives of pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.lax.windowed_reductions import _select_and_scatter as select_and_scatter

from support.cases import Case, boolean, c64, case, check, f32, i32, parity

DILATED = {"base_dilation": (1, 2), "window_dilation": (2, 1)}


def window(combine: Any, init: Any, size: tuple[int, ...], **more: Any) -> Callable[[Any], Any]:
    strides = more.pop("strides", (1,) * len(size))
    padding = more.pop("padding", "VALID")
    return lambda x: lax.reduce_window(x, init, combine, size, strides, padding, **more)


def max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 2), "SAME")


def min_pool(x: Any) -> Any:
    return lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 2), ((1, 0), (0, 1)))


def weighted(pool: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: jax.grad(lambda v: (pool(v) * y).sum())(x)


CASES = [
    case(
        "means of blocks",
        lambda x: x.reshape(*x.shape[:2], 4, 2, 3, 3).mean((3, 5)),
        [f32(2, 3, 8, 9)],
        also=[[f32("B", 3, 8, 9)], [f32(2, "C", 8, 9)]],
        tolerance="sum",
    ),
    case(
        "sum by a function",
        window(lambda a, b: a + b, np.float32(0), (2, 3), padding=((0, 1), (1, 0))),
        [f32(4, 6)],
        also=[[f32("B", 4)]],
        tolerance="sum",
    ),
    case(
        "sum by a function from one on, and of integers",
        lambda x, i: (
            window(lambda a, b: a + b, np.float32(1), (2,))(x),
            window(lambda a, b: a + b, np.int32(0), (2,))(i),
        ),
        [f32(4), i32(4)],
        tolerance="sum",
    ),
    case(
        "maximum by a function keeps NaN",
        lambda x: window(lambda a, b: jnp.maximum(a, b), -jnp.inf, (2,))(
            jnp.where(x > 0, x, jnp.nan)
        ),
        [f32(8)],
    ),
    case(
        "product",
        window(lax.mul, np.float32(1), (2, 3)),
        [f32(4, 6)],
        also=[[f32("B", 4)]],
        tolerance="sum",
    ),
    case(
        "product with dilations",
        window(lax.mul, np.float32(1), (2, 3), **DILATED),
        [f32(5, 6)],
        tolerance="sum",
    ),
    case(
        "sum from one",
        window(lax.add, np.float32(1), (2, 2), padding="SAME"),
        [f32(4, 6)],
        tolerance="sum",
    ),
    case("max from a number", window(lax.max, np.int32(2), (2, 2), strides=(2, 1)), [i32(4, 6)]),
    case("max of padded integers", window(lax.max, -(2**31), (3,), padding="SAME"), [i32(6)]),
    case(
        "a function of the user's",
        window(lambda a, b: a + b * b, np.float32(1), (2, 3), padding="SAME", **DILATED),
        [f32(5, 6)],
        tolerance="sum",
    ),
    case(
        "complex sum",
        window(lax.add, np.complex64(1), (2, 2), padding="SAME"),
        [c64(4, 6)],
        tolerance="sum",
    ),
    case("complex max", window(lax.max, -jnp.inf, (2, 2), padding="SAME"), [c64(4, 6)]),
    case("complex min", window(lax.min, np.complex64(1j), (2, 2)), [c64(4, 6)]),
    case(
        "two arrays",
        lambda x, y: lax.reduce_window(
            (x, y),
            (np.float32(1), np.int32(0)),
            lambda a, b: (lax.max(a[0], b[0]), a[1] + b[1]),
            (2, 3),
            (1, 2),
            "SAME",
        ),
        [f32(5, 6), i32(5, 6)],
    ),
    case("any", window(lax.bitwise_or, False, (2, 2)), [boolean(4, 6)]),
    case("all", window(lax.bitwise_and, True, (2,)), [boolean(9)]),
    case("xor", window(lax.bitwise_xor, np.int32(0), (3,)), [i32(9)], opsets=(18, 23)),
    case(
        "gradient of max pooling",
        weighted(max_pool),
        [f32(2, 7, 6), f32(2, 4, 3)],
        also=[[f32("B", 7, 6), f32("B", 4, 3)]],
    ),
    case("gradient of min pooling", weighted(min_pool), [f32(3, 4), f32(3, 2)]),
    case(
        "tangent of max pooling",
        lambda x, t: jax.jvp(max_pool, (x,), (t,)),
        [f32(2, 7, 6), f32(2, 7, 6)],
        also=[[f32("B", 7, 6), f32("B", 7, 6)]],
    ),
    case(
        "selected and scattered by functions",
        lambda x, y: select_and_scatter(
            *(x, lambda a, b: abs(a) >= abs(b), (2, 3), (1, 2), ((0, 1), (1, 1)), y),
            *(np.float32(1), lambda a, b: a * 2 + b),
        ),
        [f32(5, 7), f32(5, 4)],
        tolerance="sum",
    ),
    case(
        "tangent with dilation",
        lambda x, t: jax.jvp(window(lax.min, jnp.inf, (2, 2), window_dilation=(2, 3)), (x,), (t,)),
        [f32(5, 6), f32(5, 6)],
    ),
]


@parity(CASES)
def test_numbers_are_jax_s(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)
