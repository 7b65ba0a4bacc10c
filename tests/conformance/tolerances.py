# SPDX-License-Identifier: Apache-2.0
"""How far a model may be from JAX, in units in the last place, by dtype and group of primitives.

The default is for one operation in another library; of 16-bit floats, for one that either side may
compute in steps that are rounded. Every wider entry has its reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

DEFAULT = {
    "float32": 4,
    "float64": 4,
    "float16": 2,
    "bfloat16": 2,
    "complex64": 16,
    "complex128": 16,
}


@dataclasses.dataclass(frozen=True)
class Wider:
    """Allowed differences of some groups; dtypes that are not named keep the default."""

    groups: tuple[str, ...]
    reason: str
    ulps: Mapping[str, float]
    at_largest: bool = False  # count units at the largest magnitude of the result


_PARTS = {"complex64": "float32", "complex128": "float64"}
_SUMS = {"float32": 16, "float64": 16, "float16": 4, "bfloat16": 4}

WIDER = [
    Wider(
        (
            *("conv_general_dilated", "dot_general", "reduce_sum", "reduce_window_add", "cumsum"),
            *("scatter_add", "select_and_scatter_add", "reduce"),
        ),
        "sums are formed in another order; what cancels is lost at the size of the largest element",
        _SUMS,
        at_largest=True,
    ),
    Wider(
        ("cumprod", "cumlogsumexp", "reduce_prod", "reduce_window_mul", "scatter_mul"),
        "partial results are rounded in another order",
        {"float32": 16, "float64": 16, "float16": 4, "bfloat16": 4},
    ),
    Wider(
        ("lgamma", "digamma"),
        "near their zeros the digits of both sides come from the cancellation of large terms",
        {"float32": 16, "float64": 16, "float16": 4, "bfloat16": 4},
        at_largest=True,
    ),
    Wider(
        ("fft",),
        "sums of as many rounded terms as the axis is long, which cancel",
        {"float32": 16, "float64": 16},
        at_largest=True,
    ),
    Wider(
        (
            *("cholesky", "custom_linear_solve", "eig", "eigh", "geqrf", "householder_product"),
            *("lu", "qr", "schur", "svd", "triangular_solve", "tridiagonal_solve"),
        ),
        "matrix factors are exact to rounding times the condition of the matrix",
        {"float32": 4096, "float64": 4096},
        at_largest=True,
    ),
    Wider(
        (
            *("igamma", "igammac", "regularized_incomplete_beta", "bessel_i0e", "bessel_i1e"),
            *("random_gamma",),
        ),
        "long series and iterations, in which every step rounds; some end in 1 - x",
        {"float32": 64, "float64": 64, "float16": 4, "bfloat16": 4},
        at_largest=True,
    ),
    Wider(
        ("sinh", "cosh"),
        "exp(x) turns the rounding of a large x into many units",
        {"float32": 8, "float64": 8},
    ),
    Wider(
        ("exp2",),
        "JAX multiplies with log 2 in 16 bits and is off by 6 units, a model by half a unit",
        {"float16": 8, "bfloat16": 8},
    ),
    Wider(
        ("pow",),
        "exp(w log z) turns the rounding of w log z into as many units as that is large",
        {"complex64": 64, "complex128": 64},
    ),
    Wider(
        ("erfc",),
        "exp(-x^2) turns the rounding of x^2 into many units",
        {"float32": 128, "float16": 8, "bfloat16": 8},
    ),
    Wider(
        ("atanh", "log1p"),
        "XLA's log1p in f64 is off by up to 110 units, that of a model by 2",
        {"float64": 128},
    ),
    Wider(("log",), "the logarithm of a length near 1 is XLA's log1p", {"complex128": 64}),
    Wider(("erf_inv",), "XLA's polynomial is one in log1p(-x^2)", {"float64": 32}),
    Wider(
        ("cos", "sin"),
        "ONNX Runtime's f64 kernels are exact to the rounding of 1, not of each value",
        {"float64": 4},
        at_largest=True,
    ),
    Wider(("tan",), "a quotient of such a sine and cosine", {"float64": 512}),
    Wider(
        ("logistic",),
        "ONNX Runtime's Sigmoid is exact to 1e-7 of its largest value, not of each",
        {"float32": 4},
        at_largest=True,
    ),
    Wider(
        ("integer_pow",),
        "XLA keeps the products of 16-bit floats in f32 from one multiplication to the next",
        {"float16": 4, "bfloat16": 4},
    ),
]


# Of a whole function, and of its derivatives: many operations, of which sums lose what cancels at
# the size of the largest element, or of the weights of a sum that cancels to 0 (0.5 to 1.5).
SHARE_OF_LARGEST, SHARE_OF_EACH, SMALLEST = 1e-5, 1e-4, 0.5


def derivative_is_near(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Where a result is as near as such functions can be; integers and bools are equal."""
    if not jnp.issubdtype(want.dtype, jnp.inexact):
        return np.asarray(want == have)
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    lhs, rhs = want.astype(wide), have.astype(wide)
    size = np.abs(np.where(np.isfinite(lhs), lhs, 0))
    share = max(SHARE_OF_EACH, 4 * float(jnp.finfo(want.dtype).eps))
    allowed = SHARE_OF_LARGEST * max(SMALLEST, size.max(initial=0)) + share * size
    with np.errstate(all="ignore"):
        near = np.abs(lhs - rhs) <= allowed
    return np.asarray(near | (lhs == rhs) | (np.isnan(lhs) & np.isnan(rhs)))


def _entry(group: str, dtype: str) -> tuple[float, bool]:
    for entry in WIDER:
        if group in entry.groups and dtype in entry.ulps:
            return entry.ulps[dtype], entry.at_largest
    if dtype in _PARTS:
        # Units count at the size of the number: one part may cancel. A product is four products.
        ulps, at_largest = _entry(group, _PARTS[dtype])
        return 4 * ulps, at_largest
    return DEFAULT.get(dtype, 0), False


def difference(want: np.ndarray, have: np.ndarray, group: str) -> str | None:
    """What is wrong with the worst element; None when all are as near as the table asks."""
    if have.dtype != want.dtype:
        return f"dtype {have.dtype}, JAX has {want.dtype}"
    if have.shape != want.shape:
        return f"shape {have.shape}, JAX has {want.shape}"
    return _worst_element(want, have, *_entry(group, want.dtype.name))


def _worst_element(want: np.ndarray, have: np.ndarray, ulps: float, at_largest: bool) -> str | None:
    if want.size == 0:
        return None
    lhs, rhs = _flushed(want), _flushed(have)
    units = _units_apart(lhs, rhs, want.dtype, at_largest)
    same = lhs == rhs if jnp.issubdtype(want.dtype, jnp.inexact) else want == have
    units[same | (np.isnan(lhs) & np.isnan(rhs))] = 0
    worst = np.unravel_index(int(np.argmax(units)), units.shape)
    if units[worst] <= ulps:
        return None
    place = list(map(int, worst))
    return (
        f"{place}: {have[worst]}, JAX has {want[worst]}: {units[worst]:.3g} units, {ulps} allowed"
    )


def _flushed(array: np.ndarray) -> np.ndarray:
    """In 64 bits, without subnormal numbers: XLA on a CPU reads and writes them as zeros."""
    wide = array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
    if jnp.issubdtype(array.dtype, jnp.inexact):
        wide[np.abs(wide) < float(jnp.finfo(array.dtype).tiny)] = 0
    return wide


def _units_apart(
    want: np.ndarray, have: np.ndarray, dtype: np.dtype, at_largest: bool
) -> np.ndarray:
    if not jnp.issubdtype(dtype, jnp.inexact):
        return np.full(want.shape, np.inf)
    info = jnp.finfo(dtype)
    magnitude = np.abs(np.nan_to_num(want, posinf=0.0, neginf=0.0))
    if at_largest:
        magnitude = np.full(want.shape, magnitude.max())
    unit = np.maximum(magnitude, float(info.tiny)) * float(info.eps)
    with np.errstate(invalid="ignore", over="ignore"):
        units = np.abs(want - have) / unit
    return np.asarray(np.where(np.isnan(units), np.inf, units))
