# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.scipy.stats: distributions."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

from conformance.functions.samples import Row, Sample, positive, real, unit

_REAL, _POSITIVE, _UNIT, _ABOVE = real(4), positive(4), unit(4), Sample((4,), 1.6, 4.0)

# Where the density is taken, what else the distribution takes, and its functions. The density
# itself is the exponential of `logpdf`, here and in JAX.
_DISTRIBUTIONS: list[tuple[str, Sample, tuple[float, ...], str]] = [
    ("beta", _UNIT, (2.0, 3.0), "logpdf cdf sf"),
    ("cauchy", _REAL, (), "logpdf cdf sf"),
    ("chi2", _POSITIVE, (3.0,), "logpdf cdf sf"),
    ("expon", _POSITIVE, (), "logpdf cdf logcdf sf"),
    ("gamma", _POSITIVE, (2.0,), "logpdf cdf sf"),
    ("gennorm", _REAL, (1.5,), "logpdf cdf"),
    ("gumbel_l", _REAL, (), "logpdf cdf logcdf sf"),
    ("gumbel_r", _REAL, (), "logpdf cdf logcdf sf"),
    ("laplace", _REAL, (), "logpdf cdf"),
    ("logistic", _REAL, (), "logpdf cdf sf"),
    ("norm", _REAL, (), "logpdf cdf logcdf sf logsf"),
    ("pareto", _ABOVE, (1.5,), "logpdf cdf logcdf sf"),
    ("t", _REAL, (4.0,), "logpdf"),
    ("truncnorm", _REAL, (-2.5, 2.5), "logpdf cdf logcdf sf"),
    ("uniform", _REAL, (-3.0, 6.0), "logpdf cdf"),
    ("vonmises", _REAL, (1.5,), "logpdf"),
    ("wrapcauchy", _POSITIVE, (0.4,), "logpdf"),
]
# The inverse of `cdf`, and of `sf`.
_QUANTILES: list[tuple[str, tuple[float, ...], str]] = [
    ("cauchy", (), "ppf isf"),
    ("expon", (), "ppf"),
    ("gumbel_l", (0.0, 1.0), "ppf"),
    ("gumbel_r", (0.0, 1.0), "ppf"),
    ("logistic", (), "ppf isf"),
    ("norm", (), "ppf isf"),
    ("pareto", (1.5,), "ppf"),
    ("uniform", (-3.0, 6.0), "ppf"),
]


def rows() -> Iterator[Row]:
    for name, sample, parameters, functions in _DISTRIBUTIONS:
        yield from _of(name, sample, parameters, functions)
    for name, parameters, functions in _QUANTILES:
        yield from _of(name, _UNIT, parameters, functions)
    yield "gamma.logpdf (by its parameter)", lambda a: stats.gamma.logpdf(1.3, a), (_POSITIVE,)
    yield "t.logpdf (by its parameter)", lambda df: stats.t.logpdf(1.3, df), (_POSITIVE,)
    yield from _discrete()
    yield from _several_variables()


def _of(name: str, sample: Sample, parameters: tuple[float, ...], functions: str) -> Iterator[Row]:
    for function in functions.split():
        call = getattr(getattr(stats, name), function)
        yield f"{name}.{function}", lambda x, f=call, p=parameters: f(x, *p), (sample,)


def _discrete() -> Iterator[Row]:
    """By their parameters: the outcomes are whole numbers."""
    ones, counts = np.array([0, 1, 1, 0]), np.array([0, 1, 2, 4])
    yield "bernoulli.logpmf", lambda p: stats.bernoulli.logpmf(ones, p), (_UNIT,)
    yield "bernoulli.cdf", lambda p: stats.bernoulli.cdf(ones, p), (_UNIT,)
    yield "bernoulli.ppf", lambda p: stats.bernoulli.ppf(0.4, p), (_UNIT,)
    yield "betabinom.logpmf", lambda a: stats.betabinom.logpmf(counts, 6, a, 2.0), (_POSITIVE,)
    yield "binom.logpmf", lambda p: stats.binom.logpmf(counts, 6, p), (_UNIT,)
    yield "geom.logpmf", lambda p: stats.geom.logpmf(counts + 1, p), (_UNIT,)
    yield "nbinom.logpmf", lambda p: stats.nbinom.logpmf(counts, 3.0, p), (_UNIT,)
    yield "poisson.logpmf", lambda mu: stats.poisson.logpmf(counts, mu), (_POSITIVE,)
    yield "poisson.cdf", lambda mu: stats.poisson.cdf(counts, mu), (_POSITIVE,)
    yield "poisson.entropy", stats.poisson.entropy, (_POSITIVE,)
    yield (
        "multinomial.logpmf",
        lambda p: stats.multinomial.logpmf(counts, 7, p / p.sum()),
        (_UNIT,),
    )


def _several_variables() -> Iterator[Row]:
    yield "dirichlet.logpdf", lambda x, a: stats.dirichlet.logpdf(x / x.sum(), a), (_UNIT, _ABOVE)
    yield (
        "multivariate_normal.logpdf",
        lambda x: stats.multivariate_normal.logpdf(x, jnp.zeros(4), jnp.eye(4) + 0.1),
        (_REAL,),
    )
