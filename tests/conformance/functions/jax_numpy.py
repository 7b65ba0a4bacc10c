# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.numpy: functions of elements, reductions and products."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp

from conformance.functions.samples import (
    XA,
    XI,
    XP,
    M,
    Row,
    X,
    by,
    of_integers,
    positive,
    real,
    same,
    well_conditioned,
    whole,
)


def rows() -> Iterator[Row]:
    yield from _elements()
    yield from _reductions()
    yield from _products()
    yield from _integers()
    yield from _polynomials()
    yield from _linear_algebra()
    yield from _fourier()


def _elements() -> Iterator[Row]:
    yield from same(
        jnp,
        "abs fabs negative positive sign square exp exp2 expm1 sin cos tan sinh cosh tanh arctan "
        "arcsinh cbrt floor ceil trunc rint round sinc i0 deg2rad rad2deg nan_to_num isnan isinf "
        "isfinite isneginf isposinf iscomplex isreal signbit logical_not real imag conj angle "
        "zeros_like ones_like empty_like copy modf frexp spacing",
    )
    yield from same(jnp, "log log2 log10 log1p sqrt reciprocal gradient", XP)
    yield from same(jnp, "arcsin arccos arctanh", XI)
    yield from same(jnp, "arccosh", XA)
    yield from same(
        jnp,
        "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2 "
        "copysign heaviside floor_divide mod fmod remainder divmod greater greater_equal less "
        "less_equal equal not_equal isclose allclose array_equal array_equiv logical_and "
        "logical_or logical_xor nextafter",
        *(X, X),
    )
    yield from same(jnp, "power float_power", XP, X)
    yield "power (of integers)", lambda x: jnp.power(x, 3), (X,)
    yield "clip", lambda x: jnp.clip(x, -0.6, 0.7), (X,)
    yield "where", lambda x, y: jnp.where(x > 0.1, x, y), (X, X)
    yield "select", lambda x: jnp.select([x > 1, x > 0], [x**2, jnp.sin(x)], -x), (X,)
    yield "piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 1], [jnp.sin, jnp.cos, 2.0]), (X,)
    yield "ldexp", lambda x: jnp.ldexp(x, jnp.arange(4)), (X,)
    yield "full_like", lambda x: jnp.full_like(x, 2) * x, (X,)
    yield "astype", lambda x: jnp.astype(x, jnp.bfloat16), (X,)
    yield "vectorize", lambda x: jnp.vectorize(jnp.sum, signature="(n)->()")(x), (X,)


def _reductions() -> Iterator[Row]:
    yield from same(
        jnp,
        "sum prod mean var std max min ptp median average nansum nanprod nanmean nanvar nanstd "
        "nanmax nanmin nanmedian argmax argmin nanargmax nanargmin any all count_nonzero cumsum "
        "cumprod nancumsum nancumprod trapezoid corrcoef cov",
    )
    yield from by(jnp, "cumulative_sum cumulative_prod", lambda f, x: f(x, axis=1), X)
    yield from by(jnp, "percentile nanpercentile", lambda f, x: f(x, 30.0, axis=1), X)
    yield from by(jnp, "quantile nanquantile", lambda f, x: f(x, 0.7, axis=0), X)
    yield "sum (one axis)", lambda x: jnp.sum(x, 1), (X,)
    yield "max (one axis)", lambda x: jnp.max(x, 1), (X,)
    yield "prod (one axis)", lambda x: jnp.prod(x, 0), (X,)
    yield "std (one axis)", lambda x: jnp.std(x, 1, keepdims=True), (X,)
    yield "histogram", lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], (X,)
    yield (
        "histogram2d",
        lambda x: jnp.histogram2d(x[0], x[1], 3, range=[(-2, 2), (-2, 2)])[0],
        (X,),
    )
    yield "histogramdd", lambda x: jnp.histogramdd(x.T, 2, range=[(-2, 2)] * 3)[0], (X,)
    yield "histogram_bin_edges", lambda x: jnp.histogram_bin_edges(x, 4), (X,)
    yield "bincount", lambda x: jnp.bincount(whole(x), length=9), (positive(4),)


def _products() -> Iterator[Row]:
    yield from same(jnp, "dot matmul inner", real(3, 4), real(4, 4))
    yield from same(jnp, "tensordot", X, X)
    yield from same(jnp, "outer kron convolve correlate", real(4), real(3))
    yield from same(jnp, "vdot vecdot", real(4), real(4))
    yield from same(jnp, "matvec", real(3, 4), real(4))
    yield from same(jnp, "vecmat", real(3), real(3, 4))
    yield from same(jnp, "cross", real(2, 3), real(2, 3))
    yield "einsum", lambda x, y: jnp.einsum("ij,kj->ki", x, y), (X, real(2, 4))


def _integers() -> Iterator[Row]:
    yield from of_integers(
        jnp,
        "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift",
        2,
    )
    yield from of_integers(jnp, "bitwise_count bitwise_invert", 1)
    yield "packbits", lambda x: jnp.packbits(x > 0), (real(8),)
    yield "unpackbits", lambda x: jnp.unpackbits(whole(x).astype(jnp.uint8)), (positive(4),)
    yield "unravel_index", lambda x: jnp.unravel_index(whole(x), (4, 5)), (positive(4),)
    yield (
        "ravel_multi_index",
        lambda x: jnp.ravel_multi_index((whole(x), whole(x)), (20, 20), mode="clip"),
        (positive(4),),
    )


def _polynomials() -> Iterator[Row]:
    yield "polyval", lambda x: jnp.polyval(jnp.array([1.0, -2.0, 0.5]), x), (X,)
    yield from same(jnp, "polyadd polysub polymul", real(4), real(3))
    yield from same(jnp, "polyder polyint", real(4))
    yield "polydiv", lambda x, y: jnp.polydiv(x, y), (real(4), positive(2))
    yield "polyfit", lambda y: jnp.polyfit(jnp.arange(5.0), y, 2), (real(5),)
    yield "poly", jnp.poly, (real(3),)
    yield "roots", lambda x: jnp.roots(x, strip_zeros=False), (positive(4),)
    yield "vander", lambda x: jnp.vander(x, 3), (real(4),)
    yield "interp", lambda x: jnp.interp(x, jnp.arange(5.0) - 2, jnp.arange(5.0) ** 2), (X,)
    yield "searchsorted", lambda x: jnp.searchsorted(jnp.arange(5.0) - 2, x) * x, (X,)
    yield "digitize", lambda x: jnp.digitize(x, jnp.arange(5.0) - 2) * x, (X,)
    yield "linspace", lambda x: jnp.linspace(x[0], x[1], 5), (X,)
    yield "logspace", lambda x: jnp.logspace(x[0], x[1], 5), (X,)
    yield "geomspace", lambda x: jnp.geomspace(x[0], x[1], 5), (XP,)


def _linear_algebra() -> Iterator[Row]:
    for name in (
        *("inv", "det", "slogdet", "cholesky", "eigvalsh", "matrix_norm", "pinv", "cond"),
        *("svdvals", "matrix_rank"),
    ):
        function = getattr(jnp.linalg, name)
        yield f"linalg.{name}", lambda x, f=function: f(well_conditioned(x)), (M,)
    yield from same(jnp.linalg, "norm vector_norm", prefix="linalg.")
    yield "linalg.solve", lambda x, b: jnp.linalg.solve(well_conditioned(x), b), (M, real(4))
    yield "linalg.lstsq", lambda x, b: jnp.linalg.lstsq(x, b)[0], (real(4, 2), real(4))
    yield "linalg.qr", lambda x: jnp.linalg.qr(well_conditioned(x))[1], (M,)
    yield "linalg.svd", lambda x: jnp.linalg.svd(x, compute_uv=False), (real(3, 2),)
    # Even powers of vectors do not depend on their signs; weighted squares have the derivative 0.
    yield "linalg.eigh", lambda x: jnp.linalg.eigh(well_conditioned(x))[1] ** 4, (M,)
    yield "linalg.svd (vectors)", lambda x: jnp.square(jnp.linalg.svd(x, False)[0]), (real(3, 2),)
    yield "linalg.eigvals", lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))), (real(3, 3),)
    yield "linalg.eig", lambda x: jnp.abs(jnp.linalg.eig(x)[1]).sum(1), (real(3, 3),)
    yield "linalg.matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), (M,)
    yield "linalg.multi_dot", lambda x, y: jnp.linalg.multi_dot([x, y, x]), (M, M)
    yield "linalg.tensorinv", lambda x: jnp.linalg.tensorinv(well_conditioned(x), 1), (M,)
    yield (
        "linalg.tensorsolve",
        lambda x, b: jnp.linalg.tensorsolve(well_conditioned(x), b),
        (M, real(4)),
    )


def _fourier() -> Iterator[Row]:
    names = "fft ifft rfft ihfft fft2 ifft2 rfft2 fftn ifftn rfftn"
    yield from same(jnp.fft, names, prefix="fft.")
    yield from by(jnp.fft, "irfft hfft irfft2 irfftn", lambda f, x: f(x + 0.5j), X, prefix="fft.")
    yield from same(jnp.fft, "fftshift ifftshift", prefix="fft.")
