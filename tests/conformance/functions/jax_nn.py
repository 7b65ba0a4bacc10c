# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.nn."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax.numpy as jnp
from jax import nn

from conformance.functions.samples import Row, Sample, X, real, same


def rows() -> Iterator[Row]:
    yield from same(
        nn,
        "relu relu6 sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu log_sigmoid "
        "leaky_relu hard_sigmoid hard_silu hard_tanh tanh elu celu selu gelu glu squareplus mish "
        "softmax log_softmax logsumexp logmeanexp standardize identity",
    )
    yield "log1mexp", nn.log1mexp, (Sample((3, 4), 0.2, 3.0),)
    yield "gelu (exact)", functools.partial(nn.gelu, approximate=False), (X,)
    yield "softmax (where)", lambda x: nn.softmax(x, where=x > -1), (X,)
    yield "one_hot", lambda x: nn.one_hot(jnp.argsort(x), 4) * x[..., None], (X,)
    qkv = (real(2, 5, 2, 4), real(2, 5, 2, 4), real(2, 5, 2, 4))
    yield "dot_product_attention", nn.dot_product_attention, qkv
    yield (
        "dot_product_attention (causal)",
        functools.partial(nn.dot_product_attention, is_causal=True),
        qkv,
    )
