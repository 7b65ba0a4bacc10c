# SPDX-License-Identifier: Apache-2.0
"""Orders: sorts with several operands and keys, top_k, NaN and infinities."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from support.cases import Case, bf16, boolean, case, check, f32, f64, i32, parity, u32

SPECIAL = np.float32([1, np.nan, np.inf, -np.inf, 3, np.nan, -2, np.inf])
SIGNED = jnp.asarray([-0.0, 0.0, np.copysign(np.nan, -1), np.nan, -0.0, -np.inf], "float32")


def with_special(x: Any) -> Any:
    """Numbers at the edges that depend on an input, so that nothing is folded."""
    return jnp.asarray(SPECIAL).astype(x.dtype) + 0 * x


def sort_by(keys: int, axis: int = 0) -> Any:
    return lambda *xs: lax.sort(xs, dimension=axis, num_keys=keys, is_stable=True)


FEW = {"lo": 0, "hi": 2}

CASES = [
    case("sort", lax.sort, [f32(9)], also=[[f32("B", 5)], [i32(9)], [u32(9)], [f64(4)]]),
    case("sort along the first axis", lambda x: lax.sort(x, dimension=0), [f32(5, 3)]),
    case("sort of truth values", lax.sort, [boolean(9)]),
    case("sort with nan", lambda x: lax.sort(with_special(x)), [f32()], also=[[f64()]]),
    *(
        case(
            f"{name} of reshaped nan",
            lambda x, order=order: order(with_special(x).reshape(2, 4).T.reshape(-1)),
            [f32(8)],
            also=[[f64(8)], [bf16(8)]],
        )
        for name, order in {
            "sort": lax.sort,
            "argsort": jnp.argsort,
            "argmax": jnp.argmax,
            "argmin": jnp.argmin,
            "top_k": lambda x: lax.top_k(x, 3),
        }.items()
    ),
    case("argsort with nan", lambda x: jnp.argsort(with_special(x)), [f32()], also=[[f64()]]),
    case("argsort is stable", jnp.argsort, [i32(20, **FEW)], also=[[i32("B", **FEW)]]),
    case("argsort descending", lambda x: jnp.argsort(x, descending=True), [f32(9)]),
    case("two operands", sort_by(1), [i32(12, **FEW), f32(12)]),
    case("two keys", sort_by(2), [i32(12, **FEW), f32(12)], also=[[i32("B", **FEW), i32("B")]]),
    case(
        "two keys and a follower",
        sort_by(2, axis=1),
        [i32(2, 12, **FEW), i32(2, 12, **FEW), f32(2, 12)],
    ),
    case("lexsort", lambda x, y: jnp.lexsort((x, y)), [i32(12, **FEW), i32(12, **FEW)]),
    case("top_k", lambda x: lax.top_k(x, 3), [f32(2, 9)], also=[[f32("B", 5)], [i32(9)], [f64(9)]]),
    case("top_k with nan", lambda x: lax.top_k(with_special(x), 5), [f32()], also=[[f64()]]),
    case(
        "top_k orders by sign bits too",
        lambda x: lax.top_k(jnp.where(x > 0, SIGNED.astype(x.dtype), 0), 6),
        [f32(lo=1, hi=2)],
        also=[[f64(lo=1, hi=2)], [bf16(lo=1, hi=2)]],
        opsets=[26],
    ),
    case("top_k takes the first of equals", lambda x: lax.top_k(x, 4), [i32(20, **FEW)]),
    case("approx_max_k", lambda x: lax.approx_max_k(x, 3), [f32(2, 32)]),
    case(
        "approx_min_k along the first axis",
        lambda x: lax.approx_min_k(x, 2, reduction_dimension=0),
        [f32(16, 3)],
    ),
    case("median", jnp.median, [f32(9)], also=[[f32(8)]]),
]


@parity(CASES)
def test_numbers_are_jax_s(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)
