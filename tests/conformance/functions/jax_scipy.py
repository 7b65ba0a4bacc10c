# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.scipy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.cluster.vq
import jax.scipy.interpolate
import jax.scipy.optimize
import jax.scipy.spatial.transform  # noqa: F401

from conformance.functions.samples import (
    XP,
    XU,
    M,
    Row,
    Sample,
    X,
    above_one,
    positive,
    real,
    same,
    unit,
    well_conditioned,
)


def rows() -> Iterator[Row]:
    yield from _special()
    yield from _special_with_options()
    yield from _linalg()
    yield from _matrices()
    yield from _signal()
    yield from _others()


def _special() -> Iterator[Row]:
    special, prefix = jsp.special, "special."
    yield from same(
        special,
        "erf erfc erfcx expit i0 i0e i1 i1e ndtr log_ndtr softmax log_softmax logsumexp dawsn "
        "sici fresnel gammasgn",
        prefix=prefix,
    )
    yield from same(
        special,
        "gammaln loggamma digamma entr gamma exp1 expi spence factorial",
        XP,
        prefix=prefix,
    )
    yield from same(special, "logit ndtri", XU, prefix=prefix)
    yield from same(special, "erfinv", Sample((3, 4), -0.9, 0.9), prefix=prefix)
    yield from same(
        special,
        "xlogy xlog1py betaln rel_entr kl_div beta gammainc gammaincc poch boxcox boxcox1p",
        *(XP, XP),
        prefix=prefix,
    )
    yield from same(special, "zeta", above_one(3, 4), XP, prefix=prefix)
    yield from same(special, "betainc", XP, XP, XU, prefix=prefix)
    yield from same(special, "owens_t", X, X, prefix=prefix)


def _special_with_options() -> Iterator[Row]:
    special = jsp.special
    yield "special.polygamma", lambda x: special.polygamma(1, x), (XP,)
    yield "special.multigammaln", lambda x: special.multigammaln(x + 1, 2), (XP,)
    yield "special.expn", lambda x: special.expn(2, x), (positive(4),)
    yield "special.comb", lambda x: special.comb(x + 3, 2.0), (XP,)
    yield "special.bessel_jn", lambda x: special.bessel_jn(x, v=2), (positive(4),)
    yield "special.hyp1f1", lambda x: special.hyp1f1(1.5, 2.5, x), (real(4),)
    yield "special.hyp2f1", lambda x: special.hyp2f1(1.5, 2.0, 3.5, x), (unit(4),)
    yield "special.wofz", lambda x: special.wofz(x + 0.5j), (real(4),)
    yield (
        "special.sph_harm_y",
        lambda t, p: special.sph_harm_y(jnp.array([2] * 4), jnp.array([1] * 4), t, p, n_max=3),
        (positive(4), positive(4)),
    )


def _linalg() -> Iterator[Row]:
    linalg = jsp.linalg
    for name in ("det", "inv", "lu_factor", "cho_factor", "cholesky"):
        function = getattr(linalg, name)
        yield f"linalg.{name}", lambda x, f=function: _first(f(well_conditioned(x))), (M,)
    for name in ("solve", "lu_solve", "cho_solve"):
        yield (
            f"linalg.{name}",
            lambda x, b, n=name: _solved(n, well_conditioned(x), b),
            (M, real(4)),
        )
    yield "linalg.expm", linalg.expm, (real(3, 3),)
    yield "linalg.expm_frechet", linalg.expm_frechet, (real(3, 3), real(3, 3))
    yield "linalg.lu", lambda x: linalg.lu(well_conditioned(x))[2], (M,)
    yield "linalg.qr", lambda x: linalg.qr(well_conditioned(x))[1], (M,)
    yield "linalg.qr_multiply", lambda x: linalg.qr_multiply(well_conditioned(x), x)[0], (M,)
    yield "linalg.svd", lambda x: linalg.svd(x, compute_uv=False), (real(3, 2),)
    yield "linalg.eigh", lambda x: linalg.eigh(well_conditioned(x), eigvals_only=True), (M,)
    yield (
        "linalg.eigh_tridiagonal",
        lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True),
        (real(4), positive(3)),
    )
    yield (
        "linalg.solve_triangular",
        lambda x, b: linalg.solve_triangular(jnp.tril(x) + 3 * jnp.eye(4), b, lower=True),
        (M, real(4)),
    )
    yield "linalg.polar", lambda x: linalg.polar(well_conditioned(x))[1], (real(3, 3),)
    yield "linalg.sqrtm", lambda x: linalg.sqrtm(well_conditioned(x)), (real(3, 3),)
    yield "linalg.funm", lambda x: linalg.funm(x, jnp.sin, disp=False)[0], (positive(3, 3),)
    yield "linalg.schur", lambda x: _eigenvalues(linalg.schur(well_conditioned(x))[0]), (M,)
    yield "linalg.rsf2csf", lambda x: jnp.abs(linalg.rsf2csf(jnp.triu(x), x)[0]), (real(3, 3),)
    yield "linalg.hessenberg", lambda x: jnp.abs(linalg.hessenberg(x)), (M,)
    yield (
        "linalg.solve_sylvester",
        lambda a, b, c: linalg.solve_sylvester(well_conditioned(a), well_conditioned(b), c),
        (real(2, 2), real(2, 2), real(2, 2)),
    )


def _eigenvalues(triangle: Any) -> Any:
    """In order: in which one they come is open."""
    return jnp.sort(jnp.diagonal(triangle))


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _solved(name: str, a: Any, b: Any) -> Any:
    linalg = jsp.linalg
    if name == "solve":
        return linalg.solve(a, b)
    factor = {"lu_solve": linalg.lu_factor, "cho_solve": linalg.cho_factor}[name]
    return getattr(linalg, name)(factor(a), b)


def _matrices() -> Iterator[Row]:
    """Matrices that are made of vectors."""
    linalg = jsp.linalg
    yield from same(linalg, "circulant toeplitz hankel fiedler", real(4), prefix="linalg.")
    yield from same(linalg, "companion fiedler_companion", positive(4), prefix="linalg.")
    yield "linalg.leslie", linalg.leslie, (real(4), real(3))
    yield "linalg.block_diag", linalg.block_diag, (real(2, 2), real(1, 3))
    yield "linalg.convolution_matrix", lambda x: linalg.convolution_matrix(x, 3), (real(4),)


def _signal() -> Iterator[Row]:
    signal = jsp.signal
    yield from same(signal, "convolve correlate fftconvolve", real(5), real(3), prefix="signal.")
    yield from same(signal, "convolve2d correlate2d", X, real(2, 2), prefix="signal.")
    yield "signal.detrend", signal.detrend, (X,)
    wave = (real(16),)
    yield "signal.stft", lambda x: signal.stft(x, nperseg=8)[2], wave
    yield "signal.istft", lambda x: signal.istft(x + 0.5j, nperseg=8)[1], (real(5, 4),)
    yield "signal.csd", lambda x: signal.csd(x, x[::-1], nperseg=8)[1], wave
    yield "signal.welch", lambda x: signal.welch(x, nperseg=8)[1], wave
    for name in ("dct", "idct", "dctn", "idctn"):
        yield f"fft.{name}", getattr(jsp.fft, name), (X,)


def _others() -> Iterator[Row]:
    yield (
        "ndimage.map_coordinates",
        lambda x, at: jsp.ndimage.map_coordinates(x, [at, at], order=1),
        (X, unit(5)),
    )
    yield "integrate.trapezoid", jsp.integrate.trapezoid, (X,)
    yield (
        "interpolate.RegularGridInterpolator",
        lambda values, at: jsp.interpolate.RegularGridInterpolator(
            (jnp.arange(3.0), jnp.arange(4.0)), values
        )(at),
        (X, unit(5, 2)),
    )
    yield (
        "spatial.transform.Rotation",
        lambda q: jsp.spatial.transform.Rotation.from_quat(q).as_matrix(),
        (real(4),),
    )
    yield (
        "spatial.transform.Slerp",
        lambda q: jsp.spatial.transform.Slerp.init(
            jnp.array([0.0, 1.0]), jsp.spatial.transform.Rotation.from_quat(q)
        )(jnp.array([0.3])).as_quat(),
        (positive(2, 4),),
    )
    yield (
        "optimize.minimize",
        lambda x: jsp.optimize.minimize(lambda v: jnp.sum((v - 1) ** 2), x, method="BFGS").x,
        (real(2),),
    )
    yield "cluster.vq.vq", jsp.cluster.vq.vq, (X, real(2, 4))
    yield "stats.mode", lambda x: jsp.stats.mode(jnp.round(x))[0], (X,)
    yield "stats.rankdata", jsp.stats.rankdata, (X,)
    yield "stats.sem", jsp.stats.sem, (X,)
    yield "stats.gaussian_kde", lambda x, at: jsp.stats.gaussian_kde(x)(at), (real(5), real(4))
