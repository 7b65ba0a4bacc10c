# SPDX-License-Identifier: Apache-2.0
"""How far a model may be from JAX, and how far it is: the one table for users."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """|jax - model| <= relative * |jax| + of_largest * (the largest |jax| that differs at all)."""

    relative: float
    of_largest: float


# Integers and bools must be the same. A sum runs in another order in every runtime, so that what is
# lost to rounding is counted at the largest number of a result.
TOLERANCES = {
    "bfloat16": Tolerance(4e-2, 3e-2),
    "float16": Tolerance(1e-2, 4e-3),
    "float32": Tolerance(1e-4, 1e-5),
    "float64": Tolerance(1e-9, 1e-11),
    "float8_e4m3fn": Tolerance(0.25, 0.13),
    "float8_e4m3fnuz": Tolerance(0.25, 0.13),
    "float8_e5m2": Tolerance(0.5, 0.25),
    "float8_e5m2fnuz": Tolerance(0.5, 0.25),
}

_EXACT = Tolerance(0.0, 0.0)


def tolerance_of(dtype: Any) -> Tolerance:
    return TOLERANCES.get(np.dtype(dtype).name, _EXACT)


def is_float(array: Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def wide(array: Array) -> Array:
    """Floats in 64 bits, everything else as it is."""
    return array.astype(np.float64) if is_float(array) else array


def finite_largest(array: Array) -> float:
    """The largest magnitude among finite numbers, 0 when there is none."""
    with np.errstate(all="ignore"):
        magnitude = np.abs(wide(array).astype(np.float64))
    return float(np.max(magnitude, initial=0.0, where=np.isfinite(magnitude)))


def scale_of(want: Array, have: Array) -> float:
    """The largest number that rounding had a part in: what fills a mask is the same in both."""
    return finite_largest(want[~same(want, have)])


def allowed(want: Array, have: Array) -> Array:
    """The largest difference that each element of a result may have."""
    tolerance = tolerance_of(want.dtype)
    if tolerance == _EXACT:
        return np.zeros(want.shape)
    with np.errstate(all="ignore"):
        own = tolerance.relative * np.nan_to_num(np.abs(wide(want)), posinf=0.0)
    # XLA takes subnormal numbers for 0.
    tiny = float(jnp.finfo(want.dtype).tiny)  # type: ignore[no-untyped-call]
    return np.asarray(own + tolerance.of_largest * scale_of(want, have) + tiny)


def same(want: Array, have: Array) -> Array:
    """Elements that are equal; a NaN equals a NaN."""
    equal = want == have
    if is_float(want) and is_float(have):
        equal |= np.isnan(wide(want)) & np.isnan(wide(have))
    return np.asarray(equal)


def distance(want: Array, have: Array) -> Array:
    """|want - have| in 64 bits, infinite where only one is a number."""
    with np.errstate(all="ignore"):
        apart = np.abs(wide(want).astype(np.float64) - wide(have).astype(np.float64))
    if not is_float(want):
        apart = np.maximum(apart, 1.0)  # 64 bits of a float do not tell all integers apart
    return np.where(same(want, have), 0.0, np.where(np.isnan(apart), np.inf, apart))


def near(want: Array, have: Array) -> Array:
    """Elements that are as near as the table asks."""
    return np.asarray(same(want, have) | (distance(want, have) <= allowed(want, have)))


def ulps(want: Array, have: Array) -> Array:
    """The difference of each element in units in the last place of `want`."""
    apart = distance(want, have)
    if not is_float(want):
        return apart
    info = jnp.finfo(want.dtype)  # type: ignore[no-untyped-call]
    size = np.maximum(np.nan_to_num(np.abs(wide(want)), posinf=0.0), float(info.tiny))
    _, exponent = np.frexp(size)
    return np.asarray(apart / np.ldexp(float(info.eps), exponent - 1))


def histogram(errors: Array) -> dict[str, int]:
    """How many elements have an error of 0, of at most 1, 10, 100, … units, and beyond 1e9."""
    edges = [0.0, *(10.0**k for k in range(10)), np.inf]
    counts: dict[str, int] = {}
    before = -1.0
    for edge in edges:
        count = int(np.count_nonzero((errors > before) & (errors <= edge)))
        if count:
            counts["more" if edge == np.inf else f"{edge:.0e}" if edge > 100 else f"{edge:.0f}"] = (
                count
            )
        before = edge
    return counts
