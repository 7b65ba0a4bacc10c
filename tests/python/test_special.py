# SPDX-License-Identifier: Apache-2.0
"""Special functions, most of them decomposed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

from support.cases import case, check, f16, f32, f64, parity


def row(name, fn, lo, hi, tolerance="function", halves=True):
    """fn of one argument between lo and hi, in every dtype of floats and at a symbolic size."""
    also = [[f64(99, lo=lo, hi=hi)], [f32("B", 3, lo=lo, hi=hi)], [f32(lo=lo, hi=hi)]]
    also += [[f16(99, lo=lo, hi=hi)]] if halves else []
    return case(name, fn, [f32(99, lo=lo, hi=hi)], also, tolerance=tolerance)


# Where the value crosses zero its digits cancel, in XLA as here: these count at the largest value.
ONE_ARGUMENT = [
    row("bessel_i0e", lax.bessel_i0e, -20, 20),
    row("bessel_i1e", lax.bessel_i1e, -20, 20),
    row("digamma", lax.digamma, 0.1, 20, "sum"),
    row("digamma of negative numbers", lax.digamma, -5.4, -4.6, "network", halves=False),
    row("erf_inv", lax.erf_inv, -0.999, 0.999),
    row("erf_inv at the edges", lambda x: lax.erf_inv(jnp.sign(x)), -1, 1),
    row("erfc", lax.erfc, -4, 4, halves=False),
    row("erfc far away", lax.erfc, 4, 9, halves=False),
    row("lgamma", lax.lgamma, 0.1, 30, "sum"),
    row("lgamma of negative numbers", lax.lgamma, -5.9, -0.1, "sum"),
    row("gammasgn", special.gammasgn, -5.9, 4.9),
    row("ndtri", special.ndtri, 0.01, 0.99, "network", halves=False),
    row("spence", special.spence, 0.1, 3, "network", halves=False),
    row("expi", special.expi, 0.1, 3, "network", halves=False),
    row("entr", special.entr, 0.1, 3, "sum"),
    row("log_ndtr", special.log_ndtr, -9, 9, "network", halves=False),
    row("i1", special.i1, -9, 9),
    row("factorial", special.factorial, 0, 12, "network", halves=False),
    row(
        "gradient of lgamma", jax.grad(lambda x: lax.lgamma(x).sum()), 0.1, 20, "sum", halves=False
    ),
]


def pair(name, fn, first, second, tolerance="function"):
    lo, hi = first
    low, high = second
    return case(
        name,
        fn,
        [f32(50, lo=lo, hi=hi), f32(50, lo=low, hi=high)],
        [[f64(50, lo=lo, hi=hi), f64(50, lo=low, hi=high)]],
        tolerance=tolerance,
    )


TWO_ARGUMENTS = [
    pair("zeta", lax.zeta, (1.1, 20), (0.1, 20)),
    pair("polygamma", lambda m, x: lax.polygamma(jnp.floor(m), x), (0, 5), (0.1, 20), "network"),
    pair("igamma", lax.igamma, (0.1, 9), (0.1, 12), "network"),
    pair("igammac", lax.igammac, (0.1, 9), (0.1, 12), "network"),
    pair("igamma_grad_a", lax.igamma_grad_a, (0.1, 9), (0.1, 12), "network"),
    pair("betainc", lambda a, x: lax.betainc(a, 1 + a, x), (0.1, 9), (0.01, 0.99), "network"),
    pair("beta", special.beta, (0.1, 5), (0.1, 5), "network"),
    pair("betaln", special.betaln, (0.1, 5), (0.1, 5), "network"),
    case(
        "igamma of a row",
        lax.igamma_p.bind,
        [f32(1, 5, lo=0.1), f32(4, 5, lo=0.1)],
        tolerance="network",
    ),
    case("polygamma of no order", lax.polygamma, [f32(3, lo=0.1, hi=0.9), f32(3, lo=1)]),
    case("bfloat16", lambda x: lax.erf_inv(x.astype(jnp.bfloat16)).astype(jnp.float32), [f32(9)]),
]


@parity(ONE_ARGUMENT + TWO_ARGUMENTS)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)
