# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.random: samplers with a known key, as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax import random

from conformance.functions.samples import Row, X, above_one, inside, positive, real, unit


def rows() -> Iterator[Row]:
    key = random.key(7)
    for name in (
        *("normal", "uniform", "exponential", "gumbel", "laplace", "logistic", "cauchy"),
        *("ball", "maxwell"),
    ):
        sampler = getattr(random, name)
        shape = 3 if name == "ball" else (3, 4)
        yield name, lambda x, f=sampler, s=shape: x * f(key, s), (real(3) if shape == 3 else X,)
    for name in ("pareto", "chisquare", "t", "loggamma", "rayleigh", "lognormal", "wald"):
        sampler = getattr(random, name)
        yield name, lambda a, f=sampler: f(key, a), (positive(4),)
    yield from _of_parameters(key)
    yield from _of_arrays(key)
    yield "split", lambda x: x * jax.vmap(random.normal)(random.split(key, 4)), (X,)
    yield "fold_in", lambda x: x * random.uniform(random.fold_in(key, 3)), (X,)
    yield "bits", lambda x: x * (random.bits(key, x.shape) >> 24).astype(jnp.float32), (X,)
    yield "clone", lambda x: x * random.uniform(random.clone(key)), (X,)
    yield (
        "wrap_key_data",
        lambda x: x * random.uniform(random.wrap_key_data(random.key_data(key))),
        (X,),
    )


def _of_parameters(key: jax.Array) -> Iterator[Row]:
    four = (positive(4),)
    yield "truncated_normal", lambda x: random.truncated_normal(key, x, x + 1), (inside(3, 4),)
    yield "bernoulli", lambda p: jnp.where(random.bernoulli(key, p), p, -p), (unit(3, 4),)
    yield "gamma", lambda a: random.gamma(key, a), four
    yield "beta", lambda a: random.beta(key, a, a + 1), four
    yield "dirichlet", lambda a: random.dirichlet(key, a), four
    yield "poisson", lambda x: random.poisson(key, x), four
    yield "binomial", lambda p: random.binomial(key, 9.0, p), (unit(4),)
    yield "multinomial", lambda p: random.multinomial(key, 9.0, p / p.sum()), (unit(4),)
    yield "geometric", lambda p: random.geometric(key, p), (unit(4),)
    yield "double_sided_maxwell", lambda x: random.double_sided_maxwell(key, x, x + 1), four
    yield "f", lambda a: random.f(key, a, a + 1), four
    yield "generalized_normal", lambda x: x * random.generalized_normal(key, 2.0, (4,)), four
    yield "triangular", lambda x: random.triangular(key, x, x + 1, x + 3), four
    yield "weibull_min", lambda x: random.weibull_min(key, x, x + 1), (above_one(4),)
    yield (
        "multivariate_normal",
        lambda m: random.multivariate_normal(key, m, jnp.eye(4) + 0.1),
        (real(4),),
    )


def _of_arrays(key: jax.Array) -> Iterator[Row]:
    yield "categorical", lambda x: random.categorical(key, x), (X,)
    yield "permutation", lambda x: random.permutation(key, x), (X,)
    yield "choice", lambda x: random.choice(key, x[0], (5,)), (X,)
    yield "randint", lambda x: x * random.randint(key, x.shape, 0, 9), (X,)
    yield "rademacher", lambda x: x * random.rademacher(key, x.shape, jnp.float32), (X,)
    yield "orthogonal", lambda x: x @ random.orthogonal(key, 4), (X,)
