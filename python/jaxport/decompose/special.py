# SPDX-License-Identifier: Apache-2.0
"""Special functions: JAX's own where it has them in Python, else the series that XLA uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import _jax
from .coefficients import (
    BERNOULLI,
    BESSEL_I1E_LARGE,
    BESSEL_I1E_SMALL,
    ERF_64,
    ERF_INV_32,
    ERF_INV_64,
    ERFC_64_LARGE,
    ERFC_64_MEDIUM,
    LANCZOS,
)
from .widen import Function, in_float32


def _as_jax(primitive: str) -> Function:
    """JAX's own function, which is told the dtype to compute in."""

    @in_float32
    def computed(*operands: jax.Array) -> jax.Array:
        full = jnp.broadcast_arrays(*operands)
        return _jax.private(primitive)(*full, dtype=full[0].dtype)

    return computed


igamma = _as_jax("igamma")
igammac = _as_jax("igammac")
igamma_grad_a = _as_jax("igamma_grad_a")
random_gamma_grad = _as_jax("random_gamma_grad")
regularized_incomplete_beta = _as_jax("regularized_incomplete_beta")


def bessel_i0e(x: jax.Array) -> jax.Array:
    return _jax.private("bessel_i0e")(x)


def _polynomial(x: jax.Array, coefficients: Sequence[float]) -> jax.Array:
    """Horner's rule; the coefficient of the highest power comes first."""
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _chebyshev(x: jax.Array, coefficients: Sequence[float]) -> jax.Array:
    """c0/2 + c1 T1(x/2) + c2 T2(x/2) + …, by Clenshaw's recurrence."""
    after, value = jnp.zeros_like(x), jnp.zeros_like(x)
    for coefficient in reversed(coefficients[1:]):
        value, after = x * value - after + coefficient, value
    return 0.5 * (x * value + coefficients[0]) - after


@in_float32
def bessel_i1e(x: jax.Array) -> jax.Array:
    few = x.dtype == jnp.float32  # terms below the precision are left out
    size = jnp.abs(x)
    small = size * _chebyshev(0.5 * size - 2, BESSEL_I1E_SMALL[: 18 if few else None])
    safe = jnp.where(size <= 8, 8, size)
    large = _chebyshev(32 / safe - 2, BESSEL_I1E_LARGE[: 8 if few else None]) / jnp.sqrt(safe)
    return jnp.sign(x) * jnp.where(size <= 8, small, large)


@in_float32
def erf_inv(x: jax.Array) -> jax.Array:
    """A polynomial in w = -log(1 - x^2), and in sqrt(w) beyond a limit."""
    ranges = ERF_INV_32 if x.dtype == jnp.float32 else ERF_INV_64
    w = -jnp.log1p(-x * x)
    value = _polynomial(w - ranges[0][1], ranges[0][2])
    for limit, centre, coefficients in ranges[1:]:
        value = jnp.where(w < limit, value, _polynomial(jnp.sqrt(w) - centre, coefficients))
    return x * jnp.where(jnp.abs(x) == 1, jnp.inf, value)


def erfc(x: jax.Array) -> Any:
    if x.dtype != jnp.float64:  # a part of GELU
        return NotImplemented
    return jnp.where(jnp.abs(x) < 1, 1 - _erf_small(x), _erfc_large(x))


def _ratio(x: jax.Array, coefficients: tuple[Sequence[float], Sequence[float]]) -> jax.Array:
    return _polynomial(x, coefficients[0]) / _polynomial(x, coefficients[1])


def _erf_small(x: jax.Array) -> jax.Array:
    return x * _ratio(x * x, ERF_64)


def _erfc_large(x: jax.Array) -> jax.Array:
    size = jnp.maximum(jnp.abs(x), 1)
    medium, large = _ratio(jnp.minimum(size, 8), ERFC_64_MEDIUM), _ratio(size, ERFC_64_LARGE)
    tail = jnp.exp(-size * size) * jnp.where(size < 8, medium, large)
    tail = jnp.where(size > 27, 0, tail)
    return jnp.where(x < 0, 2 - tail, tail)


def _lanczos(z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(A(z), A'(z), log t): Gamma(z + 1) = sqrt(2 pi) t^(z + 1/2) exp(-t) A(z), t = z + 15/2."""
    total, slope = jnp.full_like(z, LANCZOS[0]), jnp.zeros_like(z)
    for i, coefficient in enumerate(LANCZOS[1:], start=1):
        total = total + coefficient / (z + i)
        slope = slope - coefficient / ((z + i) * (z + i))
    return total, slope, math.log(7.5) + jnp.log1p(z / 7.5)


@in_float32
def lgamma(x: jax.Array) -> jax.Array:
    is_reflected = x < 0.5  # Gamma(x) Gamma(1 - x) = pi / sin(pi x)
    z = jnp.where(is_reflected, -x, x - 1)
    total, _, log_t = _lanczos(z)
    t = z + 7.5
    value = (z + 0.5 - t / log_t) * log_t + (0.5 * math.log(2 * math.pi) + jnp.log(total))
    fraction = jnp.abs(x) - jnp.floor(jnp.abs(x))
    log_sine = jnp.log(jnp.sin(math.pi * jnp.minimum(fraction, 1 - fraction)))
    reflected = jnp.where(jnp.isfinite(log_sine), math.log(math.pi) - log_sine - value, -log_sine)
    return jnp.where(jnp.isinf(x), jnp.inf, jnp.where(is_reflected, reflected, value))


@in_float32
def digamma(x: jax.Array) -> jax.Array:
    is_reflected = x < 0.5  # psi(1 - x) - psi(x) = pi cot(pi x)
    z = jnp.where(is_reflected, -x, x - 1)
    total, slope, log_t = _lanczos(z)
    value = log_t + slope / total - 7 / (z + 7.5)
    angle = math.pi * (x + jnp.abs(jnp.floor(x + 0.5)))
    reflected = value - math.pi * jnp.cos(angle) / jnp.sin(angle)
    is_pole = (x <= 0) & (x == jnp.floor(x))
    return jnp.where(is_pole, jnp.nan, jnp.where(is_reflected, reflected, value))


@in_float32
def zeta(x: jax.Array, q: jax.Array) -> jax.Array:
    """Ten terms of the sum over (q + k)^-x, then its integral with Euler's corrections."""
    total = power = q**-x
    a = q
    for _ in range(9):
        a = a + 1
        power = a**-x
        total = total + power
    correction, factor = jnp.zeros_like(power), x / a
    for j, number in enumerate(BERNOULLI):
        correction = correction + number * factor
        factor = factor * ((x + (2 * j + 1)) / a) * ((x + (2 * j + 2)) / a)
    rest = power * (a / (x - 1) - 0.5 + correction)
    is_small = jnp.abs(power) <= jnp.abs(total) * jnp.finfo(x.dtype).eps
    return _zeta_at_edges(x, q, jnp.where(is_small, total, total + rest))


def _zeta_at_edges(x: jax.Array, q: jax.Array, value: jax.Array) -> jax.Array:
    is_whole = x == jnp.floor(x)
    at_pole = jnp.where(is_whole & (jnp.mod(x, 2) == 0), jnp.inf, jnp.nan)
    value = jnp.where((q <= 0) & ~is_whole, jnp.nan, value)
    value = jnp.where((q <= 0) & (q == jnp.floor(q)), at_pole, value)
    return jnp.where(x < 1, jnp.nan, jnp.where(x == 1, jnp.inf, value))


@in_float32
def polygamma(m: jax.Array, x: jax.Array) -> jax.Array:
    """(-1)^(m + 1) m! zeta(m + 1, x)"""
    sign = jnp.where(jnp.mod(m, 2) == 0, -1, 1).astype(x.dtype)
    value = sign * jnp.exp(lgamma(m + 1)) * zeta(m + 1, x)
    value = jnp.where(m == 0, digamma(x), value)
    return jnp.where((m < 0) | (m != jnp.floor(m)), jnp.nan, value)


def log2(x: jax.Array, **_: Any) -> jax.Array:
    """jax 0.11 has a primitive; XLA multiplies the natural logarithm with a rounded number."""
    scale = jnp.asarray(1 / math.log(2), jnp.finfo(x.dtype).dtype)
    if jnp.iscomplexobj(x):
        logarithm = jax.lax.log(x)
        return jax.lax.complex(logarithm.real * scale, logarithm.imag * scale)
    return jax.lax.log(x) * scale
